//! Scores of the search: centipawns in the view of the side to move, and mates as their distance from the root.

use games::Score;

/// Plies that a line may have, quiescence included.
pub(crate) const MAX_PLY: usize = 128;
/// The score of a mate on the board. A mate in n plies is n less.
pub(crate) const MATE: i32 = 32_000;
/// Above every score.
pub(crate) const INFINITE: i32 = 32_001;
/// Scores beyond this are mates.
pub(crate) const MATES: i32 = MATE - 1000;
/// Static evaluations lie within this.
pub(crate) const MOST_EVALUATION: i32 = 20_000;
/// The score of a draw.
pub(crate) const DRAW: i32 = 0;
/// Half-moves without capture or pawn move that make a draw.
pub(crate) const FIFTY_MOVES: u32 = 100;

/// The score of mating in so many plies.
#[inline]
pub(crate) const fn mate_in(plies: usize) -> i32 {
    MATE - plies as i32
}

/// The score of being mated in so many plies.
#[inline]
pub(crate) const fn mated_in(plies: usize) -> i32 {
    plies as i32 - MATE
}

/// Whether a score is a mate, for either side.
#[inline]
pub(crate) const fn is_mate(score: i32) -> bool {
    score.abs() > MATES
}

/// A score that was found `ply` plies below the root, as it is seen from its own position.
#[inline]
pub(crate) fn to_table(score: i32, ply: usize) -> i32 {
    if score > MATES {
        score + ply as i32
    } else if score < -MATES {
        score - ply as i32
    } else {
        score
    }
}

/// The reverse of [`to_table`].
#[inline]
pub(crate) fn from_table(score: i32, ply: usize) -> i32 {
    if score > MATES {
        score - ply as i32
    } else if score < -MATES {
        score + ply as i32
    } else {
        score
    }
}

/// Whether a score from the table holds with this many half-moves on the clock. A mate was found with another clock
/// perhaps; here the fifty-move rule may come before it.
#[inline]
pub(crate) fn holds_at(score: i32, ply: usize, halfmoves: u32) -> bool {
    !is_mate(score) || (MATE - score.abs()) as u32 + halfmoves <= FIFTY_MOVES + ply as u32
}

/// As the protocol counts: mates in moves.
pub(crate) fn as_uci(score: i32) -> Score {
    if score > MATES {
        Score::Mate((MATE - score + 1) / 2)
    } else if score < -MATES {
        Score::Mate(-(MATE + score) / 2)
    } else {
        Score::Cp(score)
    }
}

#[cfg(test)]
mod tests {
    use games::Score;

    use super::{as_uci, from_table, holds_at, mate_in, mated_in, to_table};

    #[test]
    fn mates_are_told_in_moves() {
        for (score, told) in [
            (mate_in(1), Score::Mate(1)),
            (mate_in(3), Score::Mate(2)),
            (mated_in(0), Score::Mate(0)),
            (mated_in(2), Score::Mate(-1)),
            (mated_in(8), Score::Mate(-4)),
            (-37, Score::Cp(-37)),
        ] {
            assert_eq!(as_uci(score), told);
        }
    }

    #[test]
    fn the_table_turns_distances_about() {
        for score in [mate_in(7), mated_in(12), 0, 300, -300] {
            assert_eq!(from_table(to_table(score, 5), 5), score);
        }
        assert_eq!(to_table(mate_in(7), 5), mate_in(2));
        assert_eq!(to_table(mated_in(7), 5), mated_in(2));
    }

    #[test]
    fn a_mate_beyond_the_clock_does_not_hold() {
        // Mate five plies from a node at ply 2, that is in seven from the root.
        assert!(holds_at(mate_in(7), 2, 95) && !holds_at(mate_in(7), 2, 96));
        assert!(holds_at(mated_in(7), 2, 95) && !holds_at(mated_in(7), 2, 96));
        assert!(holds_at(120, 2, 99));
    }
}
