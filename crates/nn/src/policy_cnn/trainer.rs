//! Training steps of a policy network.

use games::{Game, PolicyChess};

use super::pass::Pass;
use super::{PolicyCnn, tensors};
use crate::NnError;
use crate::loss::{BatchView, ValueSums};
use crate::optimizer::{Gradients, Optimizer, OptimizerConfig};
use crate::trainer::{EvalReport, StepReport, finite};

/// A policy network in training. Value targets in a batch are passed over.
pub struct PolicyTrainer {
    network: PolicyCnn,
    optimizer: Optimizer,
    pass: Pass,
}

impl PolicyTrainer {
    /// A trainer at step 0.
    ///
    /// # Errors
    /// [`NnError::Candle`] if memory cannot be had.
    pub fn new(network: PolicyCnn, config: OptimizerConfig) -> Result<Self, NnError> {
        let optimizer = Optimizer::new(config, tensors(), &candle_core::Device::Cpu)?;
        Ok(PolicyTrainer::with_optimizer(network, optimizer))
    }

    /// A trainer that goes on with an optimizer.
    pub(crate) fn with_optimizer(network: PolicyCnn, optimizer: Optimizer) -> Self {
        PolicyTrainer { network, optimizer, pass: Pass::new() }
    }

    /// The network with the weights of the last step.
    pub fn network(&self) -> &PolicyCnn {
        &self.network
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.optimizer.steps()
    }

    pub(crate) fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Makes one step on a batch of [`PolicyChess`] at the learning rate `lr`.
    ///
    /// # Errors
    /// [`NnError::NonFinite`] if the loss or the gradient is not finite, and [`NnError::Batch`] for a bad batch: the
    /// weights and the optimizer are then untouched.
    pub fn step(&mut self, view: &BatchView<'_>, lr: f64) -> Result<StepReport, NnError> {
        view.check(PolicyChess::SHAPE)?;
        let step = self.steps() + 1;
        finite("the learning rate", step, lr)?;
        let params = self.network.params();
        self.pass.prepare(params)?;
        let sums = self.pass.train(view);
        let loss = finite("the policy loss", step, sums.loss / sums.rows.max(1) as f64)?;
        let gradients = Gradients::Host(self.pass.gradients());
        let grad_norm = finite("the gradient norm", step, gradients.norm(params)?)?;
        self.optimizer.step(params, &gradients, grad_norm, lr)?;
        Ok(StepReport::of(step, lr, &sums, &ValueSums::default(), loss, grad_norm))
    }

    /// A validator of the network as it is now.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the weights cannot be copied.
    pub fn validator(&self) -> Result<PolicyValidator, NnError> {
        let mut pass = Pass::new();
        pass.prepare(self.network.params())?;
        Ok(PolicyValidator { pass })
    }
}

/// A policy network that is judged on batch after batch.
pub struct PolicyValidator {
    pass: Pass,
}

impl PolicyValidator {
    /// Losses and hits of a batch.
    ///
    /// # Errors
    /// [`NnError::Batch`] if the batch does not fit the network.
    pub fn evaluate(&mut self, view: &BatchView<'_>) -> Result<EvalReport, NnError> {
        view.check(PolicyChess::SHAPE)?;
        Ok(EvalReport::of(view.rows, self.pass.evaluate(view), ValueSums::default()))
    }
}

#[cfg(test)]
mod tests;
