//! Which network is meant: never one that no gate has seen, that is not finished, or that was put in another's place.

use crate::run_dir::{RunDir, small_profile};

/// A run whose candidate has passed its gate, which lets anybody through whose games come to an end.
fn chain() -> RunDir {
    let profile = small_profile().replace("[gate]\ngames = 4\nsimulations = 4\nmax_plies = 30", GATE);
    assert!(profile.contains(GATE), "{profile}");
    let run = RunDir::new(&profile);
    for stage in ["corpus", "pretrain", "refine"] {
        run.ok(stage, &[]);
    }
    run
}

const GATE: &str = "[gate]\ngames = 4\nsimulations = 4\nthreshold = 0\nmax_plies = 600";

/// As if the stage had been killed.
fn unfinish(run: &RunDir, stage: &str) {
    let mut stamp = run.json(&format!("{stage}/stage.json"));
    stamp["status"] = "running".into();
    std::fs::write(run.path(stage).join("stage.json"), stamp.to_string()).unwrap();
}

fn fingerprint(run: &RunDir, stage: &str) -> String {
    run.json(&format!("{stage}/stage.json"))["fingerprint"].as_str().unwrap().to_owned()
}

#[test]
fn a_candidate_that_no_gate_has_seen_is_not_the_best_network() {
    let run = chain();
    run.ok("eval", &[]);
    let played = |run: &RunDir| run.json("eval/stage.json")["inputs"]["network"].as_str().unwrap().to_owned();
    assert_eq!(played(&run), fingerprint(&run, "refine/iter_0001/train"), "the gate let it through");
    // Other weights in the accepted candidate's place; the gate's verdict stays where it is.
    run.ok("train", &["--set", "train.steps=4"]);
    assert_ne!(played(&run), fingerprint(&run, "refine/iter_0001/train"));
    run.ok("eval", &[]);
    assert_eq!(played(&run), fingerprint(&run, "pretrain"));
}

#[test]
fn refinement_waits_for_a_corpus_that_is_being_extended() {
    let run = chain();
    let trained = fingerprint(&run, "refine/iter_0001/train");
    unfinish(&run, "corpus");
    let said = run.fails("refine", &[]);
    assert!(said.contains("the whole corpus") && said.contains("make corpus"), "{said}");
    assert_eq!(fingerprint(&run, "refine/iter_0001/train"), trained);
    // Without a share of it nothing depends on it.
    run.ok("refine", &["--set", "train.teacher_share=0"]);
}

#[test]
fn a_network_in_training_is_not_gone_on_from() {
    let run = chain();
    unfinish(&run, "pretrain");
    for (job, setting) in [
        ("pretrain", "pretrain.init=data/run/pretrain"),
        ("eval", "eval.network=data/run/pretrain"),
        ("refine", "refine.init=data/run/pretrain"),
    ] {
        let said = run.fails(job, &["--set", "data=data/other", "--set", setting]);
        let early = said.contains("make corpus");
        assert!(
            early || (said.contains("data/run/pretrain") && said.contains("`pretrain` has begun")),
            "{job}: {said}"
        );
    }
    run.ok("corpus", &["--set", "data=data/other"]);
    let said = run.fails("pretrain", &["--set", "data=data/other", "--set", "pretrain.init=data/run/pretrain"]);
    assert!(said.contains("`pretrain` has begun"), "{said}");
}

#[test]
fn weights_in_the_place_of_others_are_refused() {
    let run = chain();
    // Another checkpoint, and a whole one.
    let (ours, theirs) = (run.path("pretrain"), run.path("refine/iter_0001/train"));
    std::fs::remove_dir_all(ours.join("previous")).unwrap();
    for file in ["checkpoint.json", "model.safetensors", "optimizer.safetensors"] {
        std::fs::copy(theirs.join(file), ours.join(file)).unwrap();
    }
    let said = run.fails("refine", &["--set", "selfplay.games=8"]);
    assert!(said.contains("not the one that its stage has made"), "{said}");
}

#[test]
fn value_targets_on_another_scale_train_another_candidate() {
    let run = chain();
    let said = run.ok("refine", &["--set", "pretrain.score_scale=300"]);
    assert!(said.contains("iter_0001/train: starts anew"), "{said}");
}

#[test]
fn openings_that_no_game_survives_are_refused() {
    let run = chain();
    let said = run.fails("selfplay", &["--set", "selfplay.random_plies=[8,2]"]);
    assert!(said.contains("selfplay.random_plies") && said.contains("[8, 2]"), "{said}");
    let long = ["--set", "selfplay.random_plies=60000", "--set", "selfplay.games=2"];
    let said = run.fails("selfplay", &long);
    assert!(said.contains("selfplay.random_plies"), "{said}");
}
