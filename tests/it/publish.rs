//! Publishing a network: the same weights, how they were made, and playing with them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nn::Checkpoint;
use pipeline::Store;

use crate::run_dir::{RunDir, small_profile};

fn trained() -> RunDir {
    let run = RunDir::new(&small_profile());
    for job in ["corpus", "pretrain"] {
        run.ok(job, &[]);
    }
    run
}

fn checkpoint(dir: &Path) -> Checkpoint {
    Checkpoint::load(&Store::open_existing(dir).unwrap()).unwrap()
}

#[test]
fn a_published_network_is_the_runs_and_says_how_it_was_made() {
    let run = trained();
    run.ok("eval", &[]);
    let to = run.root().join("data/reference");
    let said = run.ok("publish", &[]);
    assert!(said.contains("data/reference"), "{said}");
    let (source, published) = (checkpoint(&run.path("pretrain")), checkpoint(&to));
    assert_eq!(published.fingerprint(), source.fingerprint());
    assert!(source.has_optimizer() && !published.has_optimizer());
    assert_eq!((&published.info.config, published.info.step), (&source.info.config, source.info.step));
    assert!(source.info.provenance.is_null() && published.info.loader.is_null());

    let (corpus, origin) = (run.json("corpus/stage.json"), &published.info.provenance);
    assert_eq!(origin["command"], "make corpus pretrain PROFILE=run");
    assert_eq!(origin["profile"], "run");
    assert_eq!(origin["program"], concat!("tabiya ", env!("CARGO_PKG_VERSION")));
    assert_eq!(
        (&origin["games"], &origin["positions"]),
        (&corpus["summary"]["games"], &corpus["summary"]["positions"])
    );
    assert_eq!((&origin["corpus"], &origin["limit"]["nodes"]), (&corpus["fingerprint"], &50.into()));
    assert!(origin["teacher"].as_str().unwrap().starts_with("Tabiya Fake 1.0"));
    assert_eq!(
        origin["stages"].as_array().unwrap().iter().map(|s| &s["stage"]).collect::<Vec<_>>(),
        ["corpus", "pretrain"]
    );
    assert!(origin["hours"].is_number() && origin["stages"][1]["seconds"].is_number());
    assert!(origin["eval"].as_str().unwrap().contains("UCI_Elo=1500"));

    let files = || run.files("../reference", "");
    let before = files();
    assert!(run.ok("publish", &[]).contains("done already"));
    assert!(before == files(), "a second run changed files");
}

#[test]
fn a_published_network_plays_at_once() {
    let run = trained();
    run.ok("publish", &[]);
    let mut engine = Command::new(env!("CARGO_BIN_EXE_tabiya"))
        .current_dir(run.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    engine.stdin.take().unwrap().write_all(b"uci\nposition startpos moves e2e4\ngo nodes 20\nquit\n").unwrap();
    let said = engine.wait_with_output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&said).contains("\nbestmove "), "{}", String::from_utf8_lossy(&said));

    // A profile that names it measures it, without any run of its own.
    let set = ["--set", "data=data/reference", "--set", "eval.network=data/reference"];
    let said = run.ok("eval", &set);
    let fingerprint = checkpoint(&run.root().join("data/reference")).fingerprint();
    assert!(said.contains(&format!("tabiya {} simulations=4", &fingerprint[..8])), "{said}");
    assert!(run.root().join("data/reference/eval/report.txt").exists());
    assert!(run.ok("eval", &set).contains("done already"));
    // It is a name for the run's own best network here: the same match.
    run.ok("eval", &[]);
    assert!(run.ok("eval", &set[2..]).contains("done already"));
    let said = run.fails("eval", &["--set", "eval.network=elsewhere"]);
    assert!(said.contains("missing at elsewhere") && said.contains("make publish"), "{said}");
    assert!(!run.root().join("elsewhere").exists());
}

#[test]
fn the_network_before_is_kept_and_refinement_is_told() {
    let profile =
        small_profile().replace("[gate]", "[gate]\nthreshold = 0").replace("max_plies = 30", "max_plies = 2000");
    let run = RunDir::new(&profile);
    for job in ["corpus", "pretrain"] {
        run.ok(job, &[]);
    }
    run.ok("publish", &["--to", "net"]);
    let first = checkpoint(&run.root().join("net")).fingerprint();
    run.ok("refine", &[]);
    run.ok("publish", &["--to", "net"]);
    let second = checkpoint(&run.root().join("net"));
    assert_ne!(second.fingerprint(), first);
    assert_eq!(second.fingerprint(), checkpoint(&run.path("refine/iter_0001/train")).fingerprint());
    assert_eq!(checkpoint(&run.root().join("net/previous")).fingerprint(), first);
    let origin = &second.info.provenance;
    assert_eq!(origin["command"], "make corpus pretrain refine PROFILE=run");
    let stages: Vec<&str> = origin["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["corpus", "pretrain", "iteration 1: selfplay", "iteration 1: train", "iteration 1: gate"]);
    assert_eq!(second.info.iteration, 1);
}

#[test]
fn overrides_stand_in_the_command_and_have_to_be_those_of_the_run() {
    let run = RunDir::new(&small_profile());
    let set = ["--set", "pretrain.peak_lr=2e-3", "--set", "corpus.games=9"];
    for job in ["corpus", "pretrain"] {
        run.ok(job, &set);
    }
    let said = run.fails("publish", &set[..2]);
    assert!(said.contains("corpus was made with corpus.games = 9 (the profile says 12)"), "{said}");
    let said = run.fails("publish", &set[2..]);
    assert!(said.contains("pretrain.peak_lr = 0.002"), "{said}");
    let said = run.fails("publish", &[&set[..], &["--set", "pretrain.optimizer=muon"]].concat());
    assert!(said.contains("pretrain.optimizer at its default (the profile says \"muon\")"), "{said}");
    assert!(!run.root().join("data/reference").exists());
    run.ok("publish", &set);
    let origin = checkpoint(&run.root().join("data/reference")).info.provenance;
    assert_eq!(origin["command"], "make corpus pretrain PROFILE=run SET='pretrain.peak_lr=2e-3 corpus.games=9'");
}

#[test]
fn what_cannot_be_published_is_named() {
    let run = RunDir::new(&small_profile());
    assert!(run.fails("publish", &[]).contains("make corpus"));
    run.ok("corpus", &[]);
    assert!(run.fails("publish", &[]).contains("make pretrain"));
    run.ok("pretrain", &[]);
    let said = run.fails("publish", &["--to", "data/run/pretrain"]);
    assert!(said.contains("--to") && said.contains("stage"), "{said}");
    run.ok("corpus", &["--set", "corpus.games=15"]);
    let said = run.fails("publish", &["--set", "corpus.games=15"]);
    assert!(said.contains("has not learned from the corpus") && said.contains("make pretrain"), "{said}");

    // Another game does not go where chess is played from, nor over a chess network.
    let config = format!("{}/configs/tictactoe.toml", env!("CARGO_MANIFEST_DIR"));
    let other = RunDir::new(&std::fs::read_to_string(config).unwrap());
    let quick = ["refine.num_iterations=1", "selfplay.games=120", "train.steps=5", "gate.threshold=0", "gate.games=4"];
    let quick: Vec<&str> = quick.iter().flat_map(|set| ["--set", set]).collect();
    assert!(other.fails("publish", &quick).contains("make refine"));
    other.ok("refine", &quick);
    assert!(other.fails("publish", &quick).contains("--to"));
    let chess = trained();
    chess.ok("publish", &["--to", other.root().join("net").to_str().unwrap()]);
    let said = other.fails("publish", &[&quick[..], &["--to", "net"]].concat());
    assert!(said.contains("input"), "{said}");
    other.ok("publish", &[&quick[..], &["--to", "tictactoe"]].concat());
}

#[test]
fn weights_that_the_stage_did_not_finish_with_are_not_published() {
    let run = trained();
    let folder = run.path("pretrain");
    let best = ["best.safetensors", "model.safetensors"].map(|name| folder.join(name)).into_iter().find(|p| p.exists());
    let best = best.unwrap();
    let mut bytes = std::fs::read(&best).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&best, bytes).unwrap();
    let _ = std::fs::remove_dir_all(folder.join("previous"));
    let said = run.fails("publish", &[]);
    assert!(said.contains("safetensors"), "{said}");
    assert!(!run.root().join("data/reference/checkpoint.json").exists());
}
