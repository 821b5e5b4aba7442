//! The key of the transposition table.

use crate::board::Board;

/// Up to this many half-moves without capture or pawn move the clock does not matter to a position.
const FREE: u32 = 60;
/// From then on positions are told apart by steps of so many half-moves...
const STEP: u32 = 8;
/// ...and from here on by each.
const STRICT: u32 = 84;

/// The position's key, and the clock's where the fifty-move rule is in sight: a score that was found far from it must
/// not stand for a position in which it decides.
#[inline]
pub(crate) fn key(board: &Board) -> u64 {
    let clock = board.halfmoves();
    if clock < FREE {
        return board.key();
    }
    let part = if clock < STRICT { clock / STEP } else { clock };
    // An odd multiplier spreads the number over all bits (the golden ratio's, as in Fibonacci hashing).
    board.key() ^ u64::from(part).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::key;
    use crate::testing::board;

    #[test]
    fn the_clock_counts_when_it_is_high() {
        let at = |clock: u32| key(&board(&format!("4k3/8/8/8/8/8/8/R3K3 w - - {clock} 90")));
        assert_eq!((at(0), at(59)), (at(30), at(3)));
        assert!(at(0) != at(64) && at(64) == at(71) && at(71) != at(72));
        let strict: Vec<u64> = (84..100).map(at).collect();
        let mut distinct = strict.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), strict.len());
    }
}
