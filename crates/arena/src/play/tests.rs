//! Matches between scripted players: no engine, no network, no files but the match folder.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dataset::{Dataset, OnBad};
use games::{Chess, Line, Move, MoverValue, Outcome, Reference, Score, Solver, Termination, TicTacToe};
use search::{Choice, SearchError};
use tempfile::TempDir;

use super::*;
use crate::{Adjudication, DrawRule, Elo, EloModel, OpeningSource, ResignRule};

/// What a scripted player does at one of its moves: its number in the game, the line and the player's generator.
type Script<G> = Arc<dyn Fn(u32, &Line<G>, &mut Rng) -> Result<Choice, PlayerError> + Send + Sync>;

struct Scripted<G: Game> {
    name: String,
    rng: Rng,
    moves: u32,
    games: Arc<AtomicU64>,
    script: Script<G>,
}

impl<G: Game> Player<G> for Scripted<G> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn new_game(&mut self, game_seed: u64) -> Result<(), PlayerError> {
        (self.rng, self.moves) = (Rng::new(game_seed), 0);
        self.games.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn choose(&mut self, line: &Line<G>) -> Result<Choice, PlayerError> {
        self.moves += 1;
        (self.script)(self.moves, line, &mut self.rng)
    }
}

/// A side of a test match, and how many games its players began.
struct Team<G: Game> {
    name: &'static str,
    games: Arc<AtomicU64>,
    script: Script<G>,
}

impl<G: Game> Team<G> {
    fn new(
        name: &'static str,
        script: impl Fn(u32, &Line<G>, &mut Rng) -> Result<Choice, PlayerError> + Send + Sync + 'static,
    ) -> Self {
        Team { name, games: Arc::default(), script: Arc::new(script) }
    }

    fn player(&self, _slot: usize) -> Result<Box<dyn Player<G>>, PlayerError> {
        Ok(Box::new(Scripted {
            name: self.name.to_owned(),
            rng: Rng::new(0),
            moves: 0,
            games: Arc::clone(&self.games),
            script: Arc::clone(&self.script),
        }))
    }

    fn games_begun(&self) -> u64 {
        self.games.load(Ordering::SeqCst)
    }
}

fn random_move<G: Game>(line: &Line<G>, rng: &mut Rng) -> Move {
    let legal = line.state().legal_moves();
    legal[rng.below(legal.len())]
}

fn random<G: Game>() -> Team<G> {
    Team::new("random", |_, line, rng| Ok(Choice::plain(random_move(line, rng))))
}

fn perfect() -> Team<TicTacToe> {
    Team::new("solver", |_, line, rng| Ok(Choice::plain(Solver::default().choose(line.state(), rng))))
}

/// Plays at random, but fails at its first move of every game whose first random number is even.
fn forfeiting<G: Game>(termination: Termination) -> Team<G> {
    Team::new("fragile", move |n, line, rng| {
        if n == 1 && rng.next_u64().is_multiple_of(2) {
            let reason = "the fake engine said so".to_owned();
            return Err(PlayerError::Forfeit { name: "fragile".to_owned(), termination, reason });
        }
        Ok(Choice::plain(random_move(line, rng)))
    })
}

/// A random player with an opinion about every move of its own.
fn opinionated(name: &'static str, score: i32) -> Team<Chess> {
    Team::new(name, move |_, line, rng| {
        Ok(Choice { score: Some(Score::Cp(score)), ..Choice::plain(random_move(line, rng)) })
    })
}

fn play<G: Game>(spec: &MatchSpec, a: &Team<G>, b: &Team<G>, folder: &TempDir) -> Result<MatchReport, ArenaError> {
    play_match(spec, &|slot| a.player(slot), &|slot| b.player(slot), folder.path(), &Stop::manual())
}

fn toy(games: u64, concurrency: usize) -> MatchSpec {
    MatchSpec { openings: OpeningSource::Random { plies: 2 }, concurrency, ..MatchSpec::new("toy", games, 11) }
}

/// A report without what the clock on the wall determines.
fn untimed(report: MatchReport) -> MatchReport {
    MatchReport { seconds: 0.0, thinking: Default::default(), ..report }
}

fn text(folder: &TempDir, file: &str) -> String {
    std::fs::read_to_string(folder.path().join(file)).unwrap()
}

fn records(folder: &TempDir) -> Vec<GameRecord> {
    let dataset = Dataset::open(&[folder.path().join("games")], OnBad::Stop).unwrap();
    assert!(dataset.warnings().is_empty(), "{:?}", dataset.warnings());
    (0..dataset.shards().len()).flat_map(|i| dataset.read_shard(i).unwrap()).collect()
}

#[test]
fn a_perfect_player_never_loses_and_the_folder_holds_it_all() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (perfect(), random());
    let spec = MatchSpec { openings: OpeningSource::Random { plies: 1 }, ..toy(40, 2) };
    let report = play(&spec, &a, &b, &folder).unwrap();
    assert_eq!((report.games, report.total.losses, report.capped), (40, 0, 0));
    assert!(report.total.wins > 20 && report.score.unwrap() > 0.75, "{report}");
    assert_eq!(report.as_white.games(), 20);
    assert_eq!(report.pairs.pairs(), 20);
    assert_eq!((report.player_a.as_str(), report.player_b.as_str()), ("solver", "random"));

    let games = records(&folder);
    assert_eq!(games.len(), 40);
    for (id, game) in games.iter().enumerate() {
        assert_eq!((game.game_id, game.opening_plies), (id as u64, 1));
        assert_eq!(game.white, if id % 2 == 0 { "solver" } else { "random" });
        let end = game.check::<TicTacToe>().unwrap();
        assert!(matches!(end.state().outcome(), Outcome::Decided { result, .. } if Some(result) == game.result));
        assert_eq!(game.moves[0], games[id ^ 1].moves[0], "both games of a pair have one opening");
    }
    let json: MatchReport = serde_json::from_str(&text(&folder, "report.json")).unwrap();
    assert_eq!(json.total, report.total);
    assert_eq!(text(&folder, "report.txt"), report.to_string());
    assert_eq!(text(&folder, "games.pgn").matches("[Event \"toy\"]").count(), 40);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let run = |concurrency| {
        let folder = tempfile::tempdir().unwrap();
        let report = play(&toy(60, concurrency), &random::<TicTacToe>(), &random(), &folder).unwrap();
        (untimed(report), records(&folder), text(&folder, "games.pgn"))
    };
    let one = run(1);
    assert!(one.0.distinct_games > 30, "{}", one.0);
    assert_eq!(run(4), one);
}

#[test]
fn a_finished_match_plays_nothing_and_reports_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (random::<TicTacToe>(), random());
    let report = play(&toy(10, 2), &a, &b, &folder).unwrap();
    let files = || ["report.json", "report.txt", "games.pgn"].map(|file| text(&folder, file));
    let before = files();
    std::fs::remove_file(folder.path().join("report.txt")).unwrap();
    assert_eq!(play(&toy(10, 2), &a, &b, &folder).unwrap(), report);
    assert_eq!(files(), before);
    assert_eq!((a.games_begun(), b.games_begun()), (10, 10));
}

#[test]
fn a_larger_number_of_games_extends_a_match() {
    let (long, short) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (random::<TicTacToe>(), random());
    play(&toy(30, 1), &a, &b, &long).unwrap();
    let (a, b) = (random::<TicTacToe>(), random());
    play(&toy(12, 1), &a, &b, &short).unwrap();
    let report = play(&toy(30, 3), &a, &b, &short).unwrap();
    assert_eq!((report.games, a.games_begun()), (30, 30));
    assert_eq!(records(&short), records(&long));
    assert_eq!(play(&toy(12, 1), &a, &b, &short).unwrap().games, 12, "and a smaller one reports on the first");
}

#[test]
fn a_stopped_match_resumes_without_replaying() {
    let undisturbed = tempfile::tempdir().unwrap();
    play(&toy(40, 1), &random::<TicTacToe>(), &random(), &undisturbed).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let stop = Stop::manual();
    let a = random::<TicTacToe>();
    let (request, begun) = (stop.clone(), Arc::clone(&a.games));
    let b = Team::<TicTacToe>::new("random", move |_, line, rng| {
        if begun.load(Ordering::SeqCst) == 17 {
            request.request();
        }
        Ok(Choice::plain(random_move(line, rng)))
    });
    let stopped = play_match(&toy(40, 1), &|slot| a.player(slot), &|slot| b.player(slot), folder.path(), &stop);
    assert!(matches!(stopped, Err(ArenaError::Interrupted(_))), "{stopped:?}");
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    let report: MatchReport = serde_json::from_str(&report).unwrap();
    assert_eq!((report.games, report.unfinished_of, report.pairs.pairs()), (16, Some(40), 8));
    let pgn = std::fs::read_to_string(folder.path().join("games.pgn")).unwrap();
    assert_eq!(pgn.matches("[Event ").count(), 16);
    assert!(!folder.path().join("games").exists(), "shards are written at the end");

    let (a, b) = (random::<TicTacToe>(), random());
    play(&toy(40, 3), &a, &b, &folder).unwrap();
    assert_eq!(a.games_begun(), 24, "16 games were finished");
    assert_eq!(records(&folder), records(&undisturbed));
}

#[test]
fn a_torn_journal_costs_the_torn_game() {
    let folder = tempfile::tempdir().unwrap();
    play(&toy(20, 1), &random::<TicTacToe>(), &random(), &folder).unwrap();
    let whole = records(&folder);
    let path = folder.path().join(JOURNAL);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let a = random::<TicTacToe>();
    play(&toy(20, 1), &a, &random(), &folder).unwrap();
    assert_eq!(a.games_begun(), 1);
    assert_eq!(records(&folder), whole);
}

#[test]
fn a_stop_request_ends_within_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let slow = || {
        Team::<Chess>::new("slow", |_, line, rng| {
            thread::sleep(Duration::from_millis(100));
            Ok(Choice::plain(random_move(line, rng)))
        })
    };
    let (a, b, stop) = (slow(), slow(), Stop::manual());
    let request = stop.clone();
    let timer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(250));
        request.request();
        Instant::now()
    });
    let spec = MatchSpec { concurrency: 4, ..MatchSpec::new("m", 40, 1) };
    let stopped = play_match(&spec, &|slot| a.player(slot), &|slot| b.player(slot), folder.path(), &stop);
    let ended = Instant::now();
    assert!(matches!(stopped, Err(ArenaError::Interrupted(_))));
    assert!(ended - timer.join().unwrap() < Duration::from_secs(2));
}

#[test]
fn u5_a_fault_loses_its_game_and_the_batch_goes_on() {
    for termination in [Termination::Stall, Termination::Disconnect] {
        let folder = tempfile::tempdir().unwrap();
        let report = play(&toy(40, 2), &forfeiting::<TicTacToe>(termination), &random(), &folder).unwrap();
        let faults = report.faults_a.get(termination.as_str()).copied().unwrap_or(0);
        assert_eq!(report.games, 40);
        assert!(faults > 8 && faults < 32, "{report}");
        assert_eq!(report.terminations.get(termination.as_str()), Some(&faults));
        assert!(report.faults_b.is_empty());
        for game in records(&folder).iter().filter(|g| g.termination == termination) {
            let lost =
                if game.white == "fragile" { games::GameResult::BlackWins } else { games::GameResult::WhiteWins };
            assert_eq!(game.result, Some(lost));
        }
    }
}

#[test]
fn u5_a_fault_at_the_start_of_a_game_is_one_too() {
    struct NeverReady;
    impl Player<TicTacToe> for NeverReady {
        fn name(&self) -> String {
            "never ready".to_owned()
        }
        fn new_game(&mut self, _: u64) -> Result<(), PlayerError> {
            let (name, reason) = ("never ready".to_owned(), "no readyok".to_owned());
            Err(PlayerError::Forfeit { name, termination: Termination::Stall, reason })
        }
        fn choose(&mut self, line: &Line<TicTacToe>) -> Result<Choice, PlayerError> {
            Ok(Choice::plain(line.state().legal_moves()[0]))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let b = random::<TicTacToe>();
    let report =
        play_match(&toy(4, 1), &|_| Ok(Box::new(NeverReady)), &|s| b.player(s), folder.path(), &Stop::manual())
            .unwrap();
    assert_eq!((report.total.losses, report.faults_a.get("stall")), (4, Some(&4)));
    assert!(matches!(report.elo, Elo::Below { .. }));
}

#[test]
fn u8_u20_the_first_illegal_move_ends_the_game() {
    let folder = tempfile::tempdir().unwrap();
    let cheat = Team::<Chess>::new("cheat", |n, line, rng| {
        Ok(Choice::plain(if n == 3 { Move(0) } else { random_move(line, rng) }))
    });
    let report = play(&MatchSpec::new("m", 6, 3), &random(), &cheat, &folder).unwrap();
    assert_eq!((report.total.wins, report.faults_b.get("illegal_move")), (6, Some(&6)), "{report}");
    for game in records(&folder) {
        game.check::<Chess>().unwrap();
        assert!(game.opening.is_some());
    }
}

#[test]
fn a_fatal_error_ends_the_match_and_keeps_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let games = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&games);
    let broken = Team::<TicTacToe>::new("network", move |n, line, rng| {
        if n == 1 && counter.fetch_add(1, Ordering::SeqCst) == 9 {
            return Err(SearchError::NotFinite { what: "a NaN value" }.into());
        }
        Ok(Choice::plain(random_move(line, rng)))
    });
    let error = play(&toy(40, 1), &random(), &broken, &folder).unwrap_err();
    assert!(matches!(&error, ArenaError::Player { game: Some(9), .. }), "{error:?}");
    let message = pipeline::error_chain(&error);
    assert!(message.contains("B (network)") && message.contains("NaN"), "{message}");
    let again = random::<TicTacToe>();
    let repaired = Team { name: "network", ..random::<TicTacToe>() };
    assert_eq!(play(&toy(40, 2), &again, &repaired, &folder).unwrap().games, 40);
    assert_eq!(again.games_begun(), 31);
}

#[test]
fn a_player_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let a = random::<TicTacToe>();
    let failing = |_: usize| -> Result<Box<dyn Player<TicTacToe>>, PlayerError> { Err(SearchError::Stopped.into()) };
    let error = play_match(&toy(4, 1), &|s| a.player(s), &failing, folder.path(), &Stop::manual()).unwrap_err();
    assert!(matches!(&error, ArenaError::Player { player, game: None, .. } if player == "B"), "{error:?}");
}

#[test]
fn a_worker_that_dies_is_an_error_not_a_hang() {
    let folder = tempfile::tempdir().unwrap();
    let dying = Team::<TicTacToe>::new("dying", |_, _, _| panic!("scripted death"));
    let error = play(&toy(400, 2), &random(), &dying, &folder).unwrap_err();
    assert!(matches!(&error, ArenaError::Worker { message } if message.contains("scripted death")), "{error:?}");
}

#[test]
fn u18_the_ply_cap_gives_no_result_and_leaves_the_elo() {
    let folder = tempfile::tempdir().unwrap();
    let spec = MatchSpec { max_plies: 14, concurrency: 2, ..MatchSpec::new("m", 8, 1) };
    let report = play(&spec, &random::<Chess>(), &random(), &folder).unwrap();
    assert_eq!((report.capped, report.pairs_left_out, report.total.games()), (8, 4, 0));
    assert_eq!(report.elo, Elo::Unknown);
    for game in records(&folder) {
        assert_eq!((game.result, game.termination, game.moves.len()), (None, Termination::MaxPlies, 14));
    }
    assert_eq!(text(&folder, "games.pgn").matches("[Result \"*\"]").count(), 8);
}

#[test]
fn u20_late_is_lost_but_for_a_bare_king() {
    let folder = tempfile::tempdir().unwrap();
    let book = folder.path().join("book.epd");
    std::fs::write(&book, "4k3/8/8/8/8/8/8/R3K3 w - - 0 1\n").unwrap();
    let openings = OpeningSource::Book { path: book, plies: None };
    let spec = MatchSpec { openings, ..MatchSpec::new("m", 2, 1) };
    let late = Team::<Chess>::new("late", |_, _, _| {
        let (name, reason) = ("late".to_owned(), "answered after 2 s of 1 s".to_owned());
        Err(PlayerError::Forfeit { name, termination: Termination::Time, reason })
    });
    let matches = tempfile::tempdir().unwrap();
    let report = play(&spec, &late, &random(), &matches).unwrap();
    // With White the flag falls against a bare king: drawn. With Black it is lost to a rook.
    assert_eq!(
        (report.as_white, report.as_black),
        (Wdl { draws: 1, ..Wdl::default() }, Wdl { losses: 1, ..Wdl::default() })
    );
    assert_eq!((report.terminations.get("time"), report.faults_a.get("time")), (Some(&2), Some(&1)));
}

#[test]
fn u20_a_flag_falls_on_the_clock_of_the_game() {
    let clock = Some("0.6+0.01".parse().unwrap());
    let spec = MatchSpec { clocks: [clock, None], concurrency: 2, ..MatchSpec::new("m", 4, 1) };
    // Sees its clock run down by its own thinking alone, and moves until it falls.
    let thinker = Team::<Chess>::new("thinker", |n, line, rng| {
        thread::sleep(Duration::from_millis(if n < 4 { 5 } else { 700 }));
        Ok(Choice::plain(random_move(line, rng)))
    });
    let slow = Team::<Chess>::new("slow", |_, line, rng| {
        thread::sleep(Duration::from_millis(30));
        Ok(Choice::plain(random_move(line, rng)))
    });
    let folder = tempfile::tempdir().unwrap();
    let report = play(&spec, &thinker, &slow, &folder).unwrap();
    assert_eq!((report.faults_a.get("time"), report.total.losses), (Some(&4), 4), "{report}");
    for game in records(&folder) {
        let moves = game.moves.len() - usize::from(game.opening_plies);
        let own = if game.white == "thinker" { moves.div_ceil(2) } else { moves / 2 };
        assert!(own <= 3, "the fourth move comes too late to be played: {own}");
    }
    assert_eq!(report.thinking[0].moves, 16, "the late move is timed too");
    assert!(report.thinking[0].longest_ms >= 700.0 && report.thinking[1].mean_ms >= 30.0, "{report}");
    let unclocked = MatchSpec { clocks: [None; 2], ..spec };
    let error = play(&unclocked, &thinker, &slow, &folder).unwrap_err();
    assert!(error.to_string().contains("`clocks`"), "{error}");
}

#[test]
fn players_see_the_clocks() {
    struct Watcher(Vec<search::Clocks>, Arc<std::sync::Mutex<Vec<search::Clocks>>>);
    impl Player<TicTacToe> for Watcher {
        fn name(&self) -> String {
            "watcher".to_owned()
        }
        fn new_game(&mut self, _: u64) -> Result<(), PlayerError> {
            self.1.lock().unwrap().append(&mut self.0);
            Ok(())
        }
        fn see_clocks(&mut self, clocks: search::Clocks) {
            self.0.push(clocks);
        }
        fn choose(&mut self, line: &Line<TicTacToe>) -> Result<Choice, PlayerError> {
            Ok(Choice::plain(line.state().legal_moves()[0]))
        }
    }
    let seen = Arc::default();
    let watcher = |_: usize| -> Result<Box<dyn Player<TicTacToe>>, PlayerError> {
        Ok(Box::new(Watcher(Vec::new(), Arc::clone(&seen))))
    };
    let clocks = [Some("60+1".parse().unwrap()), Some("30".parse().unwrap())];
    let spec = MatchSpec { clocks, openings: OpeningSource::Start {}, ..MatchSpec::new("m", 4, 1) };
    let folder = tempfile::tempdir().unwrap();
    let b = random::<TicTacToe>();
    let report = play_match(&spec, &watcher, &|s| b.player(s), folder.path(), &Stop::manual()).unwrap();
    assert!(report.faults_a.is_empty() && report.faults_b.is_empty(), "{report}");
    // A has White in its first game: 60 s that never run out and a second more a move; the other side has no increment.
    let seen: Vec<search::Clocks> = seen.lock().unwrap().clone();
    let (base, second) = (Duration::from_secs(60), Duration::from_secs(1));
    assert_eq!((seen[0].left, seen[0].increment), ([Some(base), Some(base / 2)], [second, Duration::ZERO]));
    assert!(seen[1].left[0].unwrap() > base && seen[1].left[1].unwrap() <= base / 2, "{:?}", seen[1]);
}

#[test]
fn times_are_kept_over_a_resume() {
    let folder = tempfile::tempdir().unwrap();
    let sleepy = || {
        Team::<TicTacToe>::new("sleepy", |_, line, rng| {
            thread::sleep(Duration::from_millis(2));
            Ok(Choice::plain(random_move(line, rng)))
        })
    };
    play(&toy(6, 1), &sleepy(), &random(), &folder).unwrap();
    let report = play(&toy(10, 2), &sleepy(), &random(), &folder).unwrap();
    let plies: usize = records(&folder).iter().map(|r| r.moves.len() - usize::from(r.opening_plies)).sum();
    let [a, b] = report.thinking;
    assert_eq!(a.moves + b.moves, plies as u64);
    assert!(a.mean_ms >= 2.0 && a.longest_ms >= a.mean_ms && b.mean_ms < a.mean_ms, "{report}");
    // A match of an older build has no times, and says nothing of them.
    std::fs::remove_file(folder.path().join(TIMES)).unwrap();
    let report = play(&toy(10, 2), &sleepy(), &random(), &folder).unwrap();
    assert!(!report.to_string().contains("time a move"), "{report}");
}

#[test]
fn c9_lost_games_and_dead_draws_are_adjudicated() {
    let rules = Adjudication { resign: Some(ResignRule::default()), draw: None };
    let spec = MatchSpec { adjudication: rules, ..MatchSpec::new("m", 4, 1) };
    let folder = tempfile::tempdir().unwrap();
    let report = play(&spec, &opinionated("sure", 20), &opinionated("lost", -700), &folder).unwrap();
    assert_eq!((report.total.wins, report.terminations.get("adjudication")), (4, Some(&4)), "{report}");
    for game in records(&folder) {
        let lost = game.score.iter().flatten().filter(|s| **s == -700).count();
        assert_eq!(lost, 3, "the loser's third score ends the game");
        assert!(game.score[..usize::from(game.opening_plies)].iter().all(Option::is_none));
    }
    let rules = Adjudication { resign: None, draw: Some(DrawRule { moves: 2, from_ply: 0, ..DrawRule::default() }) };
    let spec = MatchSpec { adjudication: rules, ..MatchSpec::new("m", 4, 1) };
    let folder = tempfile::tempdir().unwrap();
    let report = play(&spec, &opinionated("even", 3), &opinionated("also even", 0), &folder).unwrap();
    assert_eq!(report.terminations.get("adjudication"), Some(&report.total.draws));
    assert!(report.total.draws >= 3, "{report}");
}

#[test]
fn a_test_ends_a_match_at_a_pair_whatever_the_threads() {
    let sprt = SprtSpec { elo0: 0.0, elo1: 100.0, alpha: 0.05, beta: 0.05, model: EloModel::Logistic };
    let run = |concurrency| {
        let folder = tempfile::tempdir().unwrap();
        let spec = MatchSpec { sprt: Some(sprt), ..toy(400, concurrency) };
        let report = play(&spec, &perfect(), &random(), &folder).unwrap();
        assert_eq!(report.sprt.unwrap().verdict, Verdict::AcceptH1);
        assert_eq!(records(&folder).len() as u64, report.games);
        untimed(report)
    };
    let one = run(1);
    assert!(one.games.is_multiple_of(2) && one.games < 400, "{one}");
    assert_eq!(run(4), one);
}

#[test]
fn a_folder_of_another_match_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    play(&toy(4, 1), &random::<TicTacToe>(), &random(), &folder).unwrap();
    let other_seed = MatchSpec { seed: 12, ..toy(4, 1) };
    let error = play(&other_seed, &random::<TicTacToe>(), &random(), &folder).unwrap_err();
    assert!(error.to_string().contains("`seed`"), "{error}");
    let error = play(&toy(6, 1), &perfect(), &random(), &folder).unwrap_err();
    assert!(error.to_string().contains("`solver`"), "{error}");
}

#[test]
fn a_book_that_changed_since_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let book = folder.path().join("book.epd");
    let spec = |games| {
        let openings = OpeningSource::Book { path: book.clone(), plies: None };
        MatchSpec { openings, max_plies: 4, ..MatchSpec::new("m", games, 1) }
    };
    std::fs::write(&book, "4k3/8/8/8/8/8/8/R3K3 w - - 0 1\n").unwrap();
    let matches = tempfile::tempdir().unwrap();
    play(&spec(2), &random::<Chess>(), &random(), &matches).unwrap();
    std::fs::write(&book, "4k3/8/8/8/8/8/8/4K2R w - - 0 1\n").unwrap();
    let error = play(&spec(4), &random::<Chess>(), &random(), &matches).unwrap_err();
    assert!(error.to_string().contains("game 0 began with another opening"), "{error}");
}

#[test]
fn what_a_player_tells_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let thinker = Team::<TicTacToe>::new("thinker", |_, line, rng| {
        let m = random_move(line, rng);
        let visits = line.state().legal_moves().into_iter().map(|m| (m, 7)).collect();
        Ok(Choice { value: Some(MoverValue(0.25)), visits: Some(visits), ..Choice::plain(m) })
    });
    play(&toy(2, 1), &thinker, &random(), &folder).unwrap();
    for game in records(&folder) {
        let own = usize::from(game.black == "thinker");
        for ply in 0..game.moves.len() {
            let chosen = ply >= 2 && ply % 2 == own;
            assert_eq!(game.value.as_ref().unwrap()[ply], chosen.then_some(0.25));
            assert_eq!(game.visits[ply].is_some(), chosen);
        }
    }
    assert!(text(&folder, "games.pgn").contains("{v=+0.250 n="));
}
