//! Endings in which an advantage is worth less than it counts.

use shakmaty::{Bitboard, Color, Role};

use crate::board::Board;
use crate::exchange::value;

/// The share that means all of the evaluation.
pub(crate) const WHOLE: i32 = 64;

/// No pawns, and at most a minor piece more: hardly ever won...
const HARDLY: i32 = 8;
/// ...and with less than a rook in all never.
const NEVER: i32 = 2;
/// Bishops of opposite colors alone with pawns.
const OPPOSITE_BISHOPS: i32 = 34;

/// The value of all pieces of a side but pawns and king.
fn pieces(board: &Board, color: Color) -> i32 {
    let count = |role| board.of(color, role).count() as i32 * value(role);
    count(Role::Knight) + count(Role::Bishop) + count(Role::Rook) + count(Role::Queen)
}

/// How much of an evaluation in White's view counts, out of [`WHOLE`].
pub(crate) fn share(board: &Board, white: i32) -> i32 {
    let strong = Color::from_white(white > 0);
    if board.of(strong, Role::Pawn).is_empty() {
        let (own, other) = (pieces(board, strong), pieces(board, !strong));
        if own - other <= value(Role::Bishop) {
            return if own < value(Role::Rook) { NEVER } else { HARDLY };
        }
        // Two knights against a bare king.
        if other == 0 && own == 2 * value(Role::Knight) && board.of(strong, Role::Knight).count() == 2 {
            return NEVER;
        }
        return WHOLE;
    }
    let bishops = board.by_role(Role::Bishop);
    let both = board.of(strong, Role::Bishop).count() == 1 && board.of(!strong, Role::Bishop).count() == 1;
    if both && (bishops & Bitboard::LIGHT_SQUARES).count() == 1 {
        let alone = (board.by_role(Role::Knight) | board.by_role(Role::Rook) | board.by_role(Role::Queen)).is_empty();
        if alone {
            return OPPOSITE_BISHOPS;
        }
    }
    WHOLE
}

#[cfg(test)]
mod tests {
    use super::{HARDLY, NEVER, OPPOSITE_BISHOPS, WHOLE, share};
    use crate::testing::board;

    #[test]
    fn shares() {
        for (fen, white, expected) in [
            ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", 500, WHOLE),
            ("4k3/8/8/8/8/8/8/1N2K1N1 w - - 0 1", 600, NEVER),
            ("4k3/8/8/8/8/8/8/1N2K2B w - - 0 1", 600, WHOLE),
            ("4k3/8/8/8/8/8/4P3/4K2B w - - 0 1", 400, WHOLE),
            ("4k3/4p3/8/8/8/8/8/4K2B w - - 0 1", 200, NEVER),
            ("4k3/4p3/8/8/8/8/8/4K2B w - - 0 1", -20, WHOLE),
            ("4k2r/8/8/8/8/8/8/R3K2B w - - 0 1", 330, HARDLY),
            ("4k1b1/8/8/8/8/8/4P3/4K1B1 w - - 0 1", 100, OPPOSITE_BISHOPS),
            ("4kb2/8/8/8/8/8/4P3/4K1B1 w - - 0 1", 100, WHOLE),
            ("r3k1b1/8/8/8/8/8/4P3/R3K1B1 w - - 0 1", 100, WHOLE),
        ] {
            assert_eq!(share(&board(fen), white), expected, "{fen}");
        }
    }
}
