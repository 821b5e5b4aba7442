//! One training step after another: forward, losses, backward, clipping, AdamW, running statistics, moving average.

use std::collections::BTreeMap;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use crate::NnError;
use crate::loss::{BatchView, PolicySums, ValueSums, policy_loss, policy_sums, value_loss, value_sums};
use crate::network::{Mode, Network};
use crate::optimizer::{AdamW, OptimizerConfig};
use crate::weights::{HostTensor, Weights};

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

/// What a step did. Losses are means over the rows that have the target, in nats for the policy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct StepReport {
    /// The step's number, counted from 1.
    pub step: u64,
    /// The rate it was made with.
    pub lr: f64,
    /// Rows with a policy target.
    pub policy_rows: usize,
    /// Rows with a value target.
    pub value_rows: usize,
    /// Policy cross-entropy.
    pub policy_loss: f64,
    /// Value loss, before [`TrainerConfig::value_factor`].
    pub value_loss: f64,
    /// What was minimised.
    pub loss: f64,
    /// Norm of the gradient before clipping.
    pub grad_norm: f64,
    /// Share of rows whose likeliest legal move is the target's.
    pub top1: f64,
    /// Share of rows whose target is among the five likeliest legal moves.
    pub top5: f64,
    /// Entropy of the predicted policy over legal moves, in nats.
    pub entropy: f64,
    /// Mean of `|value - target|`.
    pub value_abs_error: f64,
}

/// Sums over evaluated rows, to be added up over batches.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct EvalReport {
    /// Rows seen.
    pub rows: usize,
    /// Rows with a policy target.
    pub policy_rows: usize,
    /// Rows with a value target.
    pub value_rows: usize,
    /// Sum of the policy cross-entropy, nats.
    pub policy_loss_sum: f64,
    /// Sum of the weighted value loss.
    pub value_loss_sum: f64,
    /// Rows whose likeliest legal move is the target's.
    pub top1: usize,
    /// Rows whose target is among the five likeliest legal moves.
    pub top5: usize,
    /// Sum of the entropies of the predicted policies, nats.
    pub entropy_sum: f64,
    /// Sum of `|value - target|`.
    pub value_abs_error_sum: f64,
}

impl EvalReport {
    fn of(rows: usize, policy: PolicySums, value: ValueSums) -> Self {
        EvalReport {
            rows,
            policy_rows: policy.rows,
            value_rows: value.rows,
            policy_loss_sum: policy.loss,
            value_loss_sum: value.loss,
            top1: policy.top1,
            top5: policy.top5,
            entropy_sum: policy.entropy,
            value_abs_error_sum: value.abs_error,
        }
    }

    /// Adds another report's sums.
    pub fn add(&mut self, other: &EvalReport) {
        self.rows += other.rows;
        self.policy_rows += other.policy_rows;
        self.value_rows += other.value_rows;
        self.policy_loss_sum += other.policy_loss_sum;
        self.value_loss_sum += other.value_loss_sum;
        self.top1 += other.top1;
        self.top5 += other.top5;
        self.entropy_sum += other.entropy_sum;
        self.value_abs_error_sum += other.value_abs_error_sum;
    }

    /// Mean policy cross-entropy; 0 without rows, as all means here.
    pub fn policy_loss(&self) -> f64 {
        self.policy_loss_sum / self.policy_rows.max(1) as f64
    }

    /// Mean value loss.
    pub fn value_loss(&self) -> f64 {
        self.value_loss_sum / self.value_rows.max(1) as f64
    }

    /// Share of rows whose likeliest legal move is the target's.
    pub fn top1_share(&self) -> f64 {
        self.top1 as f64 / self.policy_rows.max(1) as f64
    }

    /// Share of rows whose target is among the five likeliest legal moves.
    pub fn top5_share(&self) -> f64 {
        self.top5 as f64 / self.policy_rows.max(1) as f64
    }

    /// Mean entropy of the predicted policy, nats.
    pub fn entropy(&self) -> f64 {
        self.entropy_sum / self.policy_rows.max(1) as f64
    }

    /// Mean of `|value - target|`.
    pub fn value_abs_error(&self) -> f64 {
        self.value_abs_error_sum / self.value_rows.max(1) as f64
    }
}

impl Network {
    /// Losses and hits of a batch, with the running statistics and no gradients.
    ///
    /// # Errors
    /// [`NnError::Batch`] if the batch does not fit the network.
    pub fn evaluate(&self, view: &BatchView<'_>) -> Result<EvalReport, NnError> {
        view.check(self.architecture())?;
        let (policy, value) = self.forward(&self.input(view.planes)?, Mode::Eval)?;
        let policy: Vec<f32> = policy.flatten_all()?.to_vec1()?;
        let value: Vec<f32> = value.flatten_all()?.to_vec1()?;
        let value = value_sums(&value, self.architecture().value, view);
        Ok(EvalReport::of(view.rows, policy_sums(&policy, view), value))
    }
}

/// A network in training.
pub struct Trainer {
    network: Network,
    optimizer: AdamW,
    config: TrainerConfig,
    average: Option<BTreeMap<String, Tensor>>,
}

impl Trainer {
    /// A trainer at step 0.
    ///
    /// # Errors
    /// [`NnError::Candle`] if memory on the device cannot be had.
    pub fn new(network: Network, config: TrainerConfig) -> Result<Self, NnError> {
        let optimizer = AdamW::new(config.optimizer, network.architecture(), network.device())?;
        Trainer::with_optimizer(network, optimizer, config, None)
    }

    /// A trainer that goes on with an optimizer, from an average or else from the network itself.
    pub(crate) fn with_optimizer(
        network: Network,
        optimizer: AdamW,
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
                Some(all.map(|(name, var)| Ok((name.clone(), var.copy()?))).collect::<Result<_, NnError>>()?)
            }
        };
        Ok(Trainer { network, optimizer, config, average })
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

    pub(crate) fn optimizer(&self) -> &AdamW {
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
        view.check(network.architecture())?;
        let step = self.steps() + 1;
        let finite = |what: &'static str, value: f64| {
            if value.is_finite() { Ok(value) } else { Err(NnError::NonFinite { what, step, value }) }
        };
        finite("the learning rate", lr)?;
        let (policy, value, stats) = network.forward_train(&network.input(view.planes)?)?;
        let (policy_term, policy) = policy_loss(network.kernels(), &policy, view)?;
        let (value_term, value) = value_loss(&value, network.architecture().value, view)?;
        let loss = (policy_term + value_term.affine(self.config.value_factor, 0.0)?)?;
        let policy_mean = finite("the policy loss", policy.loss / policy.rows.max(1) as f64)?;
        let value_mean = finite("the value loss", value.loss / value.rows.max(1) as f64)?;
        finite("the variance of the activations", stats.variance()?)?;
        let total = finite("the loss", f64::from(loss.to_scalar::<f32>()?))?;
        let grads = loss.backward()?;
        let grad_norm = finite("the gradient norm", AdamW::gradient_norm(network.params(), &grads)?)?;
        self.optimizer.step(network.params(), &grads, grad_norm, lr)?;
        network.update_running(&stats)?;
        self.update_average()?;
        let share = |n: usize| n as f64 / policy.rows.max(1) as f64;
        Ok(StepReport {
            step,
            lr,
            policy_rows: policy.rows,
            value_rows: value.rows,
            policy_loss: policy_mean,
            value_loss: value_mean,
            loss: total,
            grad_norm,
            top1: share(policy.top1),
            top5: share(policy.top5),
            entropy: policy.entropy / policy.rows.max(1) as f64,
            value_abs_error: value.abs_error / value.rows.max(1) as f64,
        })
    }

    /// The average follows faster at first: at step n it keeps at most `(1 + n) / (10 + n)`.
    fn update_average(&mut self) -> Result<(), NnError> {
        let steps = self.steps() as f64;
        let (Some(average), Some(decay)) = (&mut self.average, self.config.ema) else { return Ok(()) };
        let keep = decay.min((1.0 + steps) / (10.0 + steps));
        for (name, var) in self.network.params().iter().chain(self.network.running()) {
            if let Some(mean) = average.get_mut(name) {
                *mean = (mean.affine(keep, 0.0)? + var.detach().affine(1.0 - keep, 0.0)?)?;
            }
        }
        Ok(())
    }

    /// Losses and hits of the candidate (see [`Trainer::candidate_weights`]) on a batch, without training.
    ///
    /// # Errors
    /// [`NnError::Batch`] if the batch does not fit the network.
    pub fn evaluate(&self, view: &BatchView<'_>) -> Result<EvalReport, NnError> {
        if self.has_average() { self.candidate()?.evaluate(view) } else { self.network.evaluate(view) }
    }
}

#[cfg(test)]
mod tests;
