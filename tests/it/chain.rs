//! The chain over the fake engine: every stage, run again, stopped, changed, held by another.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run_dir::{RunDir, finish, job_path, signal, small_profile, wait_until};

const STAGES: [&str; 4] = ["corpus", "pretrain", "refine", "eval"];

#[test]
fn every_stage_runs_once_and_only_what_changed_runs_again() {
    let run = RunDir::new(&small_profile());
    for stage in STAGES {
        run.ok(stage, &[]);
    }
    let report = run.ok("report", &[]);
    for word in ["corpus", "pretrain", "iteration 1", "UCI_Elo=1500", "s in all"] {
        assert!(report.contains(word), "{word} is not in\n{report}");
    }
    let everything = run.files("", "");
    for stage in STAGES {
        let started = Instant::now();
        let said = run.ok(stage, &[]);
        assert!(said.contains("done already") || stage == "refine", "{said}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
    let same = |a: &str| !a.ends_with(".lock") && !a.contains(".locks/");
    let again = run.files("", "");
    assert!(
        everything.iter().filter(|(k, _)| same(k)).eq(again.iter().filter(|(k, _)| same(k))),
        "a second run changed files"
    );

    // Without its output the corpus is written again; it has the same content, so that nothing after it runs.
    std::fs::remove_dir_all(run.path("corpus")).unwrap();
    run.ok("corpus", &[]);
    assert!(run.ok("pretrain", &[]).contains("done already"));
    // Another corpus: training runs again, and so does what depends on it.
    run.ok("corpus", &["--set", "corpus.games=15"]);
    assert!(!run.ok("pretrain", &["--set", "corpus.games=15"]).contains("done already"));
    assert!(run.ok("refine", &["--set", "corpus.games=15"]).contains("iter_0001/train: starts"));
}

#[test]
fn the_time_of_a_stage_is_that_of_all_its_sittings() {
    let run = RunDir::new(&small_profile());
    let slow = ["--set", "engine.args=[\"--slow\", \"30\"]"];
    let seconds = || run.json("corpus/stage.json")["seconds"].as_f64().unwrap();
    // The first sitting is killed after its time was saved, the second is asked to stop.
    let job = run.start("corpus", &slow);
    wait_until("the time is saved", || run.path("corpus/stage.json").exists() && seconds() > 0.5);
    signal(job.id(), "KILL");
    finish(job);
    let killed = seconds();
    let job = run.start("corpus", &slow);
    std::thread::sleep(Duration::from_millis(700));
    signal(job.id(), "TERM");
    finish(job);
    let stopped = seconds();
    assert!(stopped > killed + 0.3, "{killed} {stopped}");
    assert!(run.ok("report", &[]).contains("not done"));
    let said = run.ok("corpus", &[]);
    assert!(said.contains("corpus: took ") && said.contains(" over 3 sittings"), "{said}");
    assert!(seconds() > stopped);
    let report = run.ok("report", &[]);
    assert!(report.contains(&format!("corpus ({:.0} s over 3 sittings)", seconds())), "{report}");
}

#[test]
fn single_steps_make_the_same_iteration_as_the_loop() {
    let (steps, whole) = (RunDir::new(&small_profile()), RunDir::new(&small_profile()));
    for run in [&steps, &whole] {
        run.ok("corpus", &[]);
        run.ok("pretrain", &[]);
    }
    whole.ok("refine", &[]);
    assert!(steps.ok("gate", &[]).contains("waits for `make selfplay`"));
    for step in ["selfplay", "train", "gate"] {
        steps.ok(step, &[]);
    }
    assert!(steps.ok("selfplay", &[]).contains("nothing to do"));
    assert!(steps.shards("refine/iter_0001/selfplay") == whole.shards("refine/iter_0001/selfplay"));
    let fingerprint = |run: &RunDir| run.json("refine/iter_0001/train/stage.json")["fingerprint"].clone();
    assert_eq!(fingerprint(&steps), fingerprint(&whole));
}

#[test]
fn below_the_minimum_train_and_gate_record_that_they_were_skipped() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    let said = run.ok("refine", &["--set", "train.replay_minimum=100000"]);
    assert!(said.contains("skipped"), "{said}");
    assert!(!run.json("refine/iter_0001/gate/stage.json")["summary"]["skipped"].is_null());
}

#[test]
fn the_second_of_two_runs_names_the_first_and_exits_2() {
    let run = RunDir::new(&small_profile());
    let slow = ["--set", "engine.args=[\"--slow\", \"200\"]"];
    let first = run.start("corpus", &slow);
    wait_until("the first run takes the lock", || run.path("corpus/stage.json").exists());
    let said = run.fails("corpus", &slow);
    assert!(said.contains(&first.id().to_string()), "the holder {} is not named in: {said}", first.id());
    signal(first.id(), "TERM");
    finish(first);
}

#[test]
fn a_stop_request_ends_a_stage_within_two_seconds_and_the_next_run_continues() {
    let run = RunDir::new(&small_profile());
    let slow = ["--set", "engine.args=[\"--slow\", \"30\"]"];
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let job = run.start("corpus", &slow);
        wait_until("games are played", || run.path("corpus/stage.json").exists());
        std::thread::sleep(Duration::from_millis(700));
        let asked = Instant::now();
        signal(job.id(), name);
        let ran = finish(job);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    }
    let undisturbed = RunDir::new(&small_profile());
    run.ok("corpus", &slow);
    undisturbed.ok("corpus", &slow);
    assert!(run.shards("corpus") == undisturbed.shards("corpus"));
}

/// Cron gives a short PATH and little else.
#[test]
fn a_stage_runs_from_cron() {
    let run = RunDir::new(&small_profile());
    let output = Command::new(job_path("corpus"))
        .args(["--config", "run.toml"])
        .current_dir(run.root())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!output.stderr.contains(&0x1b), "no escape codes in a log");
}

#[test]
fn a_required_score_that_is_missed_exits_1() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    let random = ["--set", "eval.opponent=\"random\""];
    assert_eq!(run.run("eval", &[&random[..], &["--require-score", "1.1"]].concat()).code, 1);
    // The match is not played again to answer another requirement.
    let again = run.run("eval", &[&random[..], &["--require-score", "0"]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("done already"), "{}", again.stderr);
}
