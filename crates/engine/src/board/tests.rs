use games::{Chess, Game};
use shakmaty::zobrist::Zobrist64;
use shakmaty::{EnPassantMode, Position};

use super::Board;
use crate::testing::{board, random_positions};

/// Every field that is carried from move to move is what a board set up from shakmaty's position has: squares, rights,
/// en passant, clock, keys, sums and checkers.
#[test]
fn a_board_after_a_move_equals_a_board_set_up_afresh() {
    let mut positions = 0;
    random_positions(4, |game, moves| {
        let here = Board::from(game.position());
        for m in moves {
            let mut next = game.clone();
            next.play(*m);
            assert_eq!(here.after(*m), Board::from(next.position()), "{} after {}", game.fen(), game.move_text(*m));
        }
        positions += 1;
    });
    assert!(positions > 2000, "{positions}");
}

/// The key is the rules' own: side to move, castling rights and legal en passant are in it, and nothing else.
#[test]
fn the_key_is_shakmatys_zobrist_hash() {
    random_positions(4, |game, _| {
        let hash: Zobrist64 = game.position().zobrist_hash(EnPassantMode::Legal);
        assert_eq!(Board::from(game.position()).key(), hash.0, "{}", game.fen());
    });
}

#[test]
fn the_key_has_side_to_move_castling_and_legal_en_passant() {
    let key = |fen: &str| board(fen).key();
    let rooks = key("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
    for other in ["b KQkq", "w Qkq", "w Kkq", "w KQq", "w KQk", "w -"] {
        assert_ne!(key(&format!("r3k2r/8/8/8/8/8/8/R3K2R {other} - 0 1")), rooks, "{other}");
    }
    assert_eq!(key("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 7 9"), rooks, "clocks are not in it");
    // C7: a square that no pawn can take on is none, by FEN and by moves (C1: nor one where the taker is pinned).
    let legal = key("7k/8/8/K2pP3/8/8/8/8 w - d6 0 2");
    assert_ne!(legal, key("7k/8/8/K2pP3/8/8/8/8 w - - 0 2"));
    assert_eq!(key("8/8/8/K2pP2r/8/8/8/7k w - d6 0 2"), key("8/8/8/K2pP2r/8/8/8/7k w - - 0 2"));
    for (fen, text, expected) in [
        ("7k/3p4/8/K3P3/8/8/8/8 b - - 0 1", "d7d5", legal),
        ("8/3p4/8/K3P2r/8/8/8/7k b - - 0 1", "d7d5", key("8/8/8/K2pP2r/8/8/8/7k w - - 0 2")),
    ] {
        let game = Chess::from_fen(fen).unwrap();
        let next = Board::from(game.position()).after(game.parse_move(text).unwrap());
        assert_eq!(next.key(), expected, "{fen}");
    }
}

/// A null move is another position: the other side to move, and nothing to take in passing.
#[test]
fn a_null_move_changes_the_key() {
    for fen in ["7k/8/8/K2pP3/8/8/8/8 w - d6 0 2", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"] {
        let here = board(fen);
        let passed = here.after_pass();
        assert_ne!(passed.key(), here.key());
        let swapped = fen.replace(" w ", " b ").replace(" d6 ", " - ");
        assert_eq!(passed.key(), board(&swapped).key());
        assert_eq!((passed.turn(), passed.en_passant(), passed.is_check()), (!here.turn(), None, false));
        assert_eq!(passed.after_pass().after_pass(), {
            let mut twice = passed.clone();
            twice.halfmoves += 2;
            twice
        });
    }
}

#[test]
fn c6_insufficient_material_is_that_of_the_rules() {
    for fen in [
        "8/8/4k3/8/8/3K4/8/8 w - - 0 1",
        "8/8/4k3/8/8/3KN3/8/8 w - - 0 1",
        "8/8/4kb2/8/8/3K4/8/8 w - - 0 1",
        "8/8/4kb2/8/8/3KB3/8/8 w - - 0 1",
        "8/8/4kb2/8/8/3K1B2/8/8 w - - 0 1",
        "8/8/4kn2/8/8/3KB3/8/8 w - - 0 1",
        "8/8/4kn2/8/8/3KN3/8/8 w - - 0 1",
        "8/8/4k3/8/8/3KNN2/8/8 w - - 0 1",
        "8/8/4k3/8/8/3KP3/8/8 w - - 0 1",
        "B7/1B6/2B1k3/8/8/3K4/8/8 w - - 0 1",
    ] {
        let game = Chess::from_fen(fen).unwrap();
        assert_eq!(board(fen).is_insufficient_material(), game.is_insufficient_material(), "{fen}");
    }
    random_positions(6, |game, _| {
        let own = Board::from(game.position()).is_insufficient_material();
        assert_eq!(own, game.is_insufficient_material(), "{}", game.fen());
    });
}
