//! Networks: what they are, how they learn, how they are saved, and how they evaluate positions.
//!
//! * [`Architecture`] and [`NetConfig`]: a residual network for one game's geometry.
//! * [`Network`]: named variables, and the forward pass as plain tensor operations.
//! * [`Trainer`]: losses over legal moves from a [`BatchView`], AdamW, gradient clipping, an optional moving average of
//!   the weights; on the CPU with kernels of our own, elsewhere by tensor operations ([`Kernels`]). [`Schedule`] gives
//!   the learning rate.
//! * [`PolicyCnn`] and [`PolicyTrainer`]: the policy network of the alpha-beta engine, and its files.
//! * [`Checkpoint`]: a folder that is whole or falls back to the one before.
//! * [`Model`] and [`Executor`]: batched inference, bit-equal whatever the batch.
//!
//! Everything is deterministic: initial weights come from [`games::Rng`], the work of a step is cut into pieces that do
//! not depend on the number of threads, and sums are taken in a fixed order. On one machine the same seed and the same
//! batches give the same weights.
#![deny(unsafe_code)]

mod arch;
mod checkpoint;
mod device;
mod error;
mod fold;
mod host;
mod kernels;
mod loss;
mod model;
mod network;
mod optimizer;
mod policy_cnn;
mod schedule;
mod slices;
mod tensor_ops;
mod trainer;
mod weights;

pub use arch::{Architecture, NetConfig, ValueHead};
pub use checkpoint::{Best, CHECKPOINT_FORMAT, Checkpoint, CheckpointInfo, Design, PolicyKind};
pub use device::{DEVICES, select_device};
pub use error::NnError;
pub use loss::BatchView;
pub use model::{Evaluations, Executor, Model, Outputs};
pub use network::{BatchStats, Kernels, Mode, Network};
pub use optimizer::{Method, OptimizerConfig};
pub use policy_cnn::{PolicyCnn, PolicyTrainer, PolicyValidator};
pub use schedule::Schedule;
pub use trainer::{EvalReport, StepReport, Trainer, TrainerConfig, Validator};
pub use weights::{HostTensor, Weights};

#[cfg(test)]
mod testing;
