//! Matches of any two players, and tables of features, over the fake engine.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use arena::{MatchReport, Verdict};
use dataset::{Dataset, GameRecord, OnBad};
use games::{Chess, Game, GameResult, Termination};
use nn::{Best, Checkpoint, CheckpointInfo, NetConfig, Network};

use crate::kills::{assert_whole_folder, disturbed};
use crate::run_dir::{RunDir, fake_engine, finish, signal, small_profile, wait_until};

/// A strong engine against a weak one. Games end soon: by mate, by resignation, or at the cap.
fn strong_and_weak(rules: &str) -> String {
    let engine = fake_engine();
    let engine = engine.display();
    format!(
        r#"
[first]
engine = "{engine}"
args = ["--seed", "1", "--name", "Strong 1"]

[second]
engine = "{engine}"
args = ["--seed", "2", "--name", "Weak 2"]
options = {{ "Skill Level" = 0, Hash = 4 }}

[match]
limit = {{ nodes = 50 }}
max_plies = 160
adjudication = {{ resign = {{ moves = 2, cp = 300 }} }}
{rules}
"#
    )
}

fn folder(run: &RunDir) -> PathBuf {
    run.root().join("data/match/run")
}

fn report(run: &RunDir) -> MatchReport {
    serde_json::from_str(&std::fs::read_to_string(folder(run).join("report.json")).unwrap()).unwrap()
}

fn records(run: &RunDir) -> Vec<GameRecord> {
    let data = Dataset::open(&[folder(run).join("games")], OnBad::Stop).unwrap();
    (0..data.shards().len()).flat_map(|i| data.read_shard(i).unwrap()).collect()
}

#[test]
fn a_match_is_reported_kept_and_extended() {
    let run = RunDir::new(&strong_and_weak("games = 12\nconcurrency = 2"));
    let said = run.ok("match", &[]);
    for words in [
        "A               Strong 1 Threads=1 Hash=16 nodes=50\n",
        "B               Weak 2 Threads=1 Hash=4 Skill Level=0 nodes=50\n",
        "pairs           6 (LL 0, ",
        "A is stronger   with probability",
        "lost by fault   A: none; B: none",
        "time a move     A: ",
        "12 of 12 games are distinct",
    ] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    let first = report(&run);
    assert!(first.score.unwrap() > 0.8, "{said}");
    let timed = first.thinking[0].moves + first.thinking[1].moves;
    let games = records(&run);
    assert_eq!(timed, games.iter().map(|g| g.moves.len() as u64 - u64::from(g.opening_plies)).sum::<u64>());
    for pair in games.chunks(2) {
        let opening = |game: &GameRecord| game.moves[..usize::from(game.opening_plies)].to_vec();
        assert_eq!((opening(&pair[0]), &pair[0].white), (opening(&pair[1]), &pair[1].black));
    }
    let pgn = std::fs::read_to_string(folder(&run).join("games.pgn")).unwrap();
    assert_eq!(pgn.matches("[Event \"match/run\"]").count(), 12);
    assert!(!folder(&run).join("slots").exists(), "the engines left nothing in their folders");

    assert!(run.ok("match", &[]).contains("match/run: done already"));
    let said = run.ok("match", &["--set", "match.games=16"]);
    assert!(said.contains("match/run: extends"), "{said}");
    assert_eq!(records(&run)[..12], games, "and the games before are the same");
    assert!(report(&run).games == 16 && report(&run).distinct_games == 16);
    let said = run.ok("match", &["--set", "second.options.Hash=8"]);
    assert!(said.contains("starts anew") && said.contains("Hash=8"), "another player is another match: {said}");
}

#[test]
fn a_killed_match_plays_every_game_once_and_keeps_their_times() {
    let slow = strong_and_weak("games = 16\nconcurrency = 2").replace("\"--seed\"", "\"--slow\", \"1\", \"--seed\"");
    let (killed, whole) = (RunDir::new(&slow), RunDir::new(&slow));
    disturbed(&killed, &whole, "match", &[], 6);
    assert_whole_folder(&folder(&killed).join("games"), 16);
    assert_eq!(records(&killed), records(&whole));
    let moves = |run: &RunDir| report(run).thinking.map(|thinking| thinking.moves);
    assert_eq!(moves(&killed), moves(&whole));
}

#[test]
fn a_test_ends_the_match_and_names_its_model() {
    let sprt = "games = 400\nsprt = { elo0 = 0, elo1 = 50, model = \"normalized\" }";
    let run = RunDir::new(&strong_and_weak(sprt));
    let said = run.ok("match", &[]);
    let report = report(&run);
    assert!(report.games < 400 && report.games.is_multiple_of(2), "{said}");
    assert_eq!(report.sprt.unwrap().verdict, Verdict::AcceptH1);
    assert!(said.contains("SPRT            normalised Elo 0 against 50") && said.contains("accepts 50"), "{said}");
    assert!(run.ok("match", &[]).contains("done already"));
}

#[test]
fn u5_a_failing_engine_loses_its_games_and_is_started_again() {
    // Without a state file the engine counts afresh whenever it is started again.
    let faulty = |flags: &str, termination: Termination| {
        let config = strong_and_weak("games = 8").replace("\"--seed\", \"1\"", flags);
        let run = RunDir::new(&config);
        let said = run.ok("match", &[]);
        let report = report(&run);
        let lost = report.faults_a.get(termination.as_str()).copied().unwrap_or(0);
        assert!(lost > 0 && report.games == 8 && report.faults_b.is_empty(), "{said}");
        assert!(said.contains(&format!("lost by fault   A: {} {lost}; B: none", termination.as_str())), "{said}");
        for game in records(&run).iter().filter(|game| game.termination == termination) {
            let failed_with_white = game.white.starts_with("Strong");
            let winner = if failed_with_white { GameResult::BlackWins } else { GameResult::WhiteWins };
            assert_eq!(game.result, Some(winner));
        }
        assert!(said.contains("forfeits"), "the log tells of it: {said}");
    };
    faulty("\"--die-every\", \"9\"", Termination::Disconnect);
    faulty("\"--illegal-every\", \"9\"", Termination::IllegalMove);
}

#[test]
fn u5_an_engine_that_never_answers_ends_the_match_and_hangs_nothing() {
    let config = strong_and_weak("games = 20\nanswer_seconds = 0.2").replace("\"--seed\", \"1\"", "\"--hang\", \"go\"");
    let run = RunDir::new(&config);
    let started = Instant::now();
    let said = run.fails("match", &[]);
    assert!(said.contains("5 times in a row") && said.contains("A (Strong 1"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(60));
    let config = config.replace("\"--hang\", \"go\"", "\"--seed\", \"1\"");
    run.write_profile(&config);
    run.ok("match", &[]);
    assert_whole_folder(&folder(&run).join("games"), 20);
}

#[test]
fn each_slot_and_side_has_a_folder_of_its_own() {
    let config =
        strong_and_weak("games = 8\nconcurrency = 2").replace("\"--seed\"", "\"--state\", \"moves\", \"--seed\"");
    let run = RunDir::new(&config);
    run.ok("match", &[]);
    let moves = |slot: &str, side: &str| -> u64 {
        let file = folder(&run).join("slots").join(slot).join(side).join("moves");
        std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
    };
    let counts = [("0", "first"), ("0", "second"), ("1", "first"), ("1", "second")].map(|(a, b)| moves(a, b));
    let report = report(&run);
    assert_eq!(counts.iter().sum::<u64>(), report.thinking[0].moves + report.thinking[1].moves);
    assert!(counts.iter().all(|n| *n > 0));
    assert!(!run.root().join("moves").exists());
}

#[test]
fn u20_clocks_run_and_a_flag_falls() {
    let clocked = |slow: u32, tc: &str| {
        let config = strong_and_weak(&format!("games = 2\nmargin_ms = 0\ntc = \"{tc}\""))
            .replace("limit = { nodes = 50 }\n", "")
            .replace("\"--seed\", \"2\"", &format!("\"--slow\", \"{slow}\", \"--seed\", \"2\""));
        let run = RunDir::new(&config);
        let said = run.ok("match", &[]);
        (report(&run), said)
    };
    let (even, said) = clocked(1, "60+0.1");
    assert!(said.contains("Strong 1 Threads=1 Hash=16 tc=60+0.1\n"), "{said}");
    assert!(even.faults_a.is_empty() && even.faults_b.is_empty(), "{said}");
    let (late, said) = clocked(400, "0.9");
    assert_eq!((late.faults_b.get("time"), late.total.wins), (Some(&2), 2), "{said}");
    assert!(late.thinking[1].longest_ms >= 400.0, "{said}");
}

#[test]
fn networks_and_engines_play_each_other() {
    let run = RunDir::new("");
    let network = run.root().join("data/nets/small");
    let config = NetConfig { blocks: 1, channels: 8, ..NetConfig::default() };
    let untrained = Network::new(&config.architecture(Chess::SHAPE), &nn::select_device("cpu").unwrap(), 3).unwrap();
    let store = pipeline::Store::open(&network).unwrap();
    Checkpoint::save_network(&store, &untrained, Best::Candidate, &CheckpointInfo::default()).unwrap();
    // The same network by our own search and as the engine `tabiya`, which is found beside the job.
    run.write_profile(
        "[first]\nnetwork = \"data/nets/small\"\nsimulations = 12\nsearch = { c_puct = 1.5 }\n\
         [second]\nengine = \"tabiya\"\nargs = [\"--network\", \"data/nets/small\"]\nlimit = { nodes = 12 }\n\
         [match]\ngames = 4\nmax_plies = 30\ndevice = \"cpu\"\n",
    );
    let said = run.ok("match", &[]);
    let name = format!("tabiya {} c_puct=1.5 simulations=12\n", &store_fingerprint(&store)[..8]);
    assert!(said.contains(&name), "{name} is not in\n{said}");
    assert!(said.contains("nodes=12\n") && said.contains("4 of 4 games are distinct"), "{said}");
    // Other weights are another player.
    let other = Network::new(&config.architecture(Chess::SHAPE), &nn::select_device("cpu").unwrap(), 4).unwrap();
    Checkpoint::save_network(&store, &other, Best::Candidate, &CheckpointInfo::default()).unwrap();
    let said = run.ok("match", &[]);
    assert!(said.contains("starts anew") && !said.contains(&name), "{said}");
}

fn store_fingerprint(store: &pipeline::Store) -> String {
    Checkpoint::load(store).unwrap().fingerprint()
}

#[test]
fn an_engine_that_was_built_anew_is_another_player() {
    let run = RunDir::new("");
    let script = run.root().join("engine.sh");
    let write = |comment: &str| {
        let text = format!("#!/bin/sh\n# {comment}\nexec '{}' \"$@\"\n", fake_engine().display());
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("first build");
    let config = strong_and_weak("games = 2").replace(&fake_engine().display().to_string(), "./engine.sh");
    run.write_profile(&config);
    run.ok("match", &[]);
    assert!(run.ok("match", &[]).contains("done already"));
    write("second build");
    assert!(run.ok("match", &[]).contains("starts anew"));
}

#[test]
fn what_an_engine_is_told_to_load_belongs_to_the_match() {
    let run = RunDir::new("");
    let script = run.root().join("engine.sh");
    // Arguments say nothing to it.
    std::fs::write(&script, format!("#!/bin/sh\nexec '{}'\n", fake_engine().display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let weights = run.root().join("weights.bin");
    std::fs::write(&weights, "one").unwrap();
    let player = "engine = \"./engine.sh\"\nlimit = { nodes = 20 }\n";
    run.write_profile(&format!(
        "[first]\n{player}args = [\"--load\", \"./weights.bin\"]\n[second]\n{player}[match]\ngames = 2\nmax_plies = 20\n"
    ));
    let said = run.ok("match", &[]);
    assert!(said.contains(" ./weights.bin="), "{said}");
    assert!(run.ok("match", &[]).contains("done already"));
    std::fs::write(&weights, "two").unwrap();
    assert!(run.ok("match", &[]).contains("starts anew"));
}

#[test]
fn descriptions_that_cannot_be_followed_name_file_and_key() {
    let run = RunDir::new(&strong_and_weak("games = 2"));
    for (setting, named) in [
        ("first.engin=\"x\"", "first.engin"),
        ("first.engine=\"\"", "`first.engine`"),
        ("first.options.Hush=3", "`first.options.Hush`"),
        ("first.options.Hash=0", "min 1 max 33554432"),
        ("first.elo=800", "min 1350 max 2850"),
        ("match.games=3", "`match.games`"),
        ("match.sprt={elo0=5, elo1=0}", "`match.sprt`"),
        ("match.openings={source=\"book\", path=\"no.epd\"}", "no.epd"),
        ("match.tc=\"1+1\"", "`match.tc`"),
    ] {
        let said = run.fails("match", &["--set", setting]);
        assert!(said.contains(named) && said.contains("run.toml"), "{setting}: {said}");
        assert_eq!(said.lines().filter(|l| l.starts_with("error")).count(), 1, "{said}");
    }
    let said = run.fails("match", &["--set", "first.args=[\"--plain\"]", "--set", "first.elo=1500"]);
    assert!(said.contains("`first.elo`") && said.contains("no option UCI_Elo"), "{said}");
    let said = run.fails("match", &["--set", "first.engine=\"no-such-engine\""]);
    assert!(said.contains("no-such-engine"), "{said}");
    let network = ["first.engine=\"\"", "first.args=[]", "first.network=\"no/such/folder\""];
    let said = run.fails("match", &network.map(|setting| ["--set", setting]).concat());
    assert!(said.contains("no/such/folder"), "{said}");
    assert!(!folder(&run).exists());
}

/// A table of two features of the fake engine: its skill, which is worth much, and its table, which is worth nothing.
fn table() -> String {
    format!(
        "[features]\nengine = \"{}\"\nargs = [\"--slow\", \"2\"]\ngames = 8\nmax_plies = 80\nlimit = {{ nodes = 50 }}\n\
         [[row]]\nname = \"Skill, all of it\"\noption = \"Skill Level\"\nvalue = 0\n\
         [[row]]\nname = \"hash\"\noption = \"Hash\"\nvalue = 4\nlimit = {{ depth = 3 }}\ngames = 4\n",
        fake_engine().display()
    )
}

#[test]
fn features_are_played_row_by_row_and_written_as_a_table() {
    let run = RunDir::new(&table());
    let page = run.root().join("docs/features.md");
    let read = || std::fs::read_to_string(&page).unwrap_or_default();
    let job = run.start("features", &[]);
    wait_until("the first row is written", || {
        read().contains("| Skill, all of it |  | `Skill Level=0` | nodes=50 | 8 |")
    });
    assert!(read().contains("| hash |  | `Hash=4` | depth=3 | | not played yet |") || read().contains("depth=3 | 4 |"));
    signal(job.id(), "TERM");
    finish(job);

    let said = run.ok("features", &[]);
    assert!(said.contains("run/skill-all-of-it: done already"), "{said}");
    let text = read();
    assert!(text.contains("Tabiya Fake 1.0 plays itself") && text.contains("| depth=3 | 4 |"), "{text}");
    assert!(!text.contains("not played yet"), "{text}");
    assert!(text.lines().filter(|l| l.starts_with("| ")).count() == 3, "{text}");
    let json = run.json("features.json");
    let report: MatchReport = serde_json::from_value(json["features"][0]["report"].clone()).unwrap();
    assert!(report.score.unwrap() > 0.7 && report.player_a.contains("Threads=1 Hash=16 nodes"), "{report}");
    assert!(report.player_b.contains("Skill Level=0"), "{report}");
    let even: MatchReport = serde_json::from_value(json["features"][1]["report"].clone()).unwrap();
    assert_eq!(even.pairs.pairs() + even.pairs_left_out, 2);
    assert!(run.path("skill-all-of-it/games.pgn").exists());

    // Nothing is left to do, and the page is the same.
    let said = run.ok("features", &[]);
    assert_eq!(said.matches("done already").count(), 2, "{said}");
    assert_eq!(read(), text);
}

#[test]
fn a_row_of_an_option_that_the_engine_lacks_is_refused_before_anything_is_played() {
    let run = RunDir::new(&table().replace("option = \"Hash\"", "option = \"Hashish\""));
    let said = run.fails("features", &[]);
    assert!(said.contains("row \"hash\"") && said.contains("Hashish") && said.contains("run.toml"), "{said}");
    assert!(!run.path("skill-all-of-it").exists());
    run.write_profile(&small_profile());
    assert!(run.fails("features", &[]).contains("run.toml"));
}
