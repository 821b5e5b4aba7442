//! Losses, gradients and statistics of one batch, from either implementation.

use crate::NnError;
use crate::host::HostPass;
use crate::loss::{BatchView, PolicySums, ValueSums, policy_loss, value_loss};
use crate::network::{BatchStats, Network};
use crate::optimizer::Gradients;

/// What a step needs to know of a batch before anything changes.
pub(super) struct Pass<'a> {
    pub(super) policy: PolicySums,
    pub(super) value: ValueSums,
    pub(super) stats: BatchStats,
    pub(super) gradients: Gradients<'a>,
}

impl<'a> Pass<'a> {
    /// By our own kernels.
    pub(super) fn host(
        host: &'a mut HostPass,
        network: &Network,
        view: &BatchView<'_>,
        value_factor: f64,
    ) -> Result<Self, NnError> {
        let losses = host.run(network.params(), view, value_factor)?;
        let stats = BatchStats::of_host(network, host.statistics(), view.rows)?;
        let gradients = Gradients::Host(host.gradients());
        Ok(Pass { policy: losses.policy, value: losses.value, stats, gradients })
    }

    /// By tensor operations.
    pub(super) fn tensors(network: &Network, view: &BatchView<'_>, value_factor: f64) -> Result<Self, NnError> {
        let (policy, value, stats) = network.forward_train(&network.input(view.planes)?)?;
        let (policy_term, policy) = policy_loss(&policy, view)?;
        let (value_term, value) = value_loss(&value, network.architecture().value, view)?;
        let loss = (policy_term + value_term.affine(value_factor, 0.0)?)?;
        Ok(Pass { policy, value, stats, gradients: Gradients::Tensors(loss.backward()?) })
    }
}
