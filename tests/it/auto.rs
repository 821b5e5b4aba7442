//! `engine.path = "auto"` where there is no Stockfish: our own engine stands in, and everything says so.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dataset::{Dataset, OnBad};
use tempfile::TempDir;
use uci::{Engine, EngineSpec};

use crate::run_dir::{RunDir, fake_engine, job_path, small_profile};

/// The fake engine under another name and with these arguments.
fn stand_in(folder: &Path, name: &str, args: &str) {
    let script = format!("#!/bin/sh\nexec '{}' {args} \"$@\"\n", fake_engine().display());
    std::fs::write(folder.join(name), script).unwrap();
    std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world without Stockfish, and what its engine calls itself. Our own engine is taken from beside the executables; where
/// it is not built, the fake one has its name.
fn no_stockfish() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let built = job_path("corpus").with_file_name("tabiya-ab");
    if !built.exists() {
        stand_in(folder.path(), "tabiya-ab", "--plain --name 'Stand-in 1.0'");
    }
    let path = if built.exists() { built } else { folder.path().join("tabiya-ab") };
    let name = Engine::start(&EngineSpec::new(path)).unwrap().name().to_owned();
    (folder, name)
}

#[test]
fn the_chain_runs_without_stockfish_and_says_who_played() {
    let (folder, name) = no_stockfish();
    let profile = small_profile();
    let engine = profile.lines().find(|line| line.starts_with("engine = ")).unwrap();
    let run = RunDir::with_engines(&profile.replace(engine, ""), folder.path());
    let said = run.ok("corpus", &[]);
    assert!(said.contains("no Stockfish was found, tabiya-ab at"), "{said}");
    assert!(said.contains(&format!("played by {name} nodes=50")), "{said}");
    let corpus = Dataset::open(&[run.path("corpus")], OnBad::Stop).unwrap();
    assert!(corpus.read_shard(0).unwrap().iter().all(|game| game.white == format!("{name} nodes=50")));
    run.ok("pretrain", &[]);
    run.ok("refine", &[]);

    // The profile asks for UCI_Elo 1500, which our own engine does not have.
    let said = run.ok("eval", &[]);
    for words in [
        format!("B               {name} nodes=50\n"),
        format!("no Stockfish was found, {name} stands in for it: nobody has rated it, so no rating is claimed"),
        "plays at its limit alone, as it has no UCI_Elo (eval.elo = 1500)".to_owned(),
    ] {
        assert!(said.contains(&words), "{words} is not in\n{said}");
    }
    let report = run.ok("report", &[]);
    assert!(report.contains("no rating is claimed") && report.contains(&format!("of {name} nodes=50")), "{report}");
    assert!(run.ok("eval", &[]).contains("done already"));

    // Stockfish was installed: another opponent is another match.
    stand_in(folder.path(), "stockfish", "--name 'Stockfish 0'");
    let said = run.ok("eval", &[]);
    assert!(said.contains("eval: starts anew") && said.contains("B               Stockfish 0 UCI_Elo=1500"), "{said}");
    assert!(!said.contains("no rating"), "{said}");

    // And so is one of the same name that plays otherwise.
    stand_in(folder.path(), "stockfish", "--name 'Stockfish 0' --seed 9");
    assert!(run.ok("eval", &[]).contains("eval: starts anew"));
    assert!(run.ok("eval", &[]).contains("done already"));
}

#[test]
fn a_match_against_whatever_is_there_says_who_it_was() {
    let (folder, name) = no_stockfish();
    let fake = fake_engine();
    let lab = format!(
        "[first]\nengine = \"{}\"\n[second]\nengine = \"auto\"\n[match]\ngames = 2\nmax_plies = 40\nlimit = {{ nodes = 50 }}",
        fake.display()
    );
    let run = RunDir::with_engines(&lab, folder.path());
    let said = run.ok("match", &[]);
    assert!(said.contains(&format!("second: no Stockfish was found, {name} (tabiya-ab at")), "{said}");
    assert!(said.contains(&format!("B               {name} ")), "{said}");
    let games = Dataset::open(&[run.root().join("data/match/run/games")], OnBad::Stop).unwrap();
    assert!(
        games.read_shard(0).unwrap().iter().all(|game| game.white.starts_with(&name) || game.black.starts_with(&name))
    );
    assert!(run.ok("match", &[]).contains("done already"));

    stand_in(folder.path(), "stockfish", "--name 'Stockfish 0'");
    let said = run.ok("match", &[]);
    assert!(said.contains("starts anew") && said.contains("B               Stockfish 0 "), "{said}");
}

#[test]
fn no_engine_at_all_says_where_it_was_looked_for() {
    let empty = TempDir::new().unwrap();
    let run = RunDir::with_engines(&small_profile(), empty.path());
    let said = run.fails("corpus", &["--set", "engine.path=\"stockfish\""]);
    assert!(said.contains(&empty.path().join("stockfish").display().to_string()), "{said}");
    assert!(!said.contains("/usr/games") && said.contains("make build"), "{said}");
}

#[test]
fn u17_an_engine_without_a_rating_is_not_asked_for_one() {
    let run = RunDir::new(&small_profile());
    run.ok("corpus", &[]);
    run.ok("pretrain", &[]);
    let plain = ["--set", "engine.args=[\"--plain\"]"];
    let said = run.fails("eval", &plain);
    assert!(said.contains("`eval.elo` = 1500") && said.contains("no option UCI_Elo"), "{said}");
    assert!(said.contains("eval.elo = 0"), "{said}");
    let said = run.ok("eval", &[&plain[..], &["--set", "eval.elo=0"]].concat());
    assert!(said.contains("B               Tabiya Fake 1.0 nodes=50\n"), "{said}");
}
