//! What kings and pieces make of passed pawns.

use shakmaty::{Bitboard, Color};

use super::attacks::Attacks;
use super::pawns::ahead;
use crate::board::Board;
use crate::generate::forward;
use crate::weights::{Count, PASSER_BLOCKED, PASSER_FREE, PASSER_OTHER_KING, PASSER_OWN_KING, PASSER_STEP};

/// The fourth rank as a pawn's side counts; before it the way is too long to matter.
const FOURTH: usize = 3;

/// Counts the terms of a side's passed pawns.
pub(super) fn count<C: Count>(board: &Board, us: Color, passed: Bitboard, other: &Attacks, sum: &mut C) {
    for square in passed {
        let Some(step) = square.offset(forward(us)) else { continue };
        let rank = us.relative_rank(square.rank()).to_usize();
        sum.add(PASSER_OWN_KING + board.king(us).distance(step) as usize, 1);
        sum.add(PASSER_OTHER_KING + board.king(!us).distance(step) as usize, 1);
        if rank >= FOURTH {
            let way = ahead(us, Bitboard::from_square(square));
            if board.occupied().contains(step) {
                sum.add(PASSER_BLOCKED + rank, 1);
            } else if (way & (board.occupied() | other.all)).is_empty() {
                sum.add(PASSER_FREE + rank, 1);
            } else if !other.all.contains(step) {
                sum.add(PASSER_STEP + rank, 1);
            }
        }
    }
}
