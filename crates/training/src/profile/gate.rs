//! The `gate` step of an iteration.

use serde::{Deserialize, Serialize};

/// The `gate` step of an iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateConfig {
    /// Games, two an opening.
    pub games: u32,
    /// Score that the candidate needs.
    pub threshold: f64,
    /// Simulations a move.
    pub simulations: u32,
    /// Random plies that the openings are made of.
    pub random_plies: u32,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// What the next iteration trains from after a refusal.
    pub on_reject: OnReject,
}

impl Default for GateConfig {
    fn default() -> Self {
        GateConfig {
            games: 100,
            threshold: 0.55,
            simulations: 50,
            random_plies: 2,
            max_plies: 400,
            on_reject: OnReject::Best,
        }
    }
}

/// What training does after a refused candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnReject {
    /// The next iteration goes on from the refused candidate.
    Candidate,
    /// The next iteration starts from the best network again.
    Best,
}
