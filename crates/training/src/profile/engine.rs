//! The UCI engine that teaches and is played against.

use serde::{Deserialize, Serialize};

/// The UCI engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// Path or name; names are looked for beside our executables, in PATH and the usual folders. `auto` is Stockfish
    /// where it is found, else our own `tabiya-ab`.
    pub path: String,
    /// Further command-line arguments.
    pub args: Vec<String>,
    /// Hash table in MiB.
    pub hash_mb: u32,
    /// Further UCI options of the teacher.
    pub options: std::collections::BTreeMap<String, String>,
    /// Seconds within which an answer is due, on top of its time limit.
    pub answer_seconds: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            path: uci::AUTO.to_owned(),
            args: Vec::new(),
            hash_mb: 16,
            options: Default::default(),
            answer_seconds: 60.0,
        }
    }
}
