//! The learning rate: linear warm-up, then a cosine to the end.

use serde::{Deserialize, Serialize};

/// Learning rates over a run; a function of the step alone, so that a resumed run goes on where it was.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Highest rate, reached at step `warmup - 1`.
    pub peak: f64,
    /// Rate at step `total` and after.
    pub end: f64,
    /// Steps of the linear rise.
    pub warmup: u64,
    /// Steps of the run.
    pub total: u64,
}

impl Schedule {
    /// A schedule with the usual warm-up: 500 steps, or a tenth of a shorter run.
    pub fn new(peak: f64, end: f64, total: u64) -> Self {
        Schedule { peak, end, warmup: (total / 10).min(500), total }
    }

    /// The rate of `step`, counted from 0.
    pub fn lr(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        let start = self.warmup.saturating_sub(1);
        let length = self.total.saturating_sub(start).max(1);
        let progress = ((step - start) as f64 / length as f64).min(1.0);
        self.end + (self.peak - self.end) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn t2_rates_are_a_function_of_the_step() {
        let s = Schedule { peak: 1e-3, end: 1e-5, warmup: 500, total: 10_000 };
        assert_eq!(s.lr(0), 1e-3 / 500.0);
        assert!((s.lr(499) - 1e-3).abs() < 1e-15);
        assert!((s.lr(10_000) - 1e-5).abs() < 1e-15 && (s.lr(20_000) - 1e-5).abs() < 1e-15);
        assert!((500..10_000).all(|i| s.lr(i + 1) < s.lr(i)));
        assert!((s.lr(500) - s.lr(499)).abs() < 1e-8, "no jump after the warm-up");
    }

    #[test]
    fn short_runs_warm_up_for_a_tenth() {
        assert_eq!(Schedule::new(1.0, 0.0, 100).warmup, 10);
        assert_eq!(Schedule::new(1.0, 0.0, 100_000).warmup, 500);
        for total in [0, 1, 5, 9] {
            let s = Schedule::new(1.0, 0.1, total);
            assert!((0..12).all(|i| s.lr(i).is_finite() && s.lr(i) <= 1.0 && s.lr(i) >= 0.1 - 1e-12));
            assert!((s.lr(total.max(1)) - 0.1).abs() < 1e-12);
        }
    }
}
