use super::*;
use crate::{Rng, is_reachable};

fn random_game(rng: &mut Rng, mut visit: impl FnMut(&Chess, &[Move])) {
    let mut game = Chess::start();
    let mut moves = Vec::new();
    for _ in 0..300 {
        if game.generate(&mut moves) != Outcome::Ongoing {
            break;
        }
        visit(&game, &moves);
        game.play(moves[rng.below(moves.len())]);
    }
}

/// Legal moves round-trip through both encodings over 100,000 random positions, and their indices are distinct.
#[test]
fn m2_legal_moves_round_trip_over_100_000_positions() {
    let mut rng = Rng::new(11);
    let (mut positions, mut reached) = (0, std::collections::HashSet::new());
    while positions < 100_000 {
        random_game(&mut rng, |game, moves| {
            positions += 1;
            let legal = game.position.legal_moves();
            assert_eq!(legal.len(), moves.len());
            for m in &legal {
                let code = Chess::encode(*m);
                assert!(moves.contains(&code));
                assert_eq!(game.decode(code), Some(*m));
            }
            let indices: Vec<u16> = moves.iter().map(|m| game.index(*m)).collect();
            assert!(indices.windows(2).all(|w| w[0] < w[1]), "sorted and distinct in {}", game.fen());
            assert!(indices.iter().all(|i| is_reachable(*i)));
            reached.extend(indices);
        });
    }
    assert!(reached.len() > 1_500, "random play reaches {} slots", reached.len());
}

/// Every code is asked: those of no move, of other promotions and of moves that leave the king in check too.
#[test]
fn m2_exactly_the_generated_moves_are_legal() {
    let mut rng = Rng::new(15);
    let castling = "r3k2r/pPppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBP1P/R3K2R w KQkq - 0 1";
    let taking = "8/8/8/1Ppp3r/1K3p1k/8/4P1P1/1R6 w - c6 0 1";
    let mut states: Vec<Chess> = [castling, taking].map(|fen| Chess::from_fen(fen).unwrap()).into();
    random_game(&mut rng, |game, _| states.push(game.clone()));
    let mut indices = Vec::new();
    for state in states.iter().take(60) {
        let moves = state.legal_moves();
        state.legal_indices(&mut indices);
        assert_eq!(indices, moves.iter().map(|m| state.index(*m)).collect::<Vec<_>>());
        for m in (0..=u16::MAX).map(Move) {
            let legal = moves.contains(&m);
            assert_eq!(state.is_legal(m), legal, "{m:?} in {}", state.fen());
            assert_eq!(state.index_in(&indices, m), legal.then(|| state.index(m)), "{m:?} in {}", state.fen());
        }
    }
}

#[test]
fn incremental_hash_equals_fresh_and_text_round_trips() {
    let mut rng = Rng::new(12);
    for _ in 0..60 {
        random_game(&mut rng, |game, moves| {
            assert_eq!(game.hash(), hash(&game.position));
            assert_eq!(Chess::from_fen(&game.fen()).unwrap().position, game.position);
            let m = moves[0];
            assert_eq!(game.parse_move(&game.move_text(m)).unwrap(), m);
            assert_eq!(game.parse_san(&game.san(m)).unwrap(), m);
        });
    }
}

/// The position with colours swapped and ranks flipped.
fn mirrored(game: &Chess) -> Chess {
    let setup = game.position.to_setup(EnPassantMode::Legal);
    let mut mirror = setup.clone();
    mirror.mirror();
    Chess::from_position(mirror.position(CastlingMode::Standard).unwrap())
}

#[test]
fn mirrored_positions_give_mirrored_planes_and_moves() {
    let mut rng = Rng::new(13);
    for _ in 0..60 {
        random_game(&mut rng, |game, moves| {
            let mirror = mirrored(game);
            assert_ne!(mirror.turn(), game.turn());
            assert_eq!(mirror.pack(), game.pack());
            assert_eq!(mirror.pack().key(), game.pack().key());
            let other = mirror.legal_moves();
            let index = |g: &Chess, ms: &[Move]| ms.iter().map(|m| g.index(*m)).collect::<Vec<_>>();
            assert_eq!(index(game, moves), index(&mirror, &other));
            for (a, b) in moves.iter().zip(&other) {
                assert_eq!(a.0 ^ b.0, 56 | 56 << 6, "the same move in mirrored squares");
            }
        });
    }
}

#[test]
fn m4_planes_follow_the_design() {
    let game = Chess::from_fen("r3k2r/8/8/3pP3/8/8/8/R3K3 w Qkq d6 0 12").unwrap();
    let planes = game.planes();
    let at = |plane: usize, square: usize| planes[plane * 64 + square];
    assert_eq!(at(0, 36), 1.0, "own pawn on e5");
    assert_eq!(at(6, 35), 1.0, "their pawn on d5");
    assert_eq!(at(5, 4), 1.0, "own king on e1");
    assert!((0..64).all(|s| at(12, s) == 1.0));
    assert_eq!((at(13, 0), at(14, 0), at(15, 0), at(16, 0)), (0.0, 1.0, 1.0, 1.0));
    assert_eq!(at(17, 43), 1.0, "d6 can be taken");
    for (clock, expected) in [(0, 0.0), (99, 0.99)] {
        let game = Chess::from_fen(&format!("7k/8/5K2/6Q1/8/8/8/8 w - - {clock} 120")).unwrap();
        let planes = game.planes();
        assert_eq!((planes[18 * 64], planes[19 * 64 + 63]), (expected, 1.0));
    }
    // The same position with Black to move fills the same planes from the other side.
    let black = Chess::from_fen("r3k3/8/8/8/3Pp3/8/8/R3K2R b KQq d3 0 12").unwrap();
    assert_eq!(black.planes(), planes);
    // An en-passant square that no legal capture uses is not in the planes, as it is not in the hash.
    let pinned = Chess::from_fen("8/8/8/K2pP2r/8/8/8/7k w - d6 0 2").unwrap();
    assert_eq!(pinned.pack().bits[17], 0);
}

#[test]
fn channel_last_and_plane_first_hold_the_same_numbers() {
    let mut rng = Rng::new(14);
    let shape = Chess::SHAPE;
    random_game(&mut rng, |game, _| {
        let planes = game.planes();
        let mut last = vec![9.0; shape.inputs()];
        game.pack().write_channels_last(shape, &mut last);
        let mut appended = vec![7.0];
        game.pack().append_channels_last(shape, &mut appended);
        assert_eq!(appended[1..], last);
        for plane in 0..shape.planes() {
            for square in 0..64 {
                assert_eq!(planes[plane * 64 + square], last[square * shape.planes() + plane]);
            }
        }
    });
}

#[test]
fn m2_twelve_promotions_in_twelve_slots() {
    let white = Chess::from_fen("1n1n4/2P4k/8/8/8/8/8/K7 w - - 0 1").unwrap();
    let black = Chess::from_fen("k7/8/8/8/8/8/2p4K/1N1N4 b - - 0 1").unwrap();
    let slots = |g: &Chess| {
        let promotions = g.legal_moves().into_iter().filter(|m| Promotion::role(*m).is_some());
        promotions.map(|m| g.index(m)).collect::<Vec<_>>()
    };
    assert_eq!(slots(&white).len(), 12);
    assert_eq!(slots(&white), slots(&black));
}

#[test]
fn u11_castling_text() {
    let game = Chess::from_fen("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1").unwrap();
    let (standard, chess960) = (game.parse_move("e1g1").unwrap(), game.parse_move("e1h1").unwrap());
    assert_eq!(standard, chess960);
    assert_eq!(game.move_text(standard), "e1g1");
    assert_eq!(game.uci_text(standard, CastlingMode::Chess960), "e1h1");
}

#[test]
fn c1_pinned_en_passant_counts_as_no_right_and_a_legal_one_counts() {
    let play = |fen: &str, moves: &str| {
        let mut game = Chess::from_fen(fen).unwrap();
        for m in moves.split(' ') {
            game.try_play(game.parse_move(m).unwrap()).unwrap();
        }
        game.outcome()
    };
    let legal = "7k/3p4/8/K3P3/8/8/8/8 b - - 0 1";
    let twice = "d7d5 a5a4 h8g8 a4a5 g8h8 a5a4 h8g8 a4a5 g8h8";
    assert_eq!(play(legal, twice), Outcome::Ongoing);
    assert!(matches!(
        play(legal, &format!("{twice} a5a4")),
        Outcome::Decided { result: GameResult::Draw, reason: Termination::Threefold }
    ));
}

/// C7: the three spellings of the en-passant field give one key.
#[test]
fn c7_one_key_for_three_spellings() {
    let mut game = Chess::start();
    game.try_play(game.parse_move("e2e4").unwrap()).unwrap();
    for mode in [EnPassantMode::Legal, EnPassantMode::PseudoLegal, EnPassantMode::Always] {
        assert_eq!(Chess::from_fen(&game.fen_with(mode)).unwrap().hash(), game.hash());
    }
}
