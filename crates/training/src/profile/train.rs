//! The `train` step of an iteration.

use nn::Method;
use serde::{Deserialize, Serialize};

use super::is_default;

/// The `train` step of an iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Most optimizer steps an iteration.
    pub steps: u64,
    /// Positions a step.
    pub batch: usize,
    /// Learning rate after the warm-up; it falls to a tenth by cosine.
    pub learning_rate: f64,
    /// `adamw`, or `muon` for the convolutions and AdamW for the rest.
    #[serde(skip_serializing_if = "is_default")]
    pub optimizer: Method,
    /// Decay, on weights only.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 for no clipping.
    pub clip_norm: f64,
    /// Weight of the value loss beside the policy loss.
    pub value_weight: f64,
    /// Weight of the search value against the game's result in the value target.
    pub value_lambda: f32,
    /// Most recent self-play positions that are trained on.
    pub replay_window: u64,
    /// Below this many self-play positions train and gate are skipped.
    pub replay_minimum: u64,
    /// Share of each batch that comes from the corpus, where there is one.
    pub teacher_share: f64,
    /// Most times a new position is used; caps the steps. 0 for no cap.
    pub max_reuse: f64,
    /// Samples in the shuffle pool.
    pub pool: usize,
    /// Steps between checkpoints; one is written every minute too.
    pub checkpoint_steps: u64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            steps: 2000,
            batch: 256,
            learning_rate: 1e-4,
            optimizer: Method::default(),
            weight_decay: 1e-4,
            clip_norm: 10.0,
            value_weight: 1.0,
            value_lambda: 0.5,
            replay_window: 200_000,
            replay_minimum: 10_000,
            teacher_share: 0.5,
            max_reuse: 8.0,
            pool: 65_536,
            checkpoint_steps: 500,
        }
    }
}
