//! The policy network of the alpha-beta engine: games, labels, training and export, as one job and step by step.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use dataset::{Dataset, GameRecord, OnBad};
use games::{Chess, GameResult, Line, Score};
use serde_json::Value;
use training::EngineConfig;
use uci::{Engine, Limit};

use crate::kills::{assert_whole, disturbed};
use crate::run_dir::{RunDir, fake_engine, small_profile};

/// Plies that are labelled and learnt.
const PLIES: usize = 20;

/// The fake engine plays; `teacher` labels, the player itself if it is empty.
fn profile(teacher: &str) -> String {
    let player = engine(&fake_engine().display().to_string());
    format!(
        r#"{}
[policy]
{player}
plies = {PLIES}

[policy.games]
games = 12
games_per_shard = 4
limit = {{ nodes = 50 }}
workers = 2
random_plies = [2, 5]
max_plies = 90
adjudicate = {{ score = 1500, plies = 6 }}

[policy.labels]
{teacher}
limit = {{ depth = 2 }}
workers = 2

[policy.training]
epochs = 2
batch = 16
pool = 256
holdout = 0.4
checkpoint_steps = 5
"#,
        small_profile()
    )
}

fn engine(path: &str) -> String {
    format!("engine = {{ path = \"{path}\" }}")
}

fn run_with_the_fake() -> RunDir {
    RunDir::new(&profile(""))
}

fn games(run: &RunDir, step: &str) -> BTreeMap<u64, GameRecord> {
    let data = Dataset::open(&[run.path(&format!("policy/{step}"))], OnBad::Stop).unwrap();
    (0..data.shards().len()).flat_map(|i| data.read_shard(i).unwrap()).map(|r| (r.game_id, r)).collect()
}

fn stamp(run: &RunDir, step: &str) -> Value {
    run.json(&format!("policy/{step}/stage.json"))
}

#[test]
fn all_steps_run_once_and_only_what_changed_runs_again() {
    let run = run_with_the_fake();
    assert!(run.fails("policy", &["labels"]).contains("run `make policy` first"));
    let said = run.ok("policy", &[]);
    for text in ["policy/games: 12 games", "policy/labels: 12 games", "top-1", "are kept", "1344192 bytes"] {
        assert!(said.contains(text), "{text} is not in\n{said}");
    }
    let report = run.ok("report", &[]);
    assert!(report.contains("policy: train") && report.contains("on held-out games"), "{report}");
    let everything = run.files("policy", "");
    let said = run.ok("policy", &[]);
    for step in ["games", "labels", "train", "export"] {
        assert!(said.contains(&format!("policy/{step}: done already")), "{said}");
        assert_eq!(stamp(&run, step)["status"], "done");
        assert!(run.ok("policy", &[step]).contains("done already"));
    }
    assert!(everything == run.files("policy", ""), "a second run changed files");

    // A deeper teacher: the games stand, all that follows from its answers runs again.
    let deeper = ["--set", "policy.labels.limit.depth=3"];
    let said = run.ok("policy", &deeper);
    assert!(said.contains("policy/games: done already"), "{said}");
    for step in ["labels", "train"] {
        assert!(said.contains(&format!("policy/{step}: starts")), "{step}: {said}");
    }
    // More games: what is there stays.
    let before = run.shards("policy/games");
    let said = run.ok("policy", &[&deeper[..], &["--set", "policy.games.games=16"]].concat());
    assert!(said.contains("policy/games: extends") && said.contains("policy/train: starts"), "{said}");
    let after = run.shards("policy/games");
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)) && after.len() == 4);
}

#[test]
fn the_files_are_those_of_the_best_network() {
    let run = run_with_the_fake();
    run.ok("policy", &[]);
    let best = nn::Checkpoint::load(&pipeline::Store::open(run.path("policy/train")).unwrap()).unwrap();
    let (network, export) = (best.best_policy().unwrap(), run.path("policy/export"));
    assert_eq!(std::fs::read(export.join("policy.bin")).unwrap(), network.to_bin().unwrap());
    assert_eq!(std::fs::read(export.join("policy.onnx")).unwrap(), network.to_onnx().unwrap());
    let summary = stamp(&run, "train")["summary"].clone();
    assert_eq!(summary["parameters"], 336_048);
    let losses: Vec<f64> =
        summary["epochs"].as_array().unwrap().iter().map(|e| e["policy_loss"].as_f64().unwrap()).collect();
    assert!(losses.len() == 3 && losses[1] < losses[0], "the validation loss falls: {losses:?}");
}

/// Only decisive games, only their first plies, only what a player chose; every answer is a fresh engine's.
fn assert_labels(run: &RunDir, teacher: &str) {
    let config = EngineConfig { path: teacher.to_owned(), ..EngineConfig::default() };
    let spec = training::teacher_spec(&config, &pipeline::Stop::manual()).unwrap();
    let (played, labelled) = (games(run, "games"), games(run, "labels"));
    assert!(played.keys().eq(labelled.keys()));
    let decisive = |game: &GameRecord| game.result.is_some_and(|r| r != GameResult::Draw);
    let chosen = played.values().filter(|game| decisive(game)).count();
    assert!(chosen > 0 && chosen < played.len(), "{chosen} of {} are decisive", played.len());
    let (mut asked, mut other) = (0, 0);
    for (id, game) in played {
        let mut engine = Engine::start(&spec).unwrap();
        engine.new_game().unwrap();
        let mut line = Line::new(game.start::<Chess>().unwrap());
        let (mut best, mut score) = (Vec::new(), Vec::new());
        for (ply, m) in game.moves.iter().enumerate() {
            let wanted = decisive(&game) && (usize::from(game.opening_plies)..PLIES).contains(&ply);
            let answer = wanted.then(|| engine.play(&line, Limit::Depth(2)).unwrap());
            best.push(answer.map(|a| a.m).filter(|answer| answer != m));
            score.push(answer.and_then(|a| a.score).map(Score::to_i16));
            asked += u64::from(wanted);
            other += u64::from(best[ply].is_some());
            line.play(*m);
        }
        assert_eq!(labelled[&id], GameRecord { best, score, ..game });
    }
    let summary = stamp(run, "labels")["summary"].clone();
    assert_eq!(summary["positions"], asked);
    assert!((summary["agreement"].as_f64().unwrap() - (1.0 - other as f64 / asked as f64)).abs() < 1e-9);
}

#[test]
fn labels_are_a_fresh_engines_answers_in_the_chosen_games() {
    let run = run_with_the_fake();
    run.ok("policy", &["games"]);
    run.ok("policy", &["labels"]);
    assert_labels(&run, &fake_engine().display().to_string());
    // The same games under another condition.
    run.ok("policy", &["labels", "--set", "policy.where=result IS NULL"]);
    let asked = |game: &GameRecord| game.score.iter().any(Option::is_some);
    assert!(games(&run, "labels").values().all(|game| asked(game) == game.result.is_none()));
    let said = run.fails("policy", &["labels", "--set", "policy.where=plies > 1000"]);
    assert!(said.contains("policy.where"), "{said}");
}

/// The profile of a real run, on less of everything: our engine teaches itself, and then plays with what it has learnt.
#[test]
fn our_engine_teaches_itself_and_takes_the_file() {
    let ours = fake_engine().with_file_name("tabiya-ab");
    assert!(ours.exists(), "{} is missing: run `cargo test --workspace`", ours.display());
    let run = RunDir::new(include_str!("../../configs/policy.toml"));
    let less = [
        "policy.plies=20",
        "policy.games.games=24",
        "policy.games.limit.nodes=200",
        "policy.games.max_plies=90",
        "policy.labels.limit.depth=2",
        "policy.training.epochs=2",
    ];
    run.ok("policy", &less.map(|set| ["--set", set]).concat());
    for step in ["games", "labels"] {
        let who = stamp(&run, step)["settings"]["engine"].as_str().unwrap().to_owned();
        assert!(who.starts_with("Tabiya-AB") && who.ends_with("Policy=false"), "{who}");
    }
    assert_labels(&run, "tabiya-ab");

    let file = run.path("policy/export/policy.bin");
    let mut engine =
        Command::new(ours).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the engine can be started");
    let commands = format!(
        "setoption name PolicyFile value {}\nsetoption name Policy value true\nposition startpos\ngo depth 5\n",
        file.display()
    );
    let mut input = engine.stdin.take().unwrap();
    input.write_all(commands.as_bytes()).unwrap();
    let lines = BufReader::new(engine.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut said: Vec<String> = Vec::new();
    for line in lines {
        let over = line.starts_with("bestmove");
        said.push(line);
        if over {
            break;
        }
    }
    input.write_all(b"quit\n").unwrap();
    assert!(engine.wait().unwrap().success());
    let policy = format!("info string policy {}", file.display());
    assert!(said.contains(&policy) && said.iter().any(|line| line.starts_with("bestmove")), "{said:?}");
}

/// Another engine than the one that played.
#[test]
fn stockfish_can_label() {
    assert!(uci::find_engine("stockfish").is_ok(), "Stockfish is missing: run `make setup`");
    let run = RunDir::new(&profile(&engine("stockfish")));
    for step in ["games", "labels"] {
        run.ok("policy", &[step]);
    }
    assert_labels(&run, "stockfish");
    assert!(stamp(&run, "labels")["settings"]["engine"].as_str().unwrap().starts_with("Stockfish"));
    assert!(stamp(&run, "games")["settings"]["engine"].as_str().unwrap().starts_with("Tabiya Fake"));
}

#[test]
fn kills_and_workers_change_nothing() {
    let (killed, whole) = (run_with_the_fake(), RunDir::new(&profile("").replace("workers = 2", "workers = 1")));
    let slow =
        |table: &str, ms: u32| format!("{table}.engine={{path={:?}, args=[\"--slow\", \"{ms}\"]}}", fake_engine());
    disturbed(&killed, &whole, "policy", &["games", "--set", &slow("policy", 2)], 6);
    assert_whole(&killed, "policy/games", 12);
    disturbed(&killed, &whole, "policy", &["labels", "--set", &slow("policy.labels", 5)], 7);
    assert_whole(&killed, "policy/labels", 12);
    // Long enough that a kill meets it in the middle.
    let long = ["train", "--set", "policy.training.epochs=12", "--set", "policy.training.patience=12"];
    disturbed(&killed, &whole, "policy", &long, 8);
    for run in [&killed, &whole] {
        run.ok("policy", &["export"]);
    }
    for step in ["games", "labels"] {
        assert!(killed.shards(&format!("policy/{step}")) == whole.shards(&format!("policy/{step}")), "{step}");
    }
    for step in ["train", "export"] {
        assert_eq!(stamp(&killed, step)["fingerprint"], stamp(&whole, step)["fingerprint"], "{step}");
    }
}

#[test]
fn what_cannot_be_taught_is_named() {
    let config = format!("{}/configs/connect4.toml", env!("CARGO_MANIFEST_DIR"));
    let other = RunDir::new(&std::fs::read_to_string(config).unwrap());
    assert!(other.fails("policy", &[]).contains("connect4"));
    let run = run_with_the_fake();
    for (set, mention) in [
        ("policy.plies=0", "policy.plies"),
        ("policy.training.holdout=1", "policy.training.holdout"),
        ("policy.games.random_plies=[3,2]", "policy.games.random_plies"),
        ("policy.labels.limit={nodes=0}", "policy.labels.limit"),
        ("policy.training.steps=3", "policy.training.steps"),
        ("policy.engine={path=\"/no/such/engine\"}", "/no/such/engine"),
        ("policy.where=nonsense", "nonsense"),
    ] {
        let said = run.fails("policy", &["--set", set]);
        assert!(said.contains(mention), "{set}: {said}");
    }
    // Games that are gone would be missing from the labels too.
    run.ok("policy", &["games"]);
    for ending in ["parquet", "json"] {
        std::fs::remove_file(run.path(&format!("policy/games/shard-00001.{ending}"))).unwrap();
    }
    let said = run.fails("policy", &["labels"]);
    assert!(said.contains("policy/games") && said.contains("make policy"), "{said}");
}

/// The query of `docs/7-policy.md`, as it stands but for the folder.
#[test]
fn the_columns_are_read_as_the_page_says() {
    let run = run_with_the_fake();
    for step in ["games", "labels"] {
        run.ok("policy", &[step]);
    }
    let page = include_str!("../../docs/7-policy.md");
    let script = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let script = script.replace("data/policy/policy", run.path("policy").to_str().unwrap());
    let venv = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    assert!(venv.exists(), "{} is missing: run `make setup`", venv.display());
    let out = Command::new(venv).args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains("positions") && said.contains("agreed"), "{said}");
}
