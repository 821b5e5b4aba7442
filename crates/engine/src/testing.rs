//! Positions that more than one test uses.

use games::{Chess, Game, Move, Outcome, Rng};

use crate::board::Board;

/// Positions with every kind of move: castling, pins, en passant legal and not, promotions, double checks.
pub(crate) const FENS: [&str; 12] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "8/8/8/1Ppp3r/1K3p1k/8/4P1P1/1R6 w - c6 0 2",
    "8/3p4/8/K3P2r/8/8/8/7k b - - 0 1",
    "1n1n4/2P4k/8/8/8/8/8/K7 w - - 0 1",
    "k7/8/8/8/8/8/2p4K/1N1N4 b - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 5",
    "4k3/8/8/2b5/3Pp3/8/8/4RK2 b - d3 0 1",
    "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
];

/// The board of a FEN.
pub(crate) fn board(fen: &str) -> Board {
    Board::from(Chess::from_fen(fen).unwrap_or_else(|e| panic!("{e}")).position())
}

/// Plays random games from every position of [`FENS`] and shows each position of them with its legal moves.
pub(crate) fn random_positions(games: u64, mut visit: impl FnMut(&Chess, &[Move])) {
    for (i, fen) in FENS.iter().enumerate() {
        for round in 0..games {
            let mut rng = Rng::from_parts(&[i as u64, round]);
            let mut game = Chess::from_fen(fen).unwrap_or_else(|e| panic!("{e}"));
            let mut moves = Vec::new();
            for _ in 0..120 {
                if game.generate(&mut moves) != Outcome::Ongoing {
                    break;
                }
                visit(&game, &moves);
                game.play(moves[rng.below(moves.len())]);
            }
        }
    }
}
