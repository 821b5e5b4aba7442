//! Searches without a network.

use std::collections::BTreeMap;

use games::{Chess, Color, Connect4, Game, Move, MoverValue, Outcome, Rng, Score, TicTacToe};

use super::Search;
use crate::testing::{HashEvaluator, With};
use crate::tree::{Edge, ROOT};
use crate::{Evaluator, PlayoutCap, Proof, Request, SearchConfig, SearchError, UniformEvaluator, drive};

const MATE: &str = "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1";
const MATE_OF_BLACK: &str = "7K/8/5k2/6q1/8/8/8/8 b - - 0 1";
const MATE_FLIPPED: &str = "8/8/8/8/6q1/5k2/8/7K b - - 0 1";

fn config(simulations: u32) -> SearchConfig {
    SearchConfig { simulations, ..SearchConfig::default() }
}

fn run<G: Game>(config: SearchConfig, root: G, evaluator: &mut dyn Evaluator) -> Search<G> {
    let mut searches = [Search::new(config, root, Rng::new(7))];
    drive(&mut searches, evaluator).unwrap();
    let [search] = searches;
    search
}

fn chess(config: SearchConfig, fen: &str) -> Search<Chess> {
    run(config, Chess::from_fen(fen).unwrap(), &mut UniformEvaluator)
}

/// Visits by policy index: comparable between a position and its mirror image.
fn by_index(search: &Search<Chess>) -> Vec<(u16, u32)> {
    let report = search.root_report().unwrap();
    report.visits.iter().map(|(m, n)| (search.root().index(*m), *n)).collect()
}

/// Visits by the move's true squares.
fn by_text(search: &Search<Chess>) -> BTreeMap<String, u32> {
    let report = search.root_report().unwrap();
    report.visits.iter().map(|(m, n)| (search.root().move_text(*m), *n)).collect()
}

#[test]
fn m1_a_mate_in_one_is_found_from_both_sides() {
    // The third has its ranks flipped too: in the mover's frame it is the first, move for move.
    let positions = [MATE, MATE_OF_BLACK, MATE_FLIPPED];
    for (solve, leaves) in [(true, 1), (true, 8), (false, 1), (false, 8)] {
        let searches = positions.map(|fen| chess(SearchConfig { solve, leaves, ..config(200) }, fen));
        for (search, mate) in searches.iter().zip(["g5g7", "g5g7", "g4g2"]) {
            let report = search.root_report().unwrap();
            let most = report.visits.iter().max_by_key(|v| v.1).unwrap().0;
            assert_eq!(search.root().move_text(most), mate);
            assert_eq!(report.best, most);
            assert!(report.value.0 > 0.5, "{:?}", report.value);
            assert_eq!(report.simulations, 200);
        }
        assert_eq!(by_index(&searches[0]), by_index(&searches[2]));
        if solve {
            // The same squares with the colours swapped: untried moves come in another order, the result is the same.
            assert_eq!(by_text(&searches[0]), by_text(&searches[1]));
        }
    }
    let report = chess(config(200), MATE).root_report().unwrap();
    assert_eq!((report.proof, report.proof.mate()), (Proof::Win(1), Some(Score::Mate(1))));
}

#[test]
fn m1_mirrored_positions_are_searched_alike() {
    // The move number grows after Black's move only, so a mirror image differs in it below the root.
    let mut evaluator = With(|request: &mut Request| {
        let packed = request.packed;
        request.packed.scalars[1] = 0.0;
        let done = HashEvaluator.evaluate(std::slice::from_mut(request));
        request.packed = packed;
        done
    });
    let pairs = [
        (
            "r3k2r/pp3ppp/2n5/3p4/3P4/2N5/PP3PPP/R3K2R w KQkq - 3 12",
            "r3k2r/pp3ppp/2n5/3p4/3P4/2N5/PP3PPP/R3K2R b KQkq - 3 12",
        ),
        ("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", "4k3/4p3/8/8/8/8/8/4K3 b - - 0 1"),
    ];
    for (white, black) in pairs {
        let config = SearchConfig { leaves: 4, noise_weight: 0.25, ..config(300) };
        let (white, black) = (Chess::from_fen(white).unwrap(), Chess::from_fen(black).unwrap());
        let (white, black) = (run(config, white, &mut evaluator), run(config, black, &mut evaluator));
        assert_eq!(by_index(&white), by_index(&black));
        assert_eq!(white.root_report().unwrap().value, black.root_report().unwrap().value);
    }
}

#[test]
fn a_mate_in_two_is_proven_and_played() {
    // Two rooks: a7 cuts the king off, b6-b8 mates after any move in between.
    let search = chess(config(20_000), "7k/R7/1R6/8/8/8/8/K7 w - - 0 1");
    let report = search.root_report().unwrap();
    assert_eq!(report.proof, Proof::Win(1));
    assert_eq!(search.root().move_text(report.best), "b6b8");
    let search = chess(config(20_000), "8/7k/1R6/R7/8/8/8/K7 w - - 0 1");
    let report = search.root_report().unwrap();
    assert_eq!(report.proof.mate(), Some(Score::Mate(2)), "{report:?}");
    assert_eq!(report.value, MoverValue(1.0));
}

#[test]
fn a_mated_line_is_avoided() {
    // Ra8 mates unless Black makes room for the king or keeps the knight near.
    let fen = "6k1/5ppp/2n5/8/8/8/5PPP/R5K1 b - - 0 1";
    let search = chess(config(2000), fen);
    let report = search.root_report().unwrap();
    let lost: Vec<Move> = search.tree.edges(0).filter(|(_, e)| e.proof.is_loss()).map(|(m, _)| m).collect();
    assert!(!lost.is_empty(), "some moves allow Ra8 mate");
    assert!(!lost.contains(&report.best));
    assert!(report.visits.iter().all(|(m, n)| *n == 0 || !lost.contains(m)), "lost moves are no policy target");
    let mut search = search;
    for _ in 0..200 {
        let m = search.choose(1.0).unwrap();
        assert!(!lost.contains(&m), "not at any temperature");
    }
}

#[test]
fn tic_tac_toe_is_solved() {
    let mut game = TicTacToe::start();
    [4, 0, 8].into_iter().for_each(|cell| game.play(Move(cell)));
    let search = run(config(20_000), game, &mut UniformEvaluator);
    let report = search.root_report().unwrap();
    assert_eq!((report.proof, report.value), (Proof::Draw, MoverValue(0.0)));
}

#[test]
fn connect4_takes_a_win_and_stops_one() {
    let play = |moves: &[u16]| {
        let mut game = Connect4::start();
        moves.iter().for_each(|m| game.play(Move(*m)));
        run(config(400), game, &mut UniformEvaluator).root_report().unwrap()
    };
    assert_eq!(play(&[3, 0, 3, 0, 3, 0]).best, Move(3));
    assert_eq!(play(&[3, 0, 3, 0, 3]).best, Move(3), "only the block does not lose at once");
}

#[test]
fn s3_finished_and_drawn_roots() {
    let mated = chess(config(100), "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3");
    assert!(mated.finished() && matches!(mated.root_report(), Err(SearchError::NoMoves { .. })));
    let mut stalemated = chess(config(100), "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1");
    assert!(stalemated.choose(0.0).is_err());
    let mut threefold = Chess::start();
    for text in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"] {
        let m = threefold.parse_move(text).unwrap();
        threefold.play(m);
    }
    assert_ne!(threefold.outcome(), Outcome::Ongoing);
    let report = run(config(100), threefold, &mut UniformEvaluator).root_report().unwrap();
    assert_eq!(report.visits.len(), 20);
    assert_eq!(report.simulations, 100);
}

#[test]
fn c5_the_fifty_move_rule_holds_inside_the_tree() {
    // Clock 99: mate at once or nothing.
    let search = chess(config(200), "7k/8/5K2/6Q1/8/8/8/8 w - - 99 120");
    let proofs: Vec<(String, Proof)> =
        search.tree.edges(0).map(|(m, e)| (search.root().move_text(m), e.proof)).collect();
    let known: Vec<_> = proofs.iter().filter(|p| p.1 != Proof::Unknown).collect();
    assert!(known.iter().all(|(m, p)| *p == if m == "g5g7" { Proof::Win(1) } else { Proof::Draw }), "{known:?}");
    assert_eq!(search.root_report().unwrap().proof, Proof::Win(1));
}

#[test]
fn c4_a_repetition_inside_the_tree_is_a_draw() {
    // White is a queen down and can only repeat: the third repetition is two plies below the root.
    let mut game = Chess::start();
    for text in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1"] {
        let m = game.parse_move(text).unwrap();
        game.play(m);
    }
    let search = run(config(200), game, &mut UniformEvaluator);
    let back = search.root().parse_move("f6g8").unwrap();
    let edge = search.tree.edges(0).find(|(m, _)| *m == back).unwrap().1;
    assert_eq!(edge.proof, Proof::Draw);
}

#[test]
fn a_search_does_not_depend_on_its_batch() {
    let config = SearchConfig { leaves: 3, noise_weight: 0.25, ..config(120) };
    let roots: Vec<Chess> = (0..5)
        .map(|i| {
            let (mut game, mut rng) = (Chess::start(), Rng::new(i));
            for _ in 0..6 + i {
                let moves = game.legal_moves();
                game.play(moves[rng.below(moves.len())]);
            }
            game
        })
        .collect();
    let fresh = || -> Vec<Search<Chess>> {
        roots.iter().enumerate().map(|(i, g)| Search::new(config, g.clone(), Rng::new(i as u64))).collect()
    };
    let mut joint = fresh();
    drive(&mut joint, &mut HashEvaluator).unwrap();
    for (mut alone, joint) in fresh().into_iter().zip(joint) {
        drive(std::slice::from_mut(&mut alone), &mut HashEvaluator).unwrap();
        assert_eq!(alone.root_report().unwrap(), joint.root_report().unwrap());
    }
}

#[test]
fn a_game_by_search_is_reproducible_and_reuses_its_tree() {
    let config = SearchConfig { leaves: 2, noise_weight: 0.25, ..config(60) };
    let game = |reset: Option<Search<Chess>>| {
        let mut search = match reset {
            Some(mut used) => {
                used.reset(Chess::start(), Rng::new(3));
                used
            }
            None => Search::new(config, Chess::start(), Rng::new(3)),
        };
        let mut moves = Vec::new();
        let mut reused = 0;
        for _ in 0..30 {
            drive(std::slice::from_mut(&mut search), &mut HashEvaluator).unwrap();
            let m = search.choose(1.0).unwrap();
            moves.push(m);
            search.advance(m).unwrap();
            reused += search.visits();
            if search.root().outcome() != Outcome::Ongoing {
                break;
            }
        }
        (moves, reused, search)
    };
    let (first, reused, used) = game(None);
    assert!(reused > 60, "subtrees are kept: {reused}");
    assert_eq!(first, game(None).0);
    assert_eq!(first, game(Some(used)).0, "a reset search is like a new one");
}

#[test]
fn advancing_keeps_or_drops_the_subtree() {
    for reuse_tree in [true, false] {
        let mut search = run(SearchConfig { reuse_tree, ..config(300) }, Chess::start(), &mut HashEvaluator);
        let report = search.root_report().unwrap();
        let (best, visits) = (report.best, search.tree.edges(0).map(|(_, e)| e.visits).max().unwrap());
        search.advance(best).unwrap();
        assert_eq!(search.root().turn(), Color::Black);
        assert_eq!(search.visits(), if reuse_tree { visits - 1 } else { 0 });
        assert!(!search.finished());
        drive(std::slice::from_mut(&mut search), &mut HashEvaluator).unwrap();
        assert_eq!(search.root_report().unwrap().simulations, 300);
        assert_eq!(search.tree.node(0).in_flight, 0);
    }
    let mut search = run(config(10), Chess::start(), &mut UniformEvaluator);
    assert!(matches!(search.advance(Move(0)), Err(SearchError::IllegalMove { .. })));
}

#[test]
fn bookkeeping_adds_up() {
    let search = run(SearchConfig { leaves: 7, ..config(777) }, Chess::start(), &mut HashEvaluator);
    for node in 0..search.tree.len() as u32 {
        let place = search.tree.node(node);
        let edges: Vec<Edge> = search.tree.edges(node).map(|(_, e)| e).collect();
        assert_eq!(place.visits, 1 + edges.iter().map(|e| e.visits).sum::<u32>());
        assert!((edges.iter().map(|e| e.prior).sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(edges.iter().all(|e| e.in_flight == 0) && place.in_flight == 0);
        assert!(place.mean().0.abs() <= 1.0);
    }
    let report = search.root_report().unwrap();
    assert_eq!(report.simulations, 777);
    assert_eq!(report.pv[0], report.best);
    let mut line = search.root().clone();
    for m in &report.pv {
        line.try_play(*m).unwrap();
    }
}

#[test]
fn noise_changes_the_root_only_and_can_be_forbidden() {
    let noisy = SearchConfig { noise_weight: 0.5, ..config(50) };
    let priors = |config: SearchConfig, seed: u64, allowed: bool| -> Vec<f32> {
        let mut search = Search::new(config, Chess::start(), Rng::new(seed));
        search.set_noise(allowed);
        drive(std::slice::from_mut(&mut search), &mut UniformEvaluator).unwrap();
        search.tree.edges(0).map(|(_, e)| e.prior).collect()
    };
    assert_ne!(priors(noisy, 1, true), priors(noisy, 2, true));
    assert_eq!(priors(noisy, 1, false), priors(config(50), 1, true));
    assert!((priors(noisy, 1, true).iter().sum::<f32>() - 1.0).abs() < 1e-5);
    let automatic = SearchConfig { noise_alpha: 0.0, ..noisy };
    assert!((priors(automatic, 1, true).iter().sum::<f32>() - 1.0).abs() < 1e-5);
}

#[test]
fn playout_caps_mix_quick_searches_without_noise() {
    let cap = Some(PlayoutCap { full: 0.5, simulations: 10 });
    let config = SearchConfig { playout_cap: cap, noise_weight: 0.25, reuse_tree: false, ..config(40) };
    let mut search = Search::new(config, Chess::start(), Rng::new(9));
    let mut full = 0;
    for _ in 0..40 {
        drive(std::slice::from_mut(&mut search), &mut UniformEvaluator).unwrap();
        let report = search.root_report().unwrap();
        assert_eq!(report.simulations, if report.full { 40 } else { 10 });
        let priors: Vec<f32> = search.tree.edges(0).map(|(_, e)| e.prior).collect();
        let even = priors.iter().all(|p| *p == priors[0]);
        assert_eq!(even && priors.len() > 1, !report.full, "noise in full searches only");
        full += usize::from(report.full);
        search.advance(report.best).unwrap();
    }
    assert!((10..=30).contains(&full), "{full} of 40");
}

#[test]
fn forced_playouts_explore_and_are_pruned_from_the_target() {
    // One move has most of the prior and is good, the others are bad.
    let search = |forced_playouts: f32| {
        let config = SearchConfig { forced_playouts, ..config(400) };
        let mut search = Search::new(config, TicTacToe::start(), Rng::new(1));
        search.tree.evaluated(ROOT, &[0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], MoverValue(0.2));
        for _ in 0..400 {
            let step = search.tree.select(ROOT, &search.rules(ROOT));
            let step = search.tree.enter(step);
            search.tree.back_up(&[step], MoverValue(if step.index == 0 { 0.5 } else { -0.9 }), true);
        }
        search
    };
    let (plain, forced) = (search(0.0), search(2.0));
    let tried = |s: &Search<TicTacToe>| s.tree.edges(ROOT).skip(1).map(|(_, e)| e.visits).sum::<u32>();
    assert!(tried(&forced) > 2 * tried(&plain), "{} and {}", tried(&forced), tried(&plain));
    let target = forced.root_report().unwrap();
    assert_eq!(target.visits[0].1, forced.tree.edges(ROOT).next().unwrap().1.visits);
    let left: u32 = target.visits[1..].iter().map(|v| v.1).sum();
    assert!(left <= tried(&plain), "{left} of the forced visits stay");
    assert_eq!(target.simulations, 400);
}

#[test]
fn m5_bad_answers_are_refused_and_empty_policies_counted() {
    let answer = |priors: f32, value: f32| {
        With(move |request: &mut Request| {
            request.priors = vec![priors; request.legal.len()];
            request.value = MoverValue(value);
            Ok(())
        })
    };
    let drive_with = |mut evaluator: With<_>| {
        let mut search = Search::new(config(20), Chess::start(), Rng::new(1));
        drive(std::slice::from_mut(&mut search), &mut evaluator).map(|()| search)
    };
    assert!(matches!(drive_with(answer(f32::NAN, 0.0)), Err(SearchError::NotFinite { .. })));
    assert!(matches!(drive_with(answer(0.1, f32::NAN)), Err(SearchError::NotFinite { .. })));
    let search = drive_with(answer(0.0, 0.0)).unwrap();
    assert_eq!(search.uniform_priors(), 21, "the root and twenty leaves");
    let plain = run(config(20), Chess::start(), &mut UniformEvaluator);
    assert_eq!(search.root_report().unwrap(), plain.root_report().unwrap());
}

#[test]
fn answers_must_fit_their_requests() {
    let mut search = Search::new(config(20), Chess::start(), Rng::new(1));
    let mut requests = Vec::new();
    search.gather(&mut requests);
    assert_eq!(requests.len(), 1);
    assert!(matches!(search.apply(&mut []), Err(SearchError::AnswerCount { what: "answers", .. })));
    assert!(matches!(search.apply(&mut requests), Err(SearchError::AnswerCount { what: "priors", .. })));
    assert!(matches!(search.advance(Move(0)), Err(SearchError::Pending(1))));
    UniformEvaluator.evaluate(&mut requests).unwrap();
    search.apply(&mut requests).unwrap();
    requests.clear();
    search.gather(&mut requests);
    assert_eq!(requests.len(), 1, "the buffers go round");
}

/// `cargo test --release -p search -- --ignored --nocapture speed`; the target is 100,000 a second on one core.
#[test]
#[ignore = "prints a speed"]
fn speed_on_chess() {
    for leaves in [1, 8] {
        let mut searches: Vec<Search<Chess>> =
            (0..8).map(|i| Search::new(SearchConfig { leaves, ..config(800) }, Chess::start(), Rng::new(i))).collect();
        let mut simulations = 0;
        let start = std::time::Instant::now();
        while start.elapsed().as_secs_f64() < 2.0 {
            drive(&mut searches, &mut UniformEvaluator).unwrap();
            for search in &mut searches {
                simulations += search.visits();
                let m = search.choose(1.0).unwrap();
                search.advance(m).unwrap();
                simulations -= search.visits();
                if search.root().outcome() != Outcome::Ongoing {
                    search.reset(Chess::start(), Rng::new(u64::from(simulations)));
                }
            }
        }
        let rate = f64::from(simulations) / start.elapsed().as_secs_f64();
        println!("leaves {leaves}: {rate:.0} simulations a second");
    }
}
