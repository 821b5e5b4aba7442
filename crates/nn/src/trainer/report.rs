//! What training and evaluation tell.

use serde::Serialize;

use crate::NnError;
use crate::loss::{BatchView, PolicySums, ValueSums, policy_sums, value_sums};
use crate::model::Model;
use crate::network::{Kernels, Mode, Network};

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
    /// Value loss, before [`TrainerConfig::value_factor`](crate::TrainerConfig::value_factor).
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

impl StepReport {
    /// From a step's sums.
    pub(crate) fn of(step: u64, lr: f64, policy: &PolicySums, value: &ValueSums, loss: f64, grad_norm: f64) -> Self {
        let (policy_rows, value_rows) = (policy.rows.max(1) as f64, value.rows.max(1) as f64);
        StepReport {
            step,
            lr,
            policy_rows: policy.rows,
            value_rows: value.rows,
            policy_loss: policy.loss / policy_rows,
            value_loss: value.loss / value_rows,
            loss,
            grad_norm,
            top1: policy.top1 as f64 / policy_rows,
            top5: policy.top5 as f64 / policy_rows,
            entropy: policy.entropy / policy_rows,
            value_abs_error: value.abs_error / value_rows,
        }
    }
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
    pub(crate) fn of(rows: usize, policy: PolicySums, value: ValueSums) -> Self {
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

/// A network that is judged on batch after batch: its weights are copied and packed once.
pub struct Validator {
    network: Network,
    /// On the CPU.
    model: Option<Model>,
}

impl Validator {
    /// A validator of a network, which it takes over.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the weights cannot be copied.
    pub fn new(network: Network) -> Result<Self, NnError> {
        let model = match network.kernels() {
            Kernels::Cpu => Some(Model::from_network(&network)?),
            Kernels::Tensor => None,
        };
        Ok(Validator { network, model })
    }

    /// Losses and hits of a batch, with the running statistics and no gradients.
    ///
    /// # Errors
    /// [`NnError::Batch`] if the batch does not fit the network.
    pub fn evaluate(&self, view: &BatchView<'_>) -> Result<EvalReport, NnError> {
        view.check(self.network.architecture().shape())?;
        let (policy, value) = match &self.model {
            Some(model) => model.raw(view.planes)?,
            None => {
                let (policy, value) = self.network.forward(&self.network.input(view.planes)?, Mode::Eval)?;
                (policy.flatten_all()?.to_vec1()?, value.flatten_all()?.to_vec1()?)
            }
        };
        let value = value_sums(&value, self.network.architecture().value, view);
        Ok(EvalReport::of(view.rows, policy_sums(&policy, view), value))
    }
}
