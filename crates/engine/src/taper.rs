//! A score for the middlegame and one for the endgame, between which the material decides.

use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

/// Phase of the start position: a knight or bishop counts 1, a rook 2, a queen 4.
pub(crate) const FULL_PHASE: i32 = 24;

/// Centipawns in the middlegame and in the endgame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Taper {
    pub(crate) middle: i32,
    pub(crate) end: i32,
}

/// A taper, short enough for tables.
pub(crate) const fn t(middle: i32, end: i32) -> Taper {
    Taper { middle, end }
}

impl Taper {
    pub(crate) const ZERO: Taper = t(0, 0);

    /// Centipawns at a phase from 0 (no pieces) to [`FULL_PHASE`], rounded towards zero, so that a sum and its
    /// opposite have opposite values.
    #[inline]
    pub(crate) fn at(self, phase: i32) -> i32 {
        let phase = phase.min(FULL_PHASE);
        (self.middle * phase + self.end * (FULL_PHASE - phase)) / FULL_PHASE
    }
}

impl Add for Taper {
    type Output = Taper;
    #[inline]
    fn add(self, other: Taper) -> Taper {
        t(self.middle + other.middle, self.end + other.end)
    }
}

impl AddAssign for Taper {
    #[inline]
    fn add_assign(&mut self, other: Taper) {
        *self = *self + other;
    }
}

impl Sub for Taper {
    type Output = Taper;
    #[inline]
    fn sub(self, other: Taper) -> Taper {
        t(self.middle - other.middle, self.end - other.end)
    }
}

impl SubAssign for Taper {
    #[inline]
    fn sub_assign(&mut self, other: Taper) {
        *self = *self - other;
    }
}

impl Neg for Taper {
    type Output = Taper;
    #[inline]
    fn neg(self) -> Taper {
        t(-self.middle, -self.end)
    }
}

impl Mul<i32> for Taper {
    type Output = Taper;
    #[inline]
    fn mul(self, factor: i32) -> Taper {
        t(self.middle * factor, self.end * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL_PHASE, t};

    #[test]
    fn phases_lead_from_one_score_to_the_other() {
        let score = t(100, -20);
        assert_eq!((score.at(FULL_PHASE), score.at(0), score.at(12)), (100, -20, 40));
        assert_eq!(score.at(FULL_PHASE + 8), 100, "nine queens are no more than a middlegame");
        for phase in 0..=FULL_PHASE {
            assert_eq!((-t(33, 7)).at(phase), -t(33, 7).at(phase));
        }
    }
}
