//! Cuts before any move is tried: of nodes whose estimate is far outside the window, and of those whose mover could
//! pass.

#[cfg(test)]
use super::traps;
use super::{Aborted, Path, Search, margins};
use crate::board::Board;
use crate::score::{MATES, is_mate};
use crate::table::{Bound, Entry};

impl Search<'_> {
    /// The cuts before any move is searched, for a node that is not in check and only has to be above or below a
    /// window of one point.
    #[expect(clippy::too_many_arguments, reason = "a node's state")]
    pub(super) fn cut_early(
        &mut self,
        board: &Board,
        (alpha, beta): (i32, i32),
        depth: i32,
        ply: usize,
        path: Path,
        estimate: i32,
        improving: bool,
    ) -> Result<Option<i32>, Aborted> {
        if self.features.reverse_futility
            && depth <= margins::REVERSE_DEPTH
            && estimate - margins::reverse(depth, improving) >= beta
            && !is_mate(estimate)
        {
            return Ok(Some(estimate));
        }
        if self.features.razoring && depth <= margins::RAZOR_DEPTH && estimate + margins::razor(depth) <= alpha {
            let score = self.quiesce(board, alpha, beta, ply, path)?;
            if score <= alpha {
                return Ok(Some(score));
            }
        }
        if self.features.null_move
            && depth >= margins::NULL_FROM
            && !path.passed
            && estimate >= beta
            && board.has_pieces(board.turn())
        {
            self.memory.frames[ply].place = None;
            let below = Path { below_null: true, passed: true, ..path };
            let less = depth - margins::null_reduction(depth, estimate - beta);
            let next = board.after_pass();
            #[cfg(test)]
            let next = if self.falls_for(traps::Trap::NullKeepsKey) { next.with_key_of(board) } else { next };
            let score = -self.search(&next, -beta, 1 - beta, less, ply + 1, below)?;
            if score >= beta {
                // A mate by a side that moves twice is none.
                return Ok(Some(if score > MATES { beta } else { score }));
            }
        }
        Ok(None)
    }
}

/// The evaluation, or the table's score where that says more.
pub(super) fn estimate(evaluation: i32, entry: &Entry) -> i32 {
    let says_more = match entry.bound {
        Bound::Exact => true,
        Bound::Lower => entry.score > evaluation,
        Bound::Upper => entry.score < evaluation,
    };
    if says_more && !is_mate(entry.score) { entry.score } else { evaluation }
}
