//! The `eval` stage.

use serde::{Deserialize, Serialize};
use uci::Limit;

/// The `eval` stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvalConfig {
    /// `engine` (at `elo`), `reference` (the game's player of known strength), `untrained`, `pretrained`, `random`, or
    /// a checkpoint folder.
    pub opponent: String,
    /// The checkpoint folder that plays; the run's best network if empty.
    pub network: String,
    /// Games, two an opening.
    pub games: u32,
    /// Simulations of our network a move; 0 plays the raw policy.
    pub simulations: u32,
    /// Longest time of a network's search a move, in milliseconds; 0 for no limit but `simulations`.
    #[serde(skip_serializing_if = "is_zero")]
    pub movetime_ms: u64,
    /// The engine's `UCI_Elo`; 0 for full strength.
    pub elo: u32,
    /// The engine's limit a move.
    pub limit: Limit,
    /// Opening book; the built-in openings if empty.
    pub book: String,
    /// Random plies of the openings in games without an opening table.
    pub random_plies: u32,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// Games at a time; 0 is one per core.
    pub concurrency: usize,
}

/// A limit that is not set is not written, so that matches played before there was one keep their stamps.
fn is_zero(limit: &u64) -> bool {
    *limit == 0
}

impl Default for EvalConfig {
    fn default() -> Self {
        EvalConfig {
            opponent: "engine".to_owned(),
            network: String::new(),
            games: 100,
            simulations: 400,
            movetime_ms: 0,
            elo: 1500,
            limit: Limit::MoveTime(std::time::Duration::from_millis(500)),
            book: String::new(),
            random_plies: 2,
            max_plies: 400,
            concurrency: 0,
        }
    }
}
