//! One training step after another: forward, losses, backward, clipping, AdamW, running statistics, moving average.

mod pass;
mod report;

use std::collections::BTreeMap;

use candle_core::{CpuStorage, InplaceOp2, Layout, Tensor};
use serde::{Deserialize, Serialize};

use crate::NnError;
use crate::host::HostPass;
use crate::loss::BatchView;
use crate::network::{Kernels, Network};
use crate::optimizer::{Optimizer, OptimizerConfig};
use crate::weights::{HostTensor, Weights};
use pass::Pass;
pub use report::{EvalReport, StepReport, Validator};

/// Settings of a trainer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainerConfig {
    /// AdamW.
    pub optimizer: OptimizerConfig,
    /// Factor of the value loss beside the policy loss.
    pub value_factor: f64,
    /// Decay of the moving average of the weights (0.999, say); none for no average. With one, the average is what is
    /// evaluated, saved as the candidate and played.
    pub ema: Option<f64>,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        TrainerConfig { optimizer: OptimizerConfig::default(), value_factor: 1.0, ema: None }
    }
}

/// A network in training.
pub struct Trainer {
    network: Network,
    optimizer: Optimizer,
    config: TrainerConfig,
    average: Option<BTreeMap<String, Tensor>>,
    /// On the CPU, the pass of our own kernels.
    host: Option<Box<HostPass>>,
}

impl Trainer {
    /// A trainer at step 0.
    ///
    /// # Errors
    /// [`NnError::Candle`] if memory on the device cannot be had.
    pub fn new(network: Network, config: TrainerConfig) -> Result<Self, NnError> {
        let optimizer = Optimizer::new(config.optimizer, network.architecture().tensors(), network.device())?;
        Trainer::with_optimizer(network, optimizer, config, None)
    }

    /// A trainer that goes on with an optimizer, from an average or else from the network itself.
    pub(crate) fn with_optimizer(
        network: Network,
        optimizer: Optimizer,
        config: TrainerConfig,
        average: Option<&Weights>,
    ) -> Result<Self, NnError> {
        let average = match (config.ema, average) {
            (None, _) => None,
            (Some(_), Some(average)) => {
                let device = network.device();
                Some(
                    average
                        .iter()
                        .map(|(name, t)| Ok((name.clone(), t.to(device)?)))
                        .collect::<Result<_, NnError>>()?,
                )
            }
            (Some(_), None) => {
                let all = network.params().iter().chain(network.running());
                Some(all.map(|(name, var)| Ok((name.clone(), var.detach().copy()?))).collect::<Result<_, NnError>>()?)
            }
        };
        let host = (network.kernels() == Kernels::Cpu).then(|| Box::new(HostPass::new(network.architecture())));
        Ok(Trainer { network, optimizer, config, average, host })
    }

    /// The network with the weights of the last step.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Settings.
    pub fn config(&self) -> &TrainerConfig {
        &self.config
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.optimizer.steps()
    }

    pub(crate) fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Whether a moving average is kept.
    pub fn has_average(&self) -> bool {
        self.average.is_some()
    }

    /// The weights to play with: the moving average if one is kept.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn candidate_weights(&self) -> Result<Weights, NnError> {
        match &self.average {
            Some(average) => average.iter().map(|(name, t)| Ok((name.clone(), HostTensor::of(t)?))).collect(),
            None => self.network.weights(),
        }
    }

    /// A network of its own with [`Trainer::candidate_weights`].
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn candidate(&self) -> Result<Network, NnError> {
        let (arch, device) = (self.network.architecture(), self.network.device());
        let network = Network::from_weights(arch, device, &self.candidate_weights()?, "candidate")?;
        network.with_kernels(self.network.kernels())
    }

    /// Makes one step on a batch at the learning rate `lr`.
    ///
    /// # Errors
    /// [`NnError::NonFinite`] if the loss or the gradient is not finite, and [`NnError::Batch`] for a bad batch: the
    /// weights, the statistics and the optimizer are then untouched.
    pub fn step(&mut self, view: &BatchView<'_>, lr: f64) -> Result<StepReport, NnError> {
        let network = &self.network;
        view.check(network.architecture().shape())?;
        let step = self.steps() + 1;
        finite("the learning rate", step, lr)?;
        let pass = match &mut self.host {
            Some(host) => Pass::host(host, network, view, self.config.value_factor)?,
            None => Pass::tensors(network, view, self.config.value_factor)?,
        };
        let (policy, value) = (pass.policy, pass.value);
        let policy_mean = finite("the policy loss", step, policy.loss / policy.rows.max(1) as f64)?;
        let value_mean = finite("the value loss", step, value.loss / value.rows.max(1) as f64)?;
        finite("the variance of the activations", step, pass.stats.variance()?)?;
        let total = finite("the loss", step, policy_mean + self.config.value_factor * value_mean)?;
        let grad_norm = finite("the gradient norm", step, pass.gradients.norm(network.params())?)?;
        self.optimizer.step(network.params(), &pass.gradients, grad_norm, lr)?;
        network.update_running(&pass.stats)?;
        self.update_average()?;
        Ok(StepReport::of(step, lr, &policy, &value, total, grad_norm))
    }

    /// The average follows faster at first: at step n it keeps at most `(1 + n) / (10 + n)`.
    fn update_average(&mut self) -> Result<(), NnError> {
        let steps = self.steps() as f64;
        let (Some(average), Some(decay)) = (&mut self.average, self.config.ema) else { return Ok(()) };
        let keep = decay.min((1.0 + steps) / (10.0 + steps));
        for (name, var) in self.network.params().iter().chain(self.network.running()) {
            match average.get_mut(name) {
                Some(mean) if mean.device().is_cpu() => mean.inplace_op2(var, &Follow { keep })?,
                Some(mean) => *mean = (mean.detach().affine(keep, 0.0)? + var.detach().affine(1.0 - keep, 0.0)?)?,
                None => {}
            }
        }
        Ok(())
    }

    /// A validator of the candidate as it is now (see [`Trainer::candidate_weights`]).
    ///
    /// # Errors
    /// [`NnError::Candle`] if the weights cannot be copied.
    pub fn validator(&self) -> Result<Validator, NnError> {
        Validator::new(self.candidate()?)
    }
}

/// A number of the step that is being made; one that is not finite ends training.
pub(crate) fn finite(what: &'static str, step: u64, value: f64) -> Result<f64, NnError> {
    if value.is_finite() { Ok(value) } else { Err(NnError::NonFinite { what, step, value }) }
}

/// `mean = keep * mean + (1 - keep) * x` in place.
struct Follow {
    keep: f64,
}

impl InplaceOp2 for Follow {
    fn name(&self) -> &'static str {
        "moving average"
    }

    fn cpu_fwd(
        &self,
        mean: &mut CpuStorage,
        mean_layout: &Layout,
        x: &CpuStorage,
        layout: &Layout,
    ) -> candle_core::Result<()> {
        let (CpuStorage::F32(mean), CpuStorage::F32(x)) = (mean, x) else {
            candle_core::bail!("moving average: the weights are not f32");
        };
        let (Some((a, b)), Some((c, d))) = (mean_layout.contiguous_offsets(), layout.contiguous_offsets()) else {
            candle_core::bail!("moving average: the weights are not contiguous");
        };
        let (keep, take) = (self.keep as f32, (1.0 - self.keep) as f32);
        for (mean, x) in mean[a..b].iter_mut().zip(&x[c..d]) {
            *mean = *mean * keep + *x * take;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
