use games::{Chess, Connect4, GameResult, Termination, TicTacToe};

use super::*;
use crate::testing::{chess_game, connect4_game, selfplay_game, tictactoe_game};

/// A sample on its own.
#[derive(PartialEq, Debug)]
struct Taken {
    packed: Packed,
    legal: Vec<u16>,
    target: Vec<(u16, f32)>,
    value: Option<f32>,
}

fn samples<G: Game>(record: &GameRecord, targets: &TargetSpec) -> Vec<Taken> {
    let mut out = Samples::default();
    replay::<G>(record, targets, false, &mut out).unwrap();
    let take = |i| out.get(i).unwrap();
    let own = |s: Sample<'_>| Taken {
        packed: s.head.packed,
        legal: s.legal().to_vec(),
        target: s.target().collect(),
        value: s.head.value,
    };
    (0..out.len()).map(take).map(own).collect()
}

const RESULT_ONLY: TargetSpec = TargetSpec { value_lambda: 0.0, score_scale: 400.0, policy: PolicyTarget::Best };

#[test]
fn m3_the_result_alternates_with_the_mover_and_a_draw_is_0_for_both() {
    let mut record = chess_game(1, 40);
    (record.opening_plies, record.termination) = (0, Termination::Adjudication);
    for (result, white) in [(GameResult::WhiteWins, 1.0), (GameResult::BlackWins, -1.0), (GameResult::Draw, 0.0)] {
        record.result = Some(result);
        for (ply, sample) in samples::<Chess>(&record, &RESULT_ONLY).iter().enumerate() {
            let expected: f32 = if ply % 2 == 0 { white } else { -white };
            assert_eq!(sample.value, Some(expected));
        }
    }
}

#[test]
fn a_black_start_has_blacks_view_first() {
    let mut record = GameRecord::new("chess", 0);
    record.start_fen = Some("k7/8/8/8/8/8/2p4K/1N1N4 b - - 0 1".into());
    record.moves = vec![Chess::from_fen(record.start_fen.as_deref().unwrap()).unwrap().parse_move("c2c1q").unwrap()];
    (record.best, record.score) = (vec![None], vec![None]);
    (record.result, record.termination) = (Some(GameResult::BlackWins), Termination::Resignation);
    assert_eq!(samples::<Chess>(&record, &RESULT_ONLY)[0].value, Some(1.0));
}

#[test]
fn values_mix_score_and_result_and_fall_back_on_either() {
    let spec = TargetSpec { value_lambda: 0.25, ..TargetSpec::default() };
    let mut record = chess_game(1, 6);
    record.opening_plies = 0;
    record.score = vec![Some(0), None, Some(31_999), Some(-32_000), Some(400), None];
    (record.result, record.termination) = (Some(GameResult::WhiteWins), Termination::Resignation);
    let value = |r: &GameRecord| samples::<Chess>(r, &spec).iter().map(|s| s.value).collect::<Vec<_>>();
    let q = Score::Cp(400).expectation(400.0);
    assert_eq!(
        value(&record),
        [0.75, -1.0, 1.0, -1.0, 0.25 * q + 0.75, -1.0].map(Some),
        "z alone where the score is null; mates are +-1"
    );
    (record.result, record.termination) = (None, Termination::MaxPlies);
    assert_eq!(value(&record), [Some(0.0), None, Some(1.0), Some(-1.0), Some(q), None], "q alone, or nothing");
    record.value = Some(vec![Some(0.5), None, None, None, None, None]);
    assert_eq!(value(&record)[0], Some(0.5), "a search value comes before a score");
}

/// The planes of training are those of play, for the same game and ply.
#[test]
fn m4_planes_in_training_equal_planes_in_play() {
    fn check<G: Game>(record: &GameRecord) {
        let samples = samples::<G>(record, &RESULT_ONLY);
        let mut state = G::start();
        let mut played = Vec::new();
        for (ply, m) in record.moves.iter().enumerate() {
            if ply >= usize::from(record.opening_plies) {
                let mut planes = vec![0.0; G::SHAPE.inputs()];
                samples[played.len()].packed.write_planes(G::SHAPE, &mut planes);
                assert_eq!(planes, state.planes());
                let legal: Vec<u16> = state.legal_moves().iter().map(|m| state.index(*m)).collect();
                assert_eq!(samples[played.len()].legal, legal);
                played.push(*m);
            }
            state.play(*m);
        }
        assert_eq!(samples.len(), played.len(), "opening plies are no samples");
    }
    check::<Chess>(&chess_game(5, 80));
    check::<Connect4>(&connect4_game(5));
    check::<TicTacToe>(&tictactoe_game(5));
}

#[test]
fn visits_become_a_distribution() {
    let spec = TargetSpec { policy: PolicyTarget::Visits, ..TargetSpec::default() };
    let mut record = selfplay_game(9, 30);
    record.visits[5] = Some(record.visits[5].take().unwrap_or_default().into_iter().map(|(m, _)| (m, 0)).collect());
    let state = |ply: usize| {
        let mut state = Chess::start();
        record.moves[..ply].iter().for_each(|m| state.play(*m));
        state
    };
    for (i, sample) in samples::<Chess>(&record, &spec).iter().enumerate() {
        let ply = i + usize::from(record.opening_plies);
        let sum: f32 = sample.target.iter().map(|(_, p)| p).sum();
        let visits = record.visits[ply].as_deref().unwrap_or_default();
        let total: u32 = visits.iter().map(|(_, n)| n).sum();
        if total == 0 {
            assert!(sample.target.is_empty());
            continue;
        }
        assert!((sum - 1.0).abs() < 1e-5);
        assert!(sample.target.windows(2).all(|w| w[0].0 < w[1].0));
        let most = visits.iter().max_by_key(|(_, n)| *n).unwrap();
        let index = state(ply).index(most.0);
        let p = sample.target.iter().find(|(i, _)| *i == index).unwrap().1;
        assert!((p - most.1 as f32 / total as f32).abs() < 1e-6);
    }
    let corpus = chess_game(9, 30);
    let best = samples::<Chess>(&corpus, &TargetSpec::default());
    assert_eq!(samples::<Chess>(&corpus, &spec), best, "a teacher's game gives its best moves");
    let played = samples::<Chess>(&corpus, &TargetSpec { policy: PolicyTarget::Played, ..TargetSpec::default() });
    let differ = best.iter().zip(&played).filter(|(a, b)| a.target != b.target).count();
    assert_eq!(differ, corpus.best[4..].iter().flatten().count());
}

#[test]
fn an_illegal_move_is_an_error_that_leaves_nothing() {
    let mut record = chess_game(3, 30);
    record.best[20] = Some(games::Move(0));
    let mut out = Samples::default();
    replay::<Chess>(&chess_game(1, 10), &RESULT_ONLY, false, &mut out).unwrap();
    let before = out.clone();
    let error = replay::<Chess>(&record, &RESULT_ONLY, false, &mut out).unwrap_err().to_string();
    assert!(error.contains("game 3, ply 20"), "{error}");
    assert_eq!(out, before);
    assert!(
        replay::<Connect4>(&record, &RESULT_ONLY, false, &mut out).unwrap_err().to_string().contains("not of connect4")
    );
}

#[test]
fn transpositions_have_one_key() {
    let line = |moves: &[&str]| {
        let mut state = Chess::start();
        for m in moves {
            let m = state.parse_move(m).unwrap();
            state.play(m);
        }
        position_key(&state.pack())
    };
    let a = line(&["g1f3", "g8f6", "b1c3"]);
    assert_eq!(a, line(&["b1c3", "g8f6", "g1f3"]));
    assert_eq!(a, line(&["b1c3", "g8f6", "g1f3", "f6g8", "f3g1", "g8f6", "g1f3"]), "whatever the clocks");
    assert_ne!(a, line(&["b1c3", "g8f6"]));
}
