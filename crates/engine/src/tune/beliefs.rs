//! What is believed of the values before any game is seen. Each belief weighs as much as some positions that agree with
//! it, so that it decides only what the games say little about.

use crate::weights::{DANGER, MOBILITY, PASSER_OTHER_KING, PASSER_OWN_KING, PLACE, TERMS};

/// The usual values of the roles in centipawns.
const MATERIAL: [f64; 6] = [100.0, 320.0, 330.0, 500.0, 950.0, 0.0];
/// Positions for: a value is the usual one, or zero...
const USUAL: f64 = 20.0;
/// ...a piece has the same value on neighbouring squares...
const NEIGHBOURS: f64 = 30.0;
/// ...a value lies on a line between those before and after it...
const LINE: f64 = 1000.0;
/// ...and what is so by definition.
const CERTAIN: f64 = 1e7;

/// A sum of values has a known value.
pub(super) struct Belief {
    /// Terms and the factors of their values.
    pub(super) sum: Vec<(usize, f64)>,
    /// What it is, in centipawns, in middlegame and endgame alike.
    pub(super) value: f64,
    /// In positions.
    pub(super) weight: f64,
}

/// All of them.
pub(super) fn beliefs() -> Vec<Belief> {
    let mut beliefs = Vec::new();
    let mut believe = |sum: &[(usize, f64)], value, weight| beliefs.push(Belief { sum: sum.to_vec(), value, weight });
    for term in 0..TERMS {
        let usual = if (PLACE..PLACE + 384).contains(&term) && !is_nowhere(term - PLACE) {
            MATERIAL[(term - PLACE) / 64]
        } else {
            0.0
        };
        believe(&[(term, 1.0)], usual, USUAL);
    }
    for place in 0..384 {
        let (file, rank, is_pawn) = (place % 8, place / 8 % 8, place < 64);
        for (near, exists) in [(place + 1, file < 7), (place + 8, rank < 7 && !is_pawn)] {
            if exists && !is_nowhere(place) {
                believe(&[(PLACE + near, 1.0), (PLACE + place, -1.0)], 0.0, NEIGHBOURS);
            }
        }
    }
    let others = [(DANGER, 20), (PASSER_OWN_KING, 8), (PASSER_OTHER_KING, 8)];
    for (first, len) in MOBILITY.into_iter().chain(others) {
        for term in first + 1..first + len - 1 {
            believe(&[(term - 1, 1.0), (term, -2.0), (term + 1, 1.0)], 0.0, LINE);
        }
    }
    believe(&[(DANGER, 1.0)], 0.0, CERTAIN);
    beliefs
}

/// Whether a place is one of a pawn on the first or last rank.
fn is_nowhere(place: usize) -> bool {
    place < 8 || (56..64).contains(&place)
}
