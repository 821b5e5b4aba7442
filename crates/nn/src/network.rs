//! The network that trains: named variables and running statistics.

mod forward;

use std::collections::BTreeMap;

use candle_core::{Device, Tensor, Var};

use crate::NnError;
use crate::arch::Architecture;
use crate::kernels::Geometry;
use crate::tensor_ops::Gather;
use crate::weights::{self, HostTensor, Weights};
use forward::Pass;

/// Added to the variance in every batch norm.
pub(crate) const EPS: f64 = 1e-5;
/// How much of the running statistics each step replaces.
const MOMENTUM: f64 = 0.1;

/// Which implementation trains and evaluates a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernels {
    /// Our own, on the CPU.
    Cpu,
    /// Plain tensor operations, on any device.
    Tensor,
}

/// Which statistics the batch norms use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The batch's own; the result carries gradients.
    Train,
    /// The running ones; no gradients.
    Eval,
}

/// Channel statistics of one training batch, by norm.
pub struct BatchStats {
    /// Norm, mean, biased variance.
    entries: Vec<(String, Tensor, Tensor)>,
    /// Rows that each norm saw.
    rows: usize,
}

impl BatchStats {
    /// The statistics that the CPU kernels found: norm, mean, biased variance.
    pub(crate) fn of_host<'a>(
        network: &Network,
        found: impl Iterator<Item = (&'a str, &'a [f32], &'a [f32])>,
        rows: usize,
    ) -> Result<Self, NnError> {
        let vector = |v: &[f32]| Tensor::from_slice(v, v.len(), &network.device);
        let entries = found.map(|(norm, mean, var)| Ok((norm.to_owned(), vector(mean)?, vector(var)?)));
        Ok(BatchStats {
            entries: entries.collect::<Result<_, NnError>>()?,
            rows: rows * network.arch.shape().squares(),
        })
    }

    /// The sum of all variances: finite exactly if all of them are. A value that overflowed in a square may be hidden
    /// from the loss (its channel is divided by infinity) and would spoil the running statistics.
    ///
    /// # Errors
    /// [`NnError::Candle`] if a tensor operation fails.
    pub(crate) fn variance(&self) -> Result<f64, NnError> {
        let mut sum = 0.0;
        let all: Vec<&Tensor> = self.entries.iter().map(|(_, _, var)| var).collect();
        for x in Tensor::cat(&all, 0)?.to_vec1::<f32>()? {
            sum += f64::from(x);
        }
        Ok(sum)
    }
}

/// A network on a device.
pub struct Network {
    arch: Architecture,
    device: Device,
    kernels: Kernels,
    params: BTreeMap<String, Var>,
    running: BTreeMap<String, Var>,
    gather3x3: Gather,
    gather1x1: Gather,
}

impl Network {
    /// A network with fresh weights: convolutions and linear layers normal (He), scales 1, the rest 0. Each tensor's
    /// numbers are a function of the seed and its name.
    ///
    /// # Errors
    /// [`NnError::Architecture`] for an impossible architecture.
    pub fn new(arch: &Architecture, device: &Device, seed: u64) -> Result<Self, NnError> {
        arch.check()?;
        Network::from_weights(arch, device, &weights::fresh(arch.tensors(), seed), "fresh weights")
    }

    /// A network with the given weights; `source` names them in errors.
    ///
    /// # Errors
    /// [`NnError::Tensors`] names each tensor that is missing, extra, reshaped or not finite.
    pub fn from_weights(
        arch: &Architecture,
        device: &Device,
        weights: &Weights,
        source: &str,
    ) -> Result<Self, NnError> {
        arch.check()?;
        let specs = arch.tensors();
        weights::check(weights, &specs, source)?;
        let (mut params, mut running) = (BTreeMap::new(), BTreeMap::new());
        for spec in specs {
            let tensor = &weights[&spec.name];
            let var = Var::from_slice(&tensor.data, tensor.shape.as_slice(), device)?;
            if spec.role.is_parameter() { &mut params } else { &mut running }.insert(spec.name, var);
        }
        let conv3x3 = Geometry::conv3x3(arch.height, arch.width);
        let pointwise = Geometry::pointwise(arch.shape().squares());
        Ok(Network {
            gather3x3: Gather::new(&conv3x3, device)?,
            gather1x1: Gather::new(&pointwise, device)?,
            arch: arch.clone(),
            device: device.clone(),
            kernels: if device.is_cpu() { Kernels::Cpu } else { Kernels::Tensor },
            params,
            running,
        })
    }

    /// The same network with other kernels; our own need the CPU.
    ///
    /// # Errors
    /// [`NnError::Device`] for our own kernels on another device.
    pub fn with_kernels(mut self, kernels: Kernels) -> Result<Self, NnError> {
        if kernels == Kernels::Cpu && !self.device.is_cpu() {
            let reason = "the CPU kernels need the network in main memory".to_owned();
            return Err(NnError::Device { name: format!("{:?}", self.device), reason });
        }
        self.kernels = kernels;
        Ok(self)
    }

    /// A copy that shares nothing with this network.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn copy(&self) -> Result<Self, NnError> {
        let copy = Network::from_weights(&self.arch, &self.device, &self.weights()?, "copy")?;
        copy.with_kernels(self.kernels)
    }

    /// What it is.
    pub fn architecture(&self) -> &Architecture {
        &self.arch
    }

    /// Where it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Which kernels it uses.
    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// The trained variables by name.
    pub fn params(&self) -> &BTreeMap<String, Var> {
        &self.params
    }

    /// Running means and variances by name.
    pub fn running(&self) -> &BTreeMap<String, Var> {
        &self.running
    }

    /// All tensors, copied to main memory.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn weights(&self) -> Result<Weights, NnError> {
        let all = self.params.iter().chain(&self.running);
        all.map(|(name, var)| Ok((name.clone(), HostTensor::of(var)?))).collect()
    }

    /// Puts planes, `[rows, squares, planes]` channel-last, on the network's device.
    ///
    /// # Errors
    /// [`NnError::Batch`] if the length does not fit.
    pub fn input(&self, planes: &[f32]) -> Result<Tensor, NnError> {
        let shape = self.arch.shape();
        if planes.is_empty() || !planes.len().is_multiple_of(shape.inputs()) {
            let reason = format!("{} numbers are no whole number of inputs of {}", planes.len(), shape.inputs());
            return Err(NnError::Batch(reason));
        }
        let dims = (planes.len() / shape.inputs(), shape.squares(), shape.planes());
        Ok(Tensor::from_slice(planes, dims, &self.device)?)
    }

    /// Policy logits `[N, actions]` and value for inputs `[N, squares, planes]`, by tensor operations.
    ///
    /// The value is `[N, 1]` in -1..1, or the logits of win, draw and loss `[N, 3]`; both are the mover's view.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the input's shape does not fit.
    pub fn forward(&self, x: &Tensor, mode: Mode) -> Result<(Tensor, Tensor), NnError> {
        let mut pass = Pass { network: self, mode, stats: Vec::new() };
        Ok(pass.run(x)?)
    }

    /// The same in [`Mode::Train`], with the statistics that [`Network::update_running`] takes.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the input's shape does not fit.
    pub fn forward_train(&self, x: &Tensor) -> Result<(Tensor, Tensor, BatchStats), NnError> {
        let mut pass = Pass { network: self, mode: Mode::Train, stats: Vec::new() };
        let (policy, value) = pass.run(x)?;
        Ok((policy, value, BatchStats { entries: pass.stats, rows: x.dim(0)? * x.dim(1)? }))
    }

    /// Moves the running statistics a tenth of the way to the batch's (variance unbiased, as PyTorch does).
    ///
    /// # Errors
    /// [`NnError::Candle`] if a tensor operation fails.
    pub fn update_running(&self, stats: &BatchStats) -> Result<(), NnError> {
        let unbiased = stats.rows as f64 / (stats.rows.max(2) - 1) as f64;
        for (norm, mean, var) in &stats.entries {
            for (name, new, scale) in [("running_mean", mean, 1.0), ("running_var", var, unbiased)] {
                if let Some(old) = self.running.get(&format!("{norm}.{name}")) {
                    let old_part = old.affine(1.0 - MOMENTUM, 0.0)?;
                    old.set(&(old_part + new.affine(MOMENTUM * scale, 0.0)?)?)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
