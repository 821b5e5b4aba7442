//! How long to think. Pure functions of numbers, so that whole games can be played in a test.

use std::time::Duration;

/// Moves that a game is expected to go on for when the clock does not say.
const HORIZON: f64 = 32.0;
/// Share of an increment that is spent at once.
const OF_INCREMENT: f64 = 0.7;
/// A move may take so many times the usual while the search cannot make up its mind.
const PATIENCE: f64 = 2.0;

/// The clock of the side to move, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Clock {
    pub(crate) remaining: i64,
    pub(crate) increment: i64,
    /// Moves until it is filled up, if it will be.
    pub(crate) moves_to_go: Option<u32>,
}

/// The time for one move.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Budget {
    /// When to stop as a rule.
    pub(crate) optimum: Duration,
    /// When to stop whatever happens.
    pub(crate) maximum: Duration,
    /// Whether time that is not used is of use later.
    pub(crate) saves: bool,
}

impl Budget {
    /// A share of the clock. Without moves to go it is a 32nd of the time and most of the increment; never more than a
    /// third of the time (two thirds for the last move before the clock is filled up), less the overhead.
    pub(crate) fn of_clock(clock: Clock, overhead: Duration) -> Self {
        let usable = (millis(clock.remaining).saturating_sub(overhead)).as_secs_f64();
        let increment = millis(clock.increment).as_secs_f64();
        let moves = clock.moves_to_go.map_or(HORIZON, |n| f64::from(n).min(HORIZON));
        let cap = usable * clock.moves_to_go.map_or(0.0, |n| 2.0 / (2.0 + f64::from(n))).max(1.0 / 3.0);
        let optimum = (usable / moves + OF_INCREMENT * increment).min(cap);
        let maximum = (optimum * PATIENCE).min(cap);
        Budget { optimum: Duration::from_secs_f64(optimum), maximum: Duration::from_secs_f64(maximum), saves: true }
    }

    /// Nearly all of a time for this move.
    pub(crate) fn of_move(movetime: i64, overhead: Duration) -> Self {
        let all = millis(movetime);
        let time = all.saturating_sub(overhead).max(all / 2);
        Budget { optimum: time, maximum: time, saves: false }
    }

    /// What keeps both.
    pub(crate) fn and(self, other: Budget) -> Self {
        Budget {
            optimum: self.optimum.min(other.optimum),
            maximum: self.maximum.min(other.maximum),
            saves: self.saves || other.saves,
        }
    }

    /// Whether a search that has gone on for `elapsed` has to end, or would not learn anything that matters.
    pub(crate) fn is_spent(&self, elapsed: Duration, progress: &Progress) -> bool {
        let until = if progress.agreed { self.optimum } else { self.maximum };
        if elapsed >= until {
            return true;
        }
        if !self.saves {
            return false;
        }
        let Some(rival) = progress.rival else { return true };
        let lead = progress.best.saturating_sub(rival);
        let possible = progress.speed.map_or(f64::INFINITY, |s| s * (until - elapsed).as_secs_f64());
        f64::from(lead) > possible
    }
}

/// Where a search stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Progress {
    /// Visits of the best move.
    pub(crate) best: u32,
    /// Visits of the move that is closest to it; none if no other move could be played.
    pub(crate) rival: Option<u32>,
    /// Whether the best move by visits is the best by value.
    pub(crate) agreed: bool,
    /// Visits a second, once that is known.
    pub(crate) speed: Option<f64>,
}

fn millis(n: i64) -> Duration {
    // A week is more than any game needs, and keeps the arithmetic in range.
    Duration::from_millis(n.clamp(0, 7 * 24 * 3_600_000) as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use games::Rng;

    use super::{Budget, Clock, Progress};

    const OVERHEAD: Duration = Duration::from_millis(30);

    fn clock(remaining: i64, increment: i64, moves_to_go: Option<u32>) -> Budget {
        Budget::of_clock(Clock { remaining, increment, moves_to_go }, OVERHEAD)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn budgets_of_clocks() {
        for (remaining, increment, moves, least, most, hard) in [
            (60_000, 0, None, 1800, 1900, 3800),
            (60_000, 600, None, 2200, 2400, 4800),
            (1000, 0, None, 30, 40, 80),
            (1000, 0, Some(40), 30, 40, 80),
            (60_000, 0, Some(1), 39_000, 41_000, 41_000),
            (60_000, 0, Some(2), 29_000, 30_000, 30_000),
            (50, 1000, None, 6, 7, 7),
            (30, 0, None, 0, 0, 0),
            (0, 0, None, 0, 0, 0),
            (-500, 0, None, 0, 0, 0),
            (-500, 5000, Some(1), 0, 0, 0),
            (i64::MIN, i64::MIN, None, 0, 0, 0),
        ] {
            let budget = clock(remaining, increment, moves);
            let what = format!("{remaining}+{increment}/{moves:?}: {budget:?}");
            assert!((ms(least)..=ms(most)).contains(&budget.optimum), "{what}");
            assert!(budget.optimum <= budget.maximum && budget.maximum <= ms(hard), "{what}");
        }
        assert!(clock(i64::MAX, i64::MAX, Some(u32::MAX)).maximum > ms(1000));
    }

    #[test]
    fn a_movetime_is_used_nearly_whole() {
        assert_eq!(Budget::of_move(1000, OVERHEAD).maximum, ms(970));
        assert_eq!(Budget::of_move(40, OVERHEAD).maximum, ms(20));
        assert_eq!(Budget::of_move(-1, OVERHEAD).maximum, ms(0));
        let both = Budget::of_move(1000, OVERHEAD).and(clock(3000, 0, None));
        assert!(both.maximum < ms(400) && both.saves);
    }

    #[test]
    fn a_search_ends_early_when_nothing_can_change() {
        let budget = clock(32_030, 0, None);
        assert_eq!(budget.optimum, ms(1000));
        let progress = Progress { best: 600, rival: Some(300), agreed: true, speed: Some(500.0) };
        assert!(!budget.is_spent(ms(300), &progress), "350 more could come");
        assert!(budget.is_spent(ms(500), &progress), "250 cannot overtake");
        assert!(!budget.is_spent(ms(500), &Progress { speed: None, ..progress }));
        assert!(budget.is_spent(ms(1), &Progress { rival: None, ..progress }), "there is no choice");
        let torn = Progress { rival: Some(590), agreed: false, ..progress };
        assert!(!budget.is_spent(ms(1500), &torn), "more time for a search that is torn");
        assert!(budget.is_spent(ms(2000), &torn));
        let exact = Budget::of_move(1000, OVERHEAD);
        assert!(!exact.is_spent(ms(960), &Progress { rival: None, ..progress }), "a movetime is used");
    }

    /// A player with batches of up to 8 ms, of which the last is finished beyond its time, and a lag of up to 5 ms.
    fn lasts(remaining: i64, increment: i64, period: Option<u32>, plies: u32, greedy: bool, seed: u64) -> bool {
        let (mut left, mut rng) = (remaining as f64, Rng::new(seed));
        for played in 0..plies {
            let moves_to_go = period.map(|p| p - played % p);
            let budget = clock(left as i64, increment, moves_to_go);
            let wanted = if greedy { budget.maximum } else { budget.optimum.mul_f64(rng.unit() * 1.2 + 0.2) };
            let think = wanted.min(budget.maximum).as_secs_f64() * 1000.0;
            // The root is evaluated in any case; a batch that was begun is finished.
            left -= (think + rng.unit() * 5.0).max(1.0) + rng.unit() * if think > 0.0 { 8.0 } else { 0.0 };
            if left < 0.0 {
                return false;
            }
            left += increment as f64;
            if moves_to_go == Some(1) {
                left += remaining as f64;
            }
        }
        true
    }

    #[test]
    fn no_game_is_lost_on_time() {
        for seed in 0..200 {
            for (remaining, increment, period, plies) in [
                (60_000, 0, None, 150),
                (60_000, 600, None, 300),
                (10_000, 100, None, 300),
                (2000, 50, None, 300),
                (5000, 0, Some(40), 200),
                (60_000, 0, Some(1), 100),
            ] {
                let what = format!("{remaining}+{increment}/{period:?}, game {seed}");
                assert!(lasts(remaining, increment, period, plies, false, seed), "{what}");
                if increment > 0 || period == Some(1) {
                    assert!(lasts(remaining, increment, period, plies, true, seed), "{what}, longest times");
                }
            }
            // One second for a whole game, or for forty moves.
            assert!(lasts(1000, 0, None, 40, false, seed), "1+0, game {seed}");
            assert!(lasts(1000, 0, Some(40), 40, false, seed), "1 s for 40 moves, game {seed}");
        }
    }
}
