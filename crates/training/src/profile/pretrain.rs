//! The `pretrain` stage.

use dataset::PolicyTarget;
use nn::Method;
use serde::{Deserialize, Serialize};

use super::is_default;

/// The `pretrain` stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PretrainConfig {
    /// The checkpoint folder whose network training goes on from; random weights if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub init: String,
    /// Most passes over the corpus.
    pub epochs: u64,
    /// Positions a step.
    pub batch: usize,
    /// Highest learning rate, after the warm-up.
    pub peak_lr: f64,
    /// Learning rate at the last step.
    pub end_lr: f64,
    /// `adamw`, or `muon` for the convolutions and AdamW for the rest.
    #[serde(skip_serializing_if = "is_default")]
    pub optimizer: Method,
    /// Decay, on weights only.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 for no clipping.
    pub clip_norm: f64,
    /// Decay of a moving average of the weights, which is then what is kept and played (0.999, say); 0 for none.
    pub ema: f64,
    /// What the policy learns: `best` (the teacher's move), `played`, or `visits` (the teacher's lines where the corpus has
    /// them, see `corpus.soft`; else as `best`).
    #[serde(skip_serializing_if = "is_default")]
    pub policy: PolicyTarget,
    /// Weight of the value loss beside the policy loss.
    pub value_weight: f64,
    /// Value target: `value_lambda * q + (1 - value_lambda) * z`.
    pub value_lambda: f32,
    /// Centipawns that correspond to 400 Elo in q.
    pub score_scale: f32,
    /// Fraction of the games held out.
    pub holdout: f64,
    /// Epochs without a better validation loss after which training stops.
    pub patience: u64,
    /// Samples in the shuffle pool.
    pub pool: usize,
    /// SQL condition on the games, for example `result IS NOT NULL AND plies >= 20`; all if empty.
    #[serde(rename = "where")]
    pub filter: String,
    /// Drop positions already seen in the epoch.
    pub drop_duplicates: bool,
    /// Steps between checkpoints; one is written every minute too.
    pub checkpoint_steps: u64,
    /// Looks at some of the held-out games while training goes on, beside the validation after each epoch: for curves
    /// of the losses, nothing else. 0 for none.
    pub looks: u64,
    /// Stop after this many steps even if epochs are left; 0 for no limit. The schedule ends there.
    pub max_steps: u64,
}

impl Default for PretrainConfig {
    fn default() -> Self {
        PretrainConfig {
            init: String::new(),
            epochs: 3,
            batch: 256,
            peak_lr: 5e-4,
            end_lr: 5e-5,
            optimizer: Method::default(),
            weight_decay: 1e-4,
            clip_norm: 10.0,
            ema: 0.0,
            policy: PolicyTarget::default(),
            value_weight: 1.0,
            value_lambda: 0.7,
            score_scale: 400.0,
            holdout: 0.05,
            patience: 2,
            pool: 65_536,
            filter: String::new(),
            drop_duplicates: false,
            checkpoint_steps: 1000,
            looks: 10,
            max_steps: 0,
        }
    }
}
