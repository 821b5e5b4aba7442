//! The settings of a search and of the inference service, as they stand in a profile.

use serde::{Deserialize, Serialize};

use crate::SearchError;

/// Most positions that one search asks for at a time: unanswered visits are counted in 16 bits.
pub(crate) const MAX_LEAVES: u32 = 1024;

/// How one tree is searched. Every field has a default; unknown fields are errors.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// Visits that the root's moves have together when the search is finished. A reused tree's visits count, so that
    /// this is a strength and not an amount of work; the evaluation of the root itself does not.
    pub simulations: u32,
    /// Exploration constant of PUCT: `Q + c_puct * P * sqrt(N) / (1 + n)`.
    pub c_puct: f32,
    /// First-play urgency: a move never tried is worth its parent's value minus `fpu_reduction * sqrt(P)`, with `P`
    /// the prior mass of the moves already tried (as in lc0 and KataGo). At a root with noise the reduction is 0.
    pub fpu_reduction: f32,
    /// Priors are raised to `1 / policy_temperature` and renormalised; above 1 they are flattened.
    pub policy_temperature: f32,
    /// Concentration of the Dirichlet noise at the root; 0 stands for `10 / legal moves`.
    pub noise_alpha: f32,
    /// Share of the noise in the root's priors; 0 is none.
    pub noise_weight: f32,
    /// Positions that one search asks for at a time. Above 1 the descents of a batch are kept apart by virtual loss.
    pub leaves: u32,
    /// How much worse a move looks for each unanswered visit among its visits (in units of value); 0 only counts the
    /// visit.
    pub virtual_loss: f32,
    /// Whether [`crate::Search::advance`] keeps the subtree of the move played.
    pub reuse_tree: bool,
    /// Whether decided positions propagate: a mate that is found is played, a line proven lost is left alone.
    pub solve: bool,
    /// KataGo's forced playouts (Wu 2019, "Accelerating Self-Play Learning in Go", section 3.2): a root move once
    /// tried has at least `sqrt(forced_playouts * P * N)` visits; those are taken out of the reported visits again. 0
    /// is off; KataGo uses 2.
    pub forced_playouts: f32,
    /// Playout cap randomisation (Wu 2019, section 3.1); absent: every search is a full one.
    pub playout_cap: Option<PlayoutCap>,
}

/// A share of the searches is full and gives policy targets; the others are quick, without noise, and only move.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayoutCap {
    /// Probability that a search is a full one (KataGo: 0.25).
    pub full: f32,
    /// Simulations of a quick search.
    pub simulations: u32,
}

impl Default for SearchConfig {
    fn default() -> Self {
        SearchConfig {
            simulations: 400,
            c_puct: 2.5,
            fpu_reduction: 0.25,
            policy_temperature: 1.0,
            noise_alpha: 0.3,
            noise_weight: 0.0,
            leaves: 1,
            virtual_loss: 1.0,
            reuse_tree: true,
            solve: true,
            forced_playouts: 0.0,
            playout_cap: None,
        }
    }
}

impl SearchConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`SearchError::Config`] names the first field that is out of its range.
    pub fn check(&self) -> Result<(), SearchError> {
        let refuse = |field: &'static str, expected: &'static str, got: String| {
            Err(SearchError::Config { field, expected, got })
        };
        if self.simulations == 0 {
            return refuse("simulations", "at least 1", self.simulations.to_string());
        }
        if !(1..=MAX_LEAVES).contains(&self.leaves) {
            return refuse("leaves", "1 to 1024", self.leaves.to_string());
        }
        let numbers = [
            ("c_puct", self.c_puct, 0.0, 100.0),
            ("fpu_reduction", self.fpu_reduction, 0.0, 2.0),
            ("policy_temperature", self.policy_temperature, 0.1, 10.0),
            ("noise_alpha", self.noise_alpha, 0.0, 100.0),
            ("noise_weight", self.noise_weight, 0.0, 1.0),
            ("virtual_loss", self.virtual_loss, 0.0, 10.0),
            ("forced_playouts", self.forced_playouts, 0.0, 100.0),
            ("playout_cap.full", self.playout_cap.map_or(1.0, |c| c.full), 0.0, 1.0),
        ];
        for (field, value, low, high) in numbers {
            if !(low..=high).contains(&value) {
                return Err(SearchError::Range { field, low, high, got: value });
            }
        }
        match self.playout_cap {
            Some(cap) if cap.simulations == 0 => refuse("playout_cap.simulations", "at least 1", "0".to_owned()),
            _ => Ok(()),
        }
    }
}

/// How the inference service batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceConfig {
    /// Threads that evaluate: one per core on a CPU, one or two on a GPU.
    pub executors: usize,
    /// Most positions evaluated at once. When all workers wait, what is queued is shared out among the idle executors,
    /// so that smaller batches keep all cores busy.
    pub batch: usize,
    /// Most positions that wait; workers block while the queue is full. Raised to `batch` where smaller.
    pub queue: usize,
    /// Longest time that a batch with room waits for more while some worker is still busy, in microseconds.
    pub wait_us: u64,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        ServiceConfig { executors: 1, batch: 64, queue: 1024, wait_us: 2000 }
    }
}

impl ServiceConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`SearchError::Config`] names the first field that is 0.
    pub fn check(&self) -> Result<(), SearchError> {
        for (field, value) in [("executors", self.executors), ("batch", self.batch)] {
            if value == 0 {
                return Err(SearchError::Config { field, expected: "at least 1", got: value.to_string() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PlayoutCap, SearchConfig};

    #[test]
    fn ranges_are_checked_by_name() {
        let good = SearchConfig::default();
        good.check().unwrap();
        let message = |c: SearchConfig| c.check().unwrap_err().to_string();
        assert!(message(SearchConfig { simulations: 0, ..good }).contains("simulations"));
        assert!(message(SearchConfig { c_puct: f32::NAN, ..good }).contains("c_puct"));
        assert!(message(SearchConfig { leaves: 5000, ..good }).contains("leaves"));
        let cap = Some(PlayoutCap { full: 1.5, simulations: 10 });
        assert!(message(SearchConfig { playout_cap: cap, ..good }).contains("playout_cap.full"));
    }
}
