//! The `selfplay` step of an iteration.

use serde::{Deserialize, Serialize};

use super::Plies;

/// The `selfplay` step of an iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelfplayConfig {
    /// Games an iteration.
    pub games: u64,
    /// Games a shard.
    pub games_per_shard: u64,
    /// Simulations a move.
    pub simulations: u32,
    /// Dirichlet noise at the root: alpha.
    pub noise_alpha: f32,
    /// Dirichlet noise at the root: weight.
    pub noise_weight: f32,
    /// Plies played at `temperature`; greedy after them.
    pub temperature_plies: u32,
    /// Exponent of the visits is 1 / temperature.
    pub temperature: f32,
    /// Random plies before the search plays.
    pub random_plies: Plies,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// Most positions evaluated together.
    pub inference_batch_size: usize,
    /// Games in flight: twice this for each core. A kill loses the games in flight, so let them be few on a CPU and
    /// enough for a batch on a GPU.
    pub games_in_flight: usize,
    /// Positions in the cache of each executor; there is one a core on a CPU.
    pub cache: usize,
    /// A side whose root value stays below minus this gives up; 0 for never.
    pub resign_value: f32,
    /// Fraction of the games in which nobody gives up, to measure wrong resignations.
    pub resign_playthrough: f64,
}

impl Default for SelfplayConfig {
    fn default() -> Self {
        SelfplayConfig {
            games: 100,
            games_per_shard: 100,
            simulations: 50,
            noise_alpha: 0.3,
            noise_weight: 0.25,
            temperature_plies: 30,
            temperature: 1.0,
            random_plies: Plies::Exactly(0),
            max_plies: 400,
            inference_batch_size: 64,
            games_in_flight: 8,
            cache: 65_536,
            resign_value: 0.0,
            resign_playthrough: 0.1,
        }
    }
}
