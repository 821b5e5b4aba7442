//! The `relabel` step of an iteration.

use serde::{Deserialize, Serialize};
use uci::Limit;

/// The `relabel` step of an iteration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelabelConfig {
    /// Whether the teacher is asked for its move and score wherever self-play got to, and training learns these in place
    /// of the search's visits and values.
    pub enabled: bool,
    /// The teacher's limit a move; the corpus' if absent.
    pub limit: Option<Limit>,
    /// Engine processes; 0 is one per core.
    pub workers: usize,
}
