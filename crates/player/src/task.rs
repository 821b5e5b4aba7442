//! What one `go` asks for, and when it is done.

use std::time::{Duration, Instant};

use games::{Chess, Color};
use search::{Proof, RankedMove, Search};
use uci::server::Go;

use crate::options::Options;
use crate::time::{Budget, Clock, Progress};

/// Most visits of the root's moves: beyond it their sums have no digits left for one visit more.
const MAX_VISITS: u32 = 1 << 23;
/// Visits that `go depth` makes for each ply, at most.
const VISITS_PER_DEPTH: u32 = 1000;
/// Share of the best move's visits that a move needs for its value to count.
const SERIOUS: u32 = 8;
/// Visits after which the speed of a search is known.
const MEASURED: u32 = 16;

/// A search that was asked for.
pub(crate) struct Task {
    /// When `go` came.
    pub(crate) began: Instant,
    /// From when the clock runs: `go`, or `ponderhit`.
    clock_began: Instant,
    /// Whether it is the opponent's turn still.
    pondering: bool,
    infinite: bool,
    /// Whether it was told to end.
    pub(crate) stopped: bool,
    budget: Option<Budget>,
    /// Visits that the root's moves have together in the end...
    visits: u32,
    /// ...and while it is the opponent's turn.
    pondered: u32,
    depth: Option<usize>,
    multi_pv: usize,
    /// Positions that the tree may have.
    pub(crate) room: usize,
    /// Visits that the tree had already when the search began.
    pub(crate) reused: u32,
}

impl Task {
    pub(crate) fn new(go: &Go, at: Instant, turn: Color, options: &Options) -> Self {
        let side = usize::from(turn == Color::Black);
        let clock = go.time[side].map(|remaining| {
            let clock = Clock { remaining, increment: go.increment[side], moves_to_go: go.moves_to_go };
            Budget::of_clock(clock, options.overhead)
        });
        let movetime = go.movetime.map(|t| Budget::of_move(t, options.overhead));
        let budget = match (clock, movetime) {
            (Some(clock), Some(movetime)) => Some(clock.and(movetime)),
            (clock, movetime) => clock.or(movetime),
        };
        let of_depth = go.depth.map(|d| d.saturating_mul(VISITS_PER_DEPTH));
        let of_nodes = go.nodes.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let limits = [of_nodes, of_depth, options.simulations];
        Task {
            began: at,
            clock_began: at,
            pondering: go.ponder,
            infinite: go.infinite,
            stopped: false,
            budget: budget.filter(|_| !go.infinite),
            visits: limits.into_iter().flatten().fold(MAX_VISITS, u32::min),
            // The limits of `go` are for our own time; the option is the strength of every move.
            pondered: options.simulations.unwrap_or(MAX_VISITS).min(MAX_VISITS),
            depth: go.depth.map(|d| d as usize),
            multi_pv: options.multi_pv,
            room: options.tree_positions(),
            reused: 0,
        }
    }

    /// The opponent has played the move that was expected.
    pub(crate) fn ponder_hit(&mut self, at: Instant) {
        if self.pondering {
            self.pondering = false;
            self.clock_began = at;
        }
    }

    /// Whether the answer has to wait for a command, however much is known.
    pub(crate) fn is_held(&self) -> bool {
        !self.stopped && (self.pondering || self.infinite)
    }

    /// The longest time that the search may take, if a clock runs.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.budget.filter(|_| !self.pondering).map(|b| b.maximum)
    }

    /// Visits that the next step may bring the root's moves to, at most `leaves` more than now: few while the tree is
    /// small, and none that would take longer than there is time for, at `cost` a position.
    pub(crate) fn next_target(&self, visits: u32, leaves: u32, now: Instant, cost: Option<Duration>) -> Option<u32> {
        let mut more = (visits / 4).clamp(1, leaves);
        if let (Some(longest), Some(cost)) = (self.longest(), cost) {
            let left = longest.saturating_sub(now.duration_since(self.clock_began));
            let affordable = left.as_nanos() / cost.as_nanos().max(1);
            more = more.min(u32::try_from(affordable).unwrap_or(u32::MAX));
        }
        (more > 0).then(|| (visits + more).min(self.limit()))
    }

    /// The limit of visits that holds now.
    fn limit(&self) -> u32 {
        if self.pondering { self.pondered } else { self.visits }
    }

    /// Visits a second since `go`, once it can be said.
    pub(crate) fn speed(&self, visits: u32, now: Instant) -> Option<f64> {
        let new = visits.saturating_sub(self.reused);
        let seconds = now.duration_since(self.began).as_secs_f64();
        (new >= MEASURED && seconds > 0.0).then(|| f64::from(new) / seconds)
    }

    /// Whether there is nothing left to do for a root that is evaluated.
    pub(crate) fn is_done(&self, search: &Search<Chess>, ranking: &[RankedMove], now: Instant) -> bool {
        if self.stopped || search.visits() >= self.limit() || search.nodes() >= self.room {
            return true;
        }
        // What is proven stays; but the other lines of an analysis go on.
        let timed = self.longest().is_some();
        if search.proof() != Proof::Unknown && (self.multi_pv == 1 || timed) {
            return true;
        }
        if self.pondering || self.infinite {
            return false;
        }
        if self.depth.is_some_and(|d| ranking.first().is_some_and(|best| search.line(best.m).len() >= d)) {
            return true;
        }
        let progress = self.progress(search, ranking, now);
        self.budget.is_some_and(|b| b.is_spent(now.duration_since(self.clock_began), &progress))
    }

    fn progress(&self, search: &Search<Chess>, ranking: &[RankedMove], now: Instant) -> Progress {
        let best = ranking.first();
        let best_visits = best.map_or(0, |b| b.visits);
        let rival = ranking.iter().skip(1).find(|r| !r.proof.is_loss());
        let serious = ranking.iter().filter(|r| r.visits > 0 && r.visits >= best_visits / SERIOUS);
        let valued = serious.max_by(|a, b| a.value.0.total_cmp(&b.value.0).then(a.visits.cmp(&b.visits)));
        Progress {
            best: best_visits,
            rival: rival.map(|r| r.visits),
            agreed: valued.map(|r| r.m) == best.map(|r| r.m),
            speed: self.speed(search.visits(), now),
        }
    }
}
