//! Engine scores and how they are stored.

use std::cmp::Ordering;

/// An engine's score from the view of the side to move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Score {
    /// Centipawns.
    Cp(i32),
    /// Mate in that many moves; negative when the mover is mated, and 0 is mated now (a loss, not a draw).
    Mate(i32),
}

const MATE: i32 = 32_000;
const MAX_CP: i32 = 30_000;

impl Score {
    /// The `score` column: centipawns within +-30000; mate in n as `32000 - n`, mated in n as `-32000 + n`.
    ///
    /// # Stability
    /// This is a file format.
    pub fn to_i16(self) -> i16 {
        let value = match self {
            Score::Cp(cp) => cp.clamp(-MAX_CP, MAX_CP),
            Score::Mate(n) if n > 0 => MATE - n.min(MATE - MAX_CP - 1),
            Score::Mate(n) => -MATE + n.saturating_neg().min(MATE - MAX_CP - 1),
        };
        value as i16
    }

    /// The inverse of [`Score::to_i16`].
    pub fn from_i16(stored: i16) -> Self {
        let value = i32::from(stored);
        match value {
            v if v > MAX_CP => Score::Mate(MATE - v),
            v if v < -MAX_CP => Score::Mate(-MATE - v),
            v => Score::Cp(v),
        }
    }

    /// Expected score in -1..1 for the mover: `2 / (1 + 10^(-cp / scale)) - 1`, mates +-1.
    ///
    /// The logistic of the Elo model, with `scale` the centipawns that correspond to 400 Elo.
    pub fn expectation(self, scale: f32) -> f32 {
        match self {
            Score::Cp(cp) => 2.0 / (1.0 + 10f32.powf(-(cp as f32) / scale)) - 1.0,
            Score::Mate(n) if n > 0 => 1.0,
            Score::Mate(_) => -1.0,
        }
    }

    /// The score from the opponent's view. `Mate(0)` has no opposite in UCI and becomes mate in 1.
    #[must_use]
    pub fn opponent(self) -> Self {
        match self {
            Score::Cp(cp) => Score::Cp(-cp),
            Score::Mate(0) => Score::Mate(1),
            Score::Mate(n) => Score::Mate(-n),
        }
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        // (class, order within it): mated < centipawns < mating; a later mate is better for the mated side.
        let key = |s: &Score| match *s {
            Score::Mate(n) if n <= 0 => (0, -i64::from(n)),
            Score::Cp(cp) => (1, i64::from(cp)),
            Score::Mate(n) => (2, -i64::from(n)),
        };
        key(self).cmp(&key(other))
    }
}

#[cfg(test)]
mod tests {
    use super::Score::{self, Cp, Mate};

    #[test]
    fn u13_order_of_scores() {
        let order = [Mate(0), Mate(-1), Mate(-9), Cp(-30_000), Cp(0), Cp(30_000), Mate(9), Mate(1)];
        assert!(order.windows(2).all(|w| w[0] < w[1]));
        assert!(order.windows(2).all(|w| w[0].to_i16() < w[1].to_i16()), "storage keeps the order");
        assert!(Mate(0).expectation(400.0) < 0.0);
    }

    #[test]
    fn stored_scores_round_trip() {
        for stored in -32_000..=32_000i16 {
            if stored.unsigned_abs() == 32_000 && stored > 0 {
                continue; // mate in 0 for the mover does not exist
            }
            assert_eq!(Score::from_i16(stored).to_i16(), stored);
        }
        assert_eq!(Cp(99_999).to_i16(), 30_000);
        assert_eq!(Mate(-3).to_i16(), -31_997);
    }
}
