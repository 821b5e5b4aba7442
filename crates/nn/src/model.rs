//! Inference: immutable weights shared by any number of executors.
//!
//! On the CPU batch norms are folded into the convolutions and weights packed once; an executor has its own buffers,
//! uses one thread, and computes each position by the same sequence of operations wherever it sits in a batch, so that
//! its evaluation is the same to the last bit in any batch. On another device the network itself is evaluated by
//! tensor operations.

mod executor;
mod packed;

use std::sync::Arc;

use candle_core::Device;
use games::Packed;
use pipeline::Store;
use rayon::prelude::*;

pub use executor::{Executor, Outputs};

use crate::NnError;
use crate::arch::Architecture;
use crate::checkpoint::Checkpoint;
use crate::network::{Kernels, Network};
use packed::PackedNet;

/// Positions of one batch in [`Model::evaluate_all`].
const BATCH: usize = 64;

enum Weights {
    /// Folded and packed for the CPU kernels.
    Packed(Box<PackedNet>),
    /// A network of its own on a device.
    Device(Box<Network>),
}

/// Inference weights; clones share them.
#[derive(Clone)]
pub struct Model {
    arch: Arc<Architecture>,
    weights: Arc<Weights>,
}

/// Owned evaluations.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluations {
    /// Policy logits, `[rows, actions]`.
    pub policy: Vec<f32>,
    /// Values, -1..1, the mover's view.
    pub value: Vec<f32>,
    /// Probabilities of win, draw and loss `[rows, 3]`, the mover's view, if the network has them.
    pub wdl: Option<Vec<f32>>,
}

impl Model {
    /// A model with a copy of a network's present weights.
    ///
    /// # Errors
    /// [`NnError::Candle`] if they cannot be copied.
    pub fn from_network(network: &Network) -> Result<Self, NnError> {
        let weights = match network.kernels() {
            Kernels::Cpu => Weights::Packed(Box::new(PackedNet::new(network)?)),
            Kernels::Tensor => Weights::Device(Box::new(network.copy()?)),
        };
        Ok(Model { arch: Arc::new(network.architecture().clone()), weights: Arc::new(weights) })
    }

    /// The candidate of a checkpoint folder, on the CPU.
    ///
    /// # Errors
    /// As [`Checkpoint::load`] and [`Checkpoint::network`].
    pub fn load(store: &Store) -> Result<Self, NnError> {
        Model::from_network(&Checkpoint::load(store)?.network(&Device::Cpu)?)
    }

    /// The best network of a checkpoint folder, on the CPU.
    ///
    /// # Errors
    /// As [`Checkpoint::load`] and [`Checkpoint::best_network`].
    pub fn load_best(store: &Store) -> Result<Self, NnError> {
        Model::from_network(&Checkpoint::load(store)?.best_network(&Device::Cpu)?)
    }

    /// What network it is.
    pub fn architecture(&self) -> &Architecture {
        &self.arch
    }

    /// Whether it runs on a device other than the CPU kernels.
    pub fn on_device(&self) -> bool {
        matches!(*self.weights, Weights::Device(_))
    }

    /// Buffers to evaluate up to `max_batch` positions at a time.
    pub fn executor(&self, max_batch: usize) -> Executor {
        Executor::new(self.clone(), max_batch)
    }

    /// Evaluates any number of positions on all cores.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the device fails.
    pub fn evaluate_all(&self, inputs: &[Packed]) -> Result<Evaluations, NnError> {
        let run = |executor: &mut Executor, chunk: &[Packed]| Ok(executor.evaluate(chunk)?.to_evaluations());
        let parts: Vec<Evaluations> = if self.on_device() {
            let mut executor = self.executor(BATCH * 16);
            inputs.chunks(BATCH * 16).map(|chunk| run(&mut executor, chunk)).collect::<Result<_, NnError>>()?
        } else {
            let chunks = inputs.par_chunks(BATCH).map_init(|| self.executor(BATCH), run);
            chunks.collect::<Result<_, NnError>>()?
        };
        let mut all = Evaluations { policy: Vec::new(), value: Vec::new(), wdl: None };
        for part in parts {
            all.policy.extend(part.policy);
            all.value.extend(part.value);
            if let Some(wdl) = part.wdl {
                all.wdl.get_or_insert_default().extend(wdl);
            }
        }
        Ok(all)
    }

    /// Logits and what the value head gives for any number of positions, as planes, on all cores.
    pub(crate) fn raw(&self, planes: &[f32]) -> Result<(Vec<f32>, Vec<f32>), NnError> {
        let inputs = self.arch.shape().inputs();
        let run = |executor: &mut Executor, planes: &[f32]| {
            let (policy, value) = executor.raw(planes)?;
            Ok((policy.to_vec(), value.to_vec()))
        };
        let chunks = planes.par_chunks(BATCH * inputs).map_init(|| self.executor(BATCH), run);
        let parts: Vec<(Vec<f32>, Vec<f32>)> = chunks.collect::<Result<_, NnError>>()?;
        let (policy, value): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((policy.concat(), value.concat()))
    }
}

#[cfg(test)]
mod tests;
