//! Counting the leaves of the full tree, the field's check of a move generator.

use games::{Chess, Game, GameError, Move};

use crate::board::Board;

/// The leaves of the tree of legal moves at `depth` plies from a position, for each first move, by its text.
///
/// # Errors
/// [`GameError::Position`] if `fen` is no legal position.
pub fn perft(fen: &str, depth: u32) -> Result<Vec<(String, u64)>, GameError> {
    let game = Chess::from_fen(fen)?;
    let board = Board::from(game.position());
    let mut moves = Vec::new();
    if depth > 0 {
        board.legal_moves(|m| moves.push(m));
    }
    let mut counts: Vec<_> =
        moves.into_iter().map(|m| (game.move_text(m), leaves(&board.after(m), depth - 1))).collect();
    counts.sort();
    Ok(counts)
}

pub(crate) fn leaves(board: &Board, depth: u32) -> u64 {
    if depth == 0 {
        return 1;
    }
    let mut count = 0;
    if depth == 1 {
        board.legal_moves(|_| count += 1);
        return count;
    }
    board.legal_moves(|m: Move| count += leaves(&board.after(m), depth - 1));
    count
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game};

    use super::{leaves, perft};
    use crate::board::Board;
    use crate::testing::FENS;

    /// Through the engine's own moves, against shakmaty's.
    #[test]
    fn perft_equals_shakmatys() {
        for fen in FENS {
            let game = Chess::from_fen(fen).unwrap();
            for depth in 1..=4 {
                let expected = shakmaty::perft(game.position(), depth);
                assert_eq!(leaves(&Board::from(game.position()), depth), expected, "{fen} at {depth}");
            }
        }
    }

    #[test]
    fn counts_are_given_for_each_first_move() {
        let start = Chess::start().fen();
        let counts = perft(&start, 3).unwrap();
        assert_eq!(counts.len(), 20);
        assert_eq!(counts.iter().map(|(_, n)| n).sum::<u64>(), 8902);
        assert!(counts.contains(&("e2e4".to_owned(), 600)));
        assert!(perft(&start, 0).unwrap().is_empty());
        assert!(perft("8/8/8/8/8/8/8/8 w - - 0 1", 1).unwrap_err().to_string().contains("8/8/8/8"));
    }
}
