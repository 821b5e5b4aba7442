//! How long to think. Pure functions of numbers, so that whole games can be played in a test.

use std::time::Duration;

use games::Move;

use crate::score::{MATE, is_mate};
use crate::search::Progress;

/// Moves that a game is expected to go on for when the clock does not say.
const HORIZON: u32 = 26;
/// Percent of an increment that are spent at once.
const OF_INCREMENT: u32 = 75;
/// A move may take so many times the usual while the search cannot make up its mind.
const PATIENCE: u32 = 4;
/// Most percent of the clock that one move takes when nothing says how many are to come.
const MOST_OF_CLOCK: u32 = 35;
/// A week: more than any game needs, and it keeps the arithmetic in range.
const LONGEST: i64 = 7 * 24 * 3_600_000;

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
    /// A share of the clock: its part of the moves to come, and most of the increment.
    pub(crate) fn of_clock(clock: Clock, overhead: Duration) -> Self {
        let usable = millis(clock.remaining).saturating_sub(overhead);
        let moves = clock.moves_to_go.map_or(HORIZON, |n| n.clamp(1, HORIZON));
        // With the last move before the clock is filled up nearly all of it may go, two moves before that a half.
        let of_period = clock.moves_to_go.map_or(0, |n| 170 / n.saturating_add(1).min(1000));
        let cap = usable * MOST_OF_CLOCK.max(of_period) / 100;
        let optimum = (usable / moves + millis(clock.increment) * OF_INCREMENT / 100).min(cap);
        Budget { optimum, maximum: (optimum * PATIENCE).min(cap), saves: true }
    }

    /// All of a time for this move but the overhead, or half of it where it is shorter than two overheads.
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
}

fn millis(n: i64) -> Duration {
    Duration::from_millis(n.clamp(0, LONGEST) as u64)
}

/// How sure a search is of its move, from one iteration to the next.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Confidence {
    last: Option<(Move, i32)>,
    /// Iterations since the best move changed.
    stable: u32,
    /// Percent of the optimum that the next decision is worth.
    percent: u32,
}

impl Confidence {
    /// Looks at a completed iteration.
    pub(crate) fn update(&mut self, progress: &Progress) {
        let (last, score) = self.last.map_or((progress.best, progress.score), |l| l);
        self.stable = if last == progress.best { self.stable + 1 } else { 0 };
        let fallen = (score - progress.score).clamp(0, 60) as u32;
        // Less for a move that stays the best and takes all the effort, more when its score falls.
        let steady = 125 - 6 * self.stable.min(8);
        let effort = 160 - progress.effort.min(100) as u32;
        self.percent = steady * effort / 100 + fallen;
        self.last = Some((progress.best, progress.score));
    }

    /// Whether a game gains more from the time than from another iteration.
    pub(crate) fn has_enough(&self, budget: &Budget, elapsed: Duration, progress: &Progress) -> bool {
        if elapsed >= budget.maximum {
            return true;
        }
        if !budget.saves {
            return false;
        }
        let mated = is_mate(progress.score) && progress.depth > 2 * (MATE - progress.score.abs());
        // Another iteration takes longer than all before it, so what is begun late would not be finished.
        progress.moves == 1 || mated || elapsed >= budget.optimum * self.percent / 100
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use games::{Move, Rng};

    use super::{Budget, Clock, Confidence};
    use crate::score::mate_in;
    use crate::search::Progress;

    const OVERHEAD: Duration = Duration::from_millis(10);

    fn clock(remaining: i64, increment: i64, moves_to_go: Option<u32>) -> Budget {
        Budget::of_clock(Clock { remaining, increment, moves_to_go }, OVERHEAD)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn budgets_of_clocks() {
        for (remaining, increment, moves, least, most, hard) in [
            (60_000, 0, None, 2200, 2400, 9600),
            (60_000, 600, None, 2700, 2800, 11_200),
            (1000, 0, None, 35, 40, 160),
            (1000, 0, Some(40), 35, 40, 160),
            (60_000, 0, Some(1), 50_000, 51_000, 51_000),
            (60_000, 0, Some(2), 29_000, 34_000, 34_000),
            (50, 1000, None, 13, 15, 15),
            (10, 0, None, 0, 0, 0),
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
        assert_eq!(Budget::of_move(1000, OVERHEAD).maximum, ms(990));
        assert_eq!(Budget::of_move(12, OVERHEAD).maximum, ms(6));
        assert_eq!(Budget::of_move(-1, OVERHEAD).maximum, ms(0));
        let both = Budget::of_move(1000, OVERHEAD).and(clock(3000, 0, None));
        assert!(both.optimum < ms(200) && both.saves);
    }

    fn progress(best: u16, score: i32, effort: u64, depth: i32) -> Progress {
        Progress { depth, best: Move(best), score, effort, moves: 30 }
    }

    #[test]
    fn a_search_that_is_sure_ends_early_and_one_that_is_not_goes_on() {
        let budget = clock(26_010, 0, None);
        assert_eq!(budget.optimum, ms(1000));
        let (mut sure, mut torn) = (Confidence::default(), Confidence::default());
        for i in 0..10 {
            sure.update(&progress(7, 30, 95, i));
            torn.update(&progress(i as u16, 30 - 8 * i, 30, i));
        }
        let now = progress(7, 30, 95, 10);
        assert!(!sure.has_enough(&budget, ms(400), &now) && sure.has_enough(&budget, ms(600), &now));
        assert!(!torn.has_enough(&budget, ms(1500), &now) && torn.has_enough(&budget, ms(2500), &now));
        assert!(sure.has_enough(&budget, ms(1), &Progress { moves: 1, ..progress(7, 30, 95, 1) }), "no choice");
        assert!(
            sure.has_enough(&budget, ms(1), &progress(7, mate_in(5), 95, 11)),
            "a mate in three, seen twice as far"
        );
        assert!(!sure.has_enough(&budget, ms(1), &progress(7, mate_in(5), 95, 10)));
        let exact = Budget::of_move(1000, OVERHEAD);
        assert!(!sure.has_enough(&exact, ms(980), &Progress { moves: 1, ..now }), "a movetime is used");
        assert!(sure.has_enough(&exact, ms(990), &progress(7, 30, 95, 10)));
    }

    /// A player that stops some milliseconds after its time, and whose moves lag.
    fn lasts(remaining: i64, increment: i64, period: Option<u32>, plies: u32, greedy: bool, seed: u64) -> bool {
        let (mut left, mut rng) = (remaining as f64, Rng::new(seed));
        for played in 0..plies {
            let moves_to_go = period.map(|p| p - played % p);
            let budget = clock(left as i64, increment, moves_to_go);
            let wanted = if greedy { budget.maximum } else { budget.optimum.mul_f64(rng.unit() * 1.4 + 0.3) };
            let think = wanted.min(budget.maximum).as_secs_f64() * 1000.0;
            left -= (think + rng.unit() * 3.0).max(1.0) + rng.unit() * if think > 0.0 { 3.0 } else { 0.0 };
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
                (1000, 20, None, 300),
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
            assert!(lasts(1000, 0, None, 60, false, seed), "1+0, game {seed}");
            assert!(lasts(1000, 0, Some(40), 40, false, seed), "1 s for 40 moves, game {seed}");
        }
    }
}
