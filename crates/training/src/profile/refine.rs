//! The `refine` loop.

use serde::{Deserialize, Serialize};

/// The `refine` loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefineConfig {
    /// `pretrained`, `random`, or a checkpoint folder.
    pub init: String,
    /// Iterations in all.
    pub num_iterations: u32,
    /// Iterations between matches against the evaluation's opponent; 0 for none.
    pub eval_interval: u32,
}

impl Default for RefineConfig {
    fn default() -> Self {
        RefineConfig { init: "pretrained".to_owned(), num_iterations: 10, eval_interval: 2 }
    }
}
