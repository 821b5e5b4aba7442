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
    assert!(said.contains("eval.network names elsewhere") && said.contains("make publish"), "{said}");
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
fn training_goes_on_from_a_network_and_the_next_one_tells_of_it() {
    // The policy decides which epoch is kept: the value learns nothing from so few games.
    let learns = "[pretrain]\npeak_lr = 5e-3\nvalue_weight = 0.001";
    let run = RunDir::new(&small_profile().replace("[pretrain]", learns));
    for job in ["corpus", "pretrain"] {
        run.ok(job, &[]);
    }
    run.ok("publish", &["--to", "net"]);
    let first = checkpoint(&run.path("pretrain")).fingerprint();
    let further = |data: &str, more: &[&str]| {
        let data = format!("data={data}");
        [&["--set", data.as_str()][..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let make = |job: &str, set: &[String]| run.ok(job, &set.iter().map(String::as_str).collect::<Vec<_>>());
    // On the held-out games, before training and with the weights that were kept.
    let losses = |folder: &str| {
        let summary = &run.json(&format!("{folder}/stage.json"))["summary"];
        let epochs = summary["epochs"].as_array().unwrap();
        let kept = epochs.iter().find(|epoch| epoch["epoch"] == summary["best_epoch"]).unwrap();
        assert_eq!(epochs[0]["epoch"], 0);
        [&epochs[0], kept].map(|epoch| epoch["policy_loss"].as_f64().unwrap())
    };

    // The same games: what the first run had learned in the end is known from the beginning.
    let again = further("data/again", &["--set", "pretrain.init=net"]);
    for job in ["corpus", "pretrain"] {
        make(job, &again);
    }
    let ([random, learned], [known, _]) = (losses("pretrain"), losses("../again/pretrain"));
    assert!((learned - known).abs() < 1e-6 && known < random - 1e-3, "{random}, {learned}, {known}");

    // Other games, on from a stage's folder; and once more on from there.
    let second = further("data/second", &["--set", "seed=2", "--set", "pretrain.init=data/run/pretrain"]);
    let third = further("data/third", &["--set", "seed=3", "--set", "pretrain.init=data/second/pretrain"]);
    for set in [&second, &third] {
        for job in ["corpus", "pretrain"] {
            make(job, set);
        }
        assert!(make("pretrain", set).contains("done already"));
    }
    let to = |set: &[String], folder: &str| [set, &["--to".to_owned(), folder.to_owned()]].concat();
    make("publish", &to(&third, "last"));
    let origin = checkpoint(&run.root().join("last")).info.provenance;
    let init = &origin["init"];
    assert_eq!(init["folder"], "data/second/pretrain");
    assert_eq!(init["network"], checkpoint(&run.root().join("data/second/pretrain")).fingerprint());
    assert_eq!(init["made"]["init"]["network"], first);
    let stages = |made: &serde_json::Value| {
        made["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for made in [&origin, &init["made"], &init["made"]["init"]["made"]] {
        assert_eq!(stages(made), ["corpus", "pretrain"]);
    }
    let seconds = |made: &serde_json::Value| -> f64 {
        made["stages"].as_array().unwrap().iter().map(|s| s["seconds"].as_f64().unwrap()).sum()
    };
    let all = seconds(&origin) + seconds(&init["made"]) + seconds(&init["made"]["init"]["made"]);
    assert!((origin["hours"].as_f64().unwrap() - all / 3600.0).abs() < 0.01, "{origin}");

    // From a published network, whose command is told; the page counts its hours too.
    let set = further("data/fourth", &["--set", "seed=4", "--set", "pretrain.init=net"]);
    for job in ["corpus", "pretrain"] {
        make(job, &set);
    }
    make("publish", &to(&set, "fourth"));
    let origin = checkpoint(&run.root().join("fourth")).info.provenance;
    assert_eq!(origin["init"]["made"]["command"], "make corpus pretrain PROFILE=run");
    let empty = ["results.simulations=[]", "results.shares=[]", "results.refined_games=0"];
    let set = [&set[..], &empty.map(|e| ["--set".to_owned(), e.to_owned()]).concat()].concat();
    make("results", &set);
    let page = std::fs::read_to_string(run.root().join("docs/results.md")).unwrap();
    let which = format!("network {first:.8}, of `make corpus pretrain PROFILE=run`");
    let row = format!(" | {which} |");
    assert!(page.lines().any(|line| line.starts_with("| net | ") && line.ends_with(&row)), "{page}");
    let report = make("report", &set);
    assert!(report.lines().any(|line| line.starts_with("  net (") && line.ends_with(&which)), "{report}");

    let said = run.fails("pretrain", &["--set", "data=data/again", "--set", "pretrain.init=nowhere"]);
    assert!(said.contains("pretrain.init") && said.contains("nowhere"), "{said}");
    let set = ["--set", "data=data/other", "--set", "net.channels=16"];
    run.ok("corpus", &set);
    let said = run.fails("pretrain", &[&set[..], &["--set", "pretrain.init=net"]].concat());
    assert!(said.contains("1x8") && said.contains("1x16"), "{said}");
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
