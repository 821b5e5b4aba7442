//! A fact on disk that cannot be read is an error that names its file, and never a default.

use serde_json::{Value, json};

use crate::run_dir::{RunDir, small_profile};

/// A run with every stage of the chain done.
fn whole_run() -> RunDir {
    let run = RunDir::new(&small_profile());
    for job in ["corpus", "pretrain", "refine", "eval"] {
        run.ok(job, &[]);
    }
    run
}

/// Rewrites a JSON file; its text before.
fn change(run: &RunDir, file: &str, change: impl FnOnce(&mut Value)) -> String {
    let path = run.path(file);
    let before = std::fs::read_to_string(&path).unwrap();
    let mut value: Value = serde_json::from_str(&before).unwrap();
    change(&mut value);
    std::fs::write(&path, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
    before
}

/// Makes a finished training look as if it had been killed after its last save.
fn reopen(run: &RunDir, stage: &str) {
    change(run, &format!("{stage}/stage.json"), |stamp| {
        stamp["status"] = json!("running");
        for key in ["fingerprint", "finished", "summary"] {
            stamp[key] = Value::Null;
        }
    });
}

#[test]
fn training_never_goes_on_with_trained_weights_from_step_0() {
    let run = whole_run();
    for (stage, job) in [("pretrain", "pretrain"), ("refine/iter_0001/train", "train")] {
        reopen(&run, stage);
        let weights = run.files(stage, ".safetensors");
        let manifest = format!("{stage}/checkpoint.json");
        for loader in [Value::Null, json!({}), json!("start"), json!({ "place": 3, "step": "7" })] {
            let before = change(&run, &manifest, |checkpoint| checkpoint["loader"] = loader.clone());
            let said = run.fails(job, &[]);
            assert!(said.contains("checkpoint.json") && said.contains("`loader`"), "{stage} with {loader}: {said}");
            assert!(run.files(stage, ".safetensors") == weights, "{stage} with {loader} was trained on");
            std::fs::write(run.path(&manifest), before).unwrap();
        }
        // With its own record it goes on, and has nothing left to train.
        run.ok(job, &[]);
        assert_eq!(run.json(&format!("{stage}/stage.json"))["status"], "done");
    }
}

#[test]
fn a_summary_that_does_not_parse_is_named_by_whoever_reads_it() {
    let run = whole_run();
    for (stage, job) in [
        ("corpus", "corpus"),
        ("pretrain", "pretrain"),
        ("refine/iter_0001/selfplay", "refine"),
        ("refine/iter_0001/gate", "refine"),
        ("refine/iter_0001/gate", "eval"),
        ("eval", "eval"),
    ] {
        let stamp = format!("{stage}/stage.json");
        for summary in [Value::Null, json!({}), json!({ "games": "many", "accepted": "yes", "score": [] })] {
            let before = change(&run, &stamp, |stamp| stamp["summary"] = summary.clone());
            let said = run.fails(job, &[]);
            assert!(said.contains(&stamp), "{job} with {summary} in {stamp}: {said}");
            std::fs::write(run.path(&stamp), before).unwrap();
            run.ok(job, &[]);
        }
    }
}

#[test]
fn a_stage_that_is_done_has_a_fingerprint_or_is_not_read() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    change(&run, "corpus/stage.json", |stamp| stamp["fingerprint"] = Value::Null);
    let said = run.fails("pretrain", &[]);
    assert!(said.contains("corpus/stage.json") && said.contains("fingerprint"), "{said}");
}
