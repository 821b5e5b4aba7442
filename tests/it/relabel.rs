//! The teacher's answers to self-play: the same games, a fresh engine's answers, and training on them.

use std::collections::BTreeMap;

use dataset::{Dataset, GameRecord, OnBad};
use games::{Chess, Line, Score};
use serde_json::Value;
use training::EngineConfig;
use uci::{Engine, Limit};

use crate::kills::{assert_whole, disturbed};
use crate::run_dir::{RunDir, fake_engine, small_profile};

const SELFPLAY: &str = "refine/iter_0001/selfplay";
const RELABEL: &str = "refine/iter_0001/relabel";
const ENABLED: [&str; 2] = ["--set", "relabel.enabled=true"];

/// A run that has pre-trained and played its first iteration's games, with relabelling on.
fn played(engine: &str) -> RunDir {
    let profile = small_profile() + "\n[relabel]\nenabled = true\nlimit = { nodes = 80 }\n";
    let run = RunDir::new(&profile.replace(&fake_engine().display().to_string(), engine));
    for job in ["corpus", "pretrain", "selfplay"] {
        run.ok(job, &[]);
    }
    run
}

fn played_with_the_fake() -> RunDir {
    played(&fake_engine().display().to_string())
}

fn games(run: &RunDir, folder: &str) -> BTreeMap<u64, GameRecord> {
    let data = Dataset::open(&[run.path(folder)], OnBad::Stop).unwrap();
    (0..data.shards().len()).flat_map(|i| data.read_shard(i).unwrap()).map(|r| (r.game_id, r)).collect()
}

/// Runs `relabel` from nothing; its shards.
fn relabelled(run: &RunDir, args: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let _ = std::fs::remove_dir_all(run.path(RELABEL));
    run.ok("relabel", args);
    run.shards(RELABEL)
}

/// Every answer of `run` is that of an engine which was started for the game alone.
fn assert_answers(run: &RunDir, engine: &str) {
    let config = EngineConfig { path: engine.to_owned(), ..EngineConfig::default() };
    let spec = training::teacher_spec(&config, &pipeline::Stop::manual()).unwrap();
    let (before, after) = (games(run, SELFPLAY), games(run, RELABEL));
    assert!(before.keys().eq(after.keys()));
    for (id, game) in before {
        let mut engine = Engine::start(&spec).unwrap();
        engine.new_game().unwrap();
        let mut line = Line::new(game.start::<Chess>().unwrap());
        let (mut best, mut score) = (Vec::new(), Vec::new());
        for (ply, played) in game.moves.iter().enumerate() {
            let chosen = ply >= usize::from(game.opening_plies);
            let answer = chosen.then(|| engine.play(&line, Limit::Nodes(80)).unwrap());
            best.push(answer.map(|a| a.m).filter(|m| m != played));
            score.push(answer.and_then(|a| a.score).map(Score::to_i16));
            line.play(*played);
        }
        assert!(score.iter().any(Option::is_some) && best.iter().any(Option::is_some), "game {id}");
        let expected = GameRecord { best, score, value: None, visits: Vec::new(), ..game };
        assert_eq!(after[&id], expected);
    }
}

#[test]
fn the_games_are_the_same_and_the_answers_a_fresh_engines() {
    let run = played_with_the_fake();
    let said = run.ok("relabel", &[]);
    assert!(said.contains("6 games") && said.contains("of the moves are the teacher's"), "{said}");
    assert_answers(&run, &fake_engine().display().to_string());
    let (stamp, source) = (
        run.json(&format!("{RELABEL}/stage.json")),
        run.json(&format!("{SELFPLAY}/stage.json"))["fingerprint"].clone(),
    );
    assert_eq!(stamp["inputs"]["selfplay"], source);
    assert_eq!(stamp["settings"]["relabel"]["limit"]["nodes"], 80);
    assert_eq!(stamp["summary"]["positions"], run.json(&format!("{SELFPLAY}/stage.json"))["summary"]["positions"]);
    let writer = run.json(&format!("{RELABEL}/shard-00001.json"))["writer"].clone();
    assert_eq!((&writer["source"], &writer["limit"]["nodes"]), (&source, &Value::from(80)));
    assert!(writer["teacher"].as_str().unwrap().starts_with("Tabiya Fake 1.0"), "{writer}");
    // Without a limit of its own it is the corpus' one.
    run.write_profile(&(small_profile() + "\n[relabel]\nenabled = true\n"));
    run.ok("relabel", &[]);
    assert_eq!(run.json(&format!("{RELABEL}/stage.json"))["settings"]["relabel"]["limit"]["nodes"], 50);
}

/// Stockfish remembers: its answers depend on what it was asked before in the game, and on nothing else.
#[test]
fn stockfish_answers_the_same_whoever_asks() {
    assert!(uci::find_engine("stockfish").is_ok(), "Stockfish is missing: run `make setup`");
    let run = played("stockfish");
    let one = relabelled(&run, &["--set", "relabel.workers=1"]);
    assert_answers(&run, "stockfish");
    assert!(one == relabelled(&run, &["--set", "relabel.workers=4"]));
}

#[test]
fn workers_and_kills_change_nothing() {
    let run = played_with_the_fake();
    let one = relabelled(&run, &["--set", "relabel.workers=1"]);
    assert_eq!(one.len(), 3);
    let said = run.ok("relabel", &["--set", "relabel.workers=4"]);
    assert!(said.contains("waits for `make train`"), "it is done, whatever the number of workers: {said}");
    assert!(one == relabelled(&run, &["--set", "relabel.workers=4"]));

    let (killed, whole) = (played_with_the_fake(), played_with_the_fake());
    disturbed(&killed, &whole, "relabel", &["--set", "engine.args=[\"--slow\", \"5\"]"], 5);
    assert_whole(&killed, RELABEL, 6);
    assert!(one == killed.shards(RELABEL) && one == whole.shards(RELABEL));
}

#[test]
fn an_engine_that_dies_is_started_again() {
    let run = played_with_the_fake();
    let undisturbed = relabelled(&run, &[]);
    // Often enough that no engine lives through a game; the fake one has no memory to lose.
    std::fs::remove_dir_all(run.path(RELABEL)).unwrap();
    let said = run.ok("relabel", &["--set", "engine.args=[\"--die-every\", \"9\"]"]);
    assert!(said.contains("begun again") && said.contains("goes on from ply"), "{said}");
    assert!(undisturbed == run.shards(RELABEL));
    let sidecars = run.files(RELABEL, ".json");
    assert!(sidecars.values().any(|text| String::from_utf8_lossy(text).contains("resumed_games")));

    std::fs::remove_dir_all(run.path(RELABEL)).unwrap();
    let said = run.fails("relabel", &["--set", "engine.args=[\"--die-at\", \"go\"]"]);
    assert!(said.contains("dies at go"), "the engine's last words are told: {said}");
}

#[test]
fn the_loop_trains_on_the_answers() {
    let run = played_with_the_fake();
    assert!(run.ok("train", &[]).contains("waits for `make relabel`"));
    run.ok("refine", &[]);
    let stamp = |step: &str| run.json(&format!("refine/iter_0001/{step}/stage.json"));
    let inputs = stamp("train")["inputs"].as_object().unwrap().clone();
    assert_eq!(inputs.keys().collect::<Vec<_>>(), ["corpus", "relabel_0001", "start"]);
    assert_eq!(inputs["relabel_0001"], stamp("relabel")["fingerprint"]);

    let files = |run: &RunDir| run.files("refine", "").into_iter().collect::<Vec<_>>();
    let everything = files(&run);
    assert!(!run.ok("refine", &[]).contains("starts"));
    assert!(everything == files(&run), "a second run changed files");
    assert!(run.ok("relabel", &[]).contains("nothing to do"));

    // A stronger teacher is another step, and another candidate; self-play stands.
    let said = run.ok("refine", &["--set", "relabel.limit.nodes=90"]);
    assert!(said.contains("relabel: starts") && said.contains("train: starts"), "{said}");
    assert!(!said.contains("selfplay: starts"), "{said}");
}

#[test]
fn off_means_that_nothing_knows_of_it() {
    let run = RunDir::new(&small_profile());
    for job in ["corpus", "pretrain", "refine"] {
        run.ok(job, &[]);
    }
    assert!(!run.path(RELABEL).exists());
    let train = run.json("refine/iter_0001/train/stage.json");
    assert_eq!(train["inputs"].as_object().unwrap().keys().collect::<Vec<_>>(), ["corpus", "selfplay_0001", "start"]);
    for stage in ["corpus", "pretrain", SELFPLAY, "refine/iter_0001/train", "refine/iter_0001/gate"] {
        let settings = run.json(&format!("{stage}/stage.json"))["settings"].to_string();
        assert!(!settings.contains("relabel"), "{stage}: {settings}");
    }
    assert!(run.fails("relabel", &[]).contains("relabel.enabled"));
    // On is not the same training, and off again is the first one.
    let trained = |run: &RunDir| run.json("refine/iter_0001/train/stage.json")["fingerprint"].clone();
    let first = trained(&run);
    assert!(run.ok("refine", &ENABLED).contains("train: starts"));
    assert_ne!(trained(&run), first);
    run.ok("refine", &[]);
    assert_eq!(trained(&run), first);
}

#[test]
fn what_cannot_be_relabelled_is_named() {
    let config = format!("{}/configs/connect4.toml", env!("CARGO_MANIFEST_DIR"));
    let other = RunDir::new(&std::fs::read_to_string(config).unwrap());
    for job in ["refine", "relabel"] {
        let said = other.fails(job, &ENABLED);
        assert!(said.contains("relabel.enabled") && said.contains("chess"), "{said}");
    }
    let run = played_with_the_fake();
    assert!(run.fails("relabel", &["--set", "relabel.limit={nodes=0}"]).contains("relabel.limit"));
    // A shard of self-play that is gone would be missing from the answers too.
    for ending in ["parquet", "json"] {
        std::fs::remove_file(run.path(&format!("{SELFPLAY}/shard-00001.{ending}"))).unwrap();
    }
    let said = run.fails("relabel", &[]);
    assert!(said.contains(SELFPLAY) && said.contains("make selfplay"), "{said}");
}
