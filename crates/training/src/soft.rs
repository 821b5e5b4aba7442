//! A teacher's lines as a distribution over moves.

use dataset::Visits;
use games::{Move, Score};

use crate::profile::SoftTargets;

/// Centipawns that correspond to 400 Elo, in the weights.
const SCALE: f32 = 400.0;
/// What the counts of a position sum up to, but for rounding.
const TOTAL: f32 = 1000.0;

impl SoftTargets {
    /// Counts in thousandths for the column `visits`, of the lines that an engine showed by rank. None where it said
    /// nothing of the move that it then chose: what it showed is then not what it thinks.
    pub(crate) fn counts(self, chosen: Move, lines: &[(Move, Score)]) -> Visits {
        if !lines.iter().any(|(m, _)| *m == chosen) {
            return None;
        }
        let expected = |score: Score| 0.5 + 0.5 * score.expectation(SCALE);
        let best = lines.iter().map(|(_, score)| expected(*score)).fold(0.0, f32::max);
        let weights: Vec<(Move, f32)> =
            lines.iter().map(|(m, score)| (*m, ((expected(*score) - best) / self.temperature).exp())).collect();
        let sum: f32 = weights.iter().map(|(_, weight)| weight).sum();
        let counts = weights.into_iter().map(|(m, weight)| (m, (TOTAL * weight / sum).round() as u32));
        Some(counts.filter(|(_, count)| *count > 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFT: SoftTargets = SoftTargets { multipv: 4, temperature: 0.05 };

    #[test]
    fn counts_fall_with_the_expected_score() {
        // 0 and -70 centipawns are 0.5 and 0.4006 expected: 1.99 temperatures, a factor of 7.3.
        let lines = [(Move(1), Score::Cp(0)), (Move(2), Score::Cp(-70)), (Move(3), Score::Mate(-5))];
        assert_eq!(SOFT.counts(Move(1), &lines), Some(vec![(Move(1), 879), (Move(2), 120)]));
        let equal = [(Move(1), Score::Mate(3)), (Move(2), Score::Mate(9))];
        assert_eq!(SOFT.counts(Move(2), &equal), Some(vec![(Move(1), 500), (Move(2), 500)]));
    }

    #[test]
    fn lines_without_the_move_that_was_chosen_are_not_a_target() {
        assert_eq!(SOFT.counts(Move(9), &[(Move(1), Score::Cp(0))]), None);
        assert_eq!(SOFT.counts(Move(9), &[]), None);
    }
}
