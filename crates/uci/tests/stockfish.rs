//! The client against the real Stockfish, where one is installed; else these tests pass without doing anything.

use std::time::{Duration, Instant};

use games::{Chess, Game, Line, Score};
use uci::{Engine, EngineError, EngineSpec, Limit, find_engine};

fn stockfish() -> Option<EngineSpec> {
    match find_engine("stockfish") {
        Ok(path) => Some(EngineSpec::new(path).option("Threads", "1").option("Hash", "16")),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn start(spec: &EngineSpec) -> Engine {
    Engine::start(spec).unwrap_or_else(|e| panic!("{e}"))
}

fn position(fen: &str) -> Line<Chess> {
    Line::new(Chess::from_fen(fen).unwrap())
}

#[test]
fn u8_finished_games() {
    let Some(spec) = stockfish() else { return };
    let mut engine = start(&spec);
    assert!(engine.name().starts_with("Stockfish"), "{}", engine.name());
    for (fen, score) in [
        ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3", Score::Mate(0)),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", Score::Cp(0)),
    ] {
        let analysis = engine.analyse(&position(fen), Limit::Depth(3)).unwrap();
        assert_eq!((analysis.m, analysis.score), (None, Some(score)));
        assert!(matches!(engine.play(&position(fen), Limit::Depth(3)), Err(EngineError::NoMove { .. })));
    }
}

#[test]
fn u9_u11_the_engine_follows_our_castles_in_both_modes() {
    let Some(spec) = stockfish() else { return };
    for chess960 in ["false", "true"] {
        let mut engine = start(&spec.clone().option("UCI_Chess960", chess960));
        let mut line = position("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
        for castle in ["e1g1", "e8c8"] {
            line.play(line.state().parse_move(castle).unwrap());
            // Had the engine dropped the castle, it would answer for the other side.
            let answer = engine.play(&line, Limit::Nodes(500)).unwrap();
            assert!(answer.depth.is_some() && answer.nodes.is_some());
        }
        // Castling is the only mate in one, and comes in the engine's own spelling.
        let line = position("4R3/8/8/8/8/5k1P/7P/4K2R w K - 0 1");
        let answer = engine.play(&line, Limit::Depth(4)).unwrap();
        assert_eq!((line.state().san(answer.m).as_str(), answer.score), ("O-O#", Some(Score::Mate(1))));
    }
}

#[test]
fn u12_an_illegal_position_never_reaches_the_engine() {
    let Some(spec) = stockfish() else { return };
    // Stockfish dies of this one. A line begins at a position that has been read, and so it cannot be asked about it.
    assert!(Chess::from_fen("4k3/8/8/8/8/8/8/8 w - - 0 1").is_err());
    let mut engine = start(&spec);
    engine.play(&Line::new(Chess::start()), Limit::Nodes(100)).unwrap();
}

#[test]
fn u13_mate_scores() {
    let Some(spec) = stockfish() else { return };
    let mut engine = start(&spec);
    for (fen, score) in
        [("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", Score::Mate(1)), ("6k1/8/8/8/8/7r/r7/6K1 w - - 0 1", Score::Mate(-1))]
    {
        let answer = engine.play(&position(fen), Limit::Depth(8)).unwrap();
        assert_eq!(answer.score, Some(score), "{fen}");
    }
}

#[test]
fn u16_reduced_strength_answers_with_other_moves_than_it_scores() {
    let Some(spec) = stockfish() else { return };
    let mut weak = start(&spec.clone().option("Skill Level", "0"));
    let scores: Vec<_> =
        (0..40).map(|_| weak.play(&Line::new(Chess::start()), Limit::Depth(3)).unwrap().score).collect();
    assert!(scores.iter().any(Option::is_none), "{scores:?}");
    let mut strong = start(&spec);
    assert!(strong.play(&Line::new(Chess::start()), Limit::Depth(3)).unwrap().score.is_some());
}

#[test]
fn u17_the_range_is_the_engines_own() {
    let Some(spec) = stockfish() else { return };
    let (min, max) = start(&spec).option_table().range("UCI_Elo").unwrap();
    let limited = |elo: i64| spec.clone().option("UCI_LimitStrength", "true").option("UCI_Elo", &elo.to_string());
    for elo in [min - 1, max + 1] {
        let text = Engine::start(&limited(elo)).unwrap_err().to_string();
        assert!(text.contains("option name UCI_Elo type spin") && text.contains(&elo.to_string()), "{text}");
    }
    start(&limited(min)).play(&Line::new(Chess::start()), Limit::Depth(2)).unwrap();
}

#[test]
fn u21_no_position_outlives_its_deadline() {
    let Some(mut spec) = stockfish() else { return };
    spec.deadlines.answer = Duration::from_secs(4);
    let began = Instant::now();
    let line = position("8/PPPPPPPP/nr4RN/qb4BQ/kb4BK/nr4RN/pppppppp/8 w - - 0 1");
    assert_eq!(line.state().legal_moves().len(), 56);
    match start(&spec).play(&line, Limit::Nodes(3000)) {
        Ok(_) | Err(EngineError::Stall { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
}

#[test]
fn u22_a_new_game_makes_play_reproducible() {
    let Some(spec) = stockfish() else { return };
    let mut engine = start(&spec);
    let game = |engine: &mut Engine| {
        let mut line = Line::new(Chess::start());
        let mut seen = Vec::new();
        for _ in 0..16 {
            let answer = engine.play(&line, Limit::Nodes(3000)).unwrap();
            seen.push((answer.m, answer.score, answer.depth, answer.nodes));
            line.play(answer.m);
        }
        seen
    };
    engine.new_game().unwrap();
    let first = game(&mut engine);
    engine.new_game().unwrap();
    assert_eq!(game(&mut engine), first);
    assert_ne!(game(&mut engine), first, "without a new game the hash table is warm");
}

#[test]
fn u20_move_times_are_kept() {
    let Some(mut spec) = stockfish() else { return };
    spec.deadlines.margin = Duration::from_secs(5); // the machine that runs the tests may be busy
    let mut engine = start(&spec);
    let answer = engine.play(&Line::new(Chess::start()), Limit::MoveTime(Duration::from_millis(50))).unwrap();
    // The score may be missing: time may be up when only a bound of the answer is known.
    assert!(answer.time >= Duration::from_millis(20) && answer.depth.is_some(), "{answer:?}");
}
