//! A training step's forward and backward pass on the CPU: no graph, and buffers that are used again.
//!
//! The network is a list of units, each a convolution, its norm and a ReLU. What lies between two convolutions (norm,
//! residual, squeeze-and-excitation, ReLU, and the same backwards) is done group of boards by group of boards, while
//! the group is in the cache for the convolution anyway:
//!
//! ```text
//! forward, unit u:   for each group: y of the unit before = relu(norm(z) + residual);  z of u = conv(y);  moments of z
//! backward, unit u:  for each group: dz = norm'(dy, z);  dw += x^T dz;  dx = conv'(dz) + residual's gradient;
//!                                    mask by the ReLU of the unit before;  its norm's sums
//! ```
//!
//! Work is cut into groups and parts of fixed size; sums over them are taken in order. So the numbers do not depend on
//! the number of threads.

mod backward;
mod forward;
mod heads;
mod layer;
mod squeeze;

use std::collections::BTreeMap;
use std::ops::Range;

use candle_core::{Result, Var};
use rayon::prelude::*;

use crate::arch::{Architecture, ValueHead};
use crate::kernels::{Geometry, Isa, NormSums, Normed, Packing, boards_per_group};
use crate::loss::{BatchView, PolicySums, ValueSums};
use crate::slices::with_slices;
use heads::Heads;
use squeeze::Squeeze;

pub(crate) use forward::cut;
pub(crate) use layer::{Layer, LayerGradient};

/// Boards of one part of the backward pass, each of which has sums of its own: few enough for many cores, and enough
/// that adding up the parts is little work. A power of two.
pub(crate) const PART: usize = 32;

/// A convolution, its norm and a ReLU.
struct Unit {
    conv: String,
    norm: String,
    pointwise: bool,
    inputs: usize,
    outputs: usize,
    /// The unit whose output it reads; none for the stem, which reads the planes.
    source: Option<usize>,
    /// The unit whose output is added before the ReLU.
    residual: Option<usize>,
    squeeze: Option<Squeeze>,
    state: State,
    /// Sums over the gradient of the norm's output, part by part.
    norm_sums: Vec<NormSums>,
}

/// What the present step knows of a unit.
#[derive(Default)]
struct State {
    weights: Option<Packing>,
    flipped: Option<Packing>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
    /// What the convolution gives.
    z: Vec<f32>,
    stats: Normed,
    /// The output.
    y: Vec<f32>,
}

/// Losses of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    pub(crate) policy: PolicySums,
    pub(crate) value: ValueSums,
}

/// Gradients by parameter name.
pub(crate) type Gradients = BTreeMap<String, Vec<f32>>;

/// The pass of one architecture, with its buffers.
pub(crate) struct HostPass {
    isa: Isa,
    head: ValueHead,
    conv3x3: Geometry,
    pointwise: Geometry,
    units: Vec<Unit>,
    /// The unit before the heads.
    trunk: usize,
    /// The unit of the policy head, if it has one.
    policy: Option<usize>,
    value: usize,
    heads: Heads,
    gradients: Gradients,
    /// Gradients of the output of the trunk's units: what a residual connection passes on, and what a norm gets.
    kept: Vec<f32>,
    passing: Vec<f32>,
    /// Gradients of the heads' norms.
    policy_gradient: Vec<f32>,
    value_gradient: Vec<f32>,
}

impl HostPass {
    pub(crate) fn new(arch: &Architecture) -> Self {
        let (shape, channels) = (arch.shape(), arch.channels);
        let unit = |prefix: &str, suffix: &str, inputs, outputs, source, residual, squeeze| Unit {
            conv: format!("{prefix}.conv{suffix}"),
            norm: format!("{prefix}.norm{suffix}"),
            pointwise: false,
            inputs,
            outputs,
            source,
            residual,
            squeeze,
            state: State::default(),
            norm_sums: Vec::new(),
        };
        let mut units = vec![unit("stem", "", shape.planes(), channels, None, None, None)];
        for i in 0..arch.blocks {
            let (input, prefix) = (units.len() - 1, format!("blocks.{i}"));
            let squeeze = arch.squeezed().map(|squeezed| Squeeze::new(&format!("{prefix}.se"), channels, squeezed));
            units.push(unit(&prefix, "1", channels, channels, Some(input), None, None));
            units.push(unit(&prefix, "2", channels, channels, Some(input + 1), Some(input), squeeze));
        }
        let trunk = units.len() - 1;
        let policy = arch.policy_conv.then(|| {
            units.push(unit("policy", "", channels, channels, Some(trunk), None, None));
            units.len() - 1
        });
        let value = unit("value", "", channels, arch.value_channels, Some(trunk), None, None);
        units.push(Unit { pointwise: true, ..value });
        let parameters = arch.tensors().into_iter().filter(|t| t.role.is_parameter());
        HostPass {
            isa: Isa::best(),
            head: arch.value,
            conv3x3: Geometry::conv3x3(shape.height, shape.width),
            pointwise: Geometry::pointwise(shape.squares()),
            value: units.len() - 1,
            units,
            trunk,
            policy,
            heads: Heads::new(arch),
            gradients: parameters.map(|t| (t.name, vec![0.0; t.shape.iter().product()])).collect(),
            kept: Vec::new(),
            passing: Vec::new(),
            policy_gradient: Vec::new(),
            value_gradient: Vec::new(),
        }
    }

    /// Losses and gradients of a batch, which must fit the network. `value_factor` weighs the value loss.
    pub(crate) fn run(
        &mut self,
        params: &BTreeMap<String, Var>,
        view: &BatchView<'_>,
        value_factor: f64,
    ) -> Result<Losses> {
        self.prepare(params, view.rows)?;
        let mut finished = vec![false; self.units.len()];
        for u in 0..self.units.len() {
            let before = self.units[u].source.filter(|p| !std::mem::replace(&mut finished[*p], true));
            self.forward(u, before, view);
        }
        let losses = self.run_heads(view, value_factor);
        if let Some(policy) = self.policy {
            self.backward(policy, view);
        }
        self.backward(self.value, view);
        for u in (0..=self.trunk).rev() {
            self.backward(u, view);
        }
        Ok(losses)
    }

    /// The gradients of the last run.
    pub(crate) fn gradients(&self) -> &Gradients {
        &self.gradients
    }

    /// Norm, mean and biased variance of the last run's activations.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = (&str, &[f32], &[f32])> {
        self.units.iter().map(|u| (u.norm.as_str(), u.state.stats.mean.as_slice(), u.state.stats.var.as_slice()))
    }

    fn squares(&self) -> usize {
        self.conv3x3.squares()
    }

    /// Boards that are worked on together: a power of two, so that both passes cut every part into the same groups.
    fn group(&self) -> usize {
        let most = boards_per_group(self.squares()).min(PART);
        1 << most.ilog2()
    }

    fn geometry(&self, u: usize) -> &Geometry {
        if self.units[u].pointwise { &self.pointwise } else { &self.conv3x3 }
    }

    /// Packs the weights and fits the buffers to the batch.
    fn prepare(&mut self, params: &BTreeMap<String, Var>, rows: usize) -> Result<()> {
        let (isa, squares) = (self.isa, self.squares());
        let (conv3x3, pointwise) = (&self.conv3x3, &self.pointwise);
        let fit = |buffer: &mut Vec<f32>, channels: usize| buffer.resize(rows * squares * channels, 0.0);
        self.units.par_iter_mut().try_for_each(|unit| -> Result<()> {
            let geometry = if unit.pointwise { pointwise } else { conv3x3 };
            let (inputs, outputs, state) = (unit.inputs, unit.outputs, &mut unit.state);
            read(params, &format!("{}.weight", unit.conv), |w| {
                state.weights = Some(Packing::forward(isa, geometry, inputs, outputs, w));
                let wanted = unit.source.is_some();
                state.flipped = wanted.then(|| Packing::backward(isa, geometry, inputs, outputs, w));
            })?;
            read(params, &format!("{}.weight", unit.norm), |w| w.clone_into(&mut state.gamma))?;
            read(params, &format!("{}.bias", unit.norm), |w| w.clone_into(&mut state.beta))?;
            fit(&mut state.z, outputs);
            fit(&mut state.y, outputs);
            unit.squeeze.as_mut().map_or(Ok(()), |squeeze| squeeze.prepare(isa, params, rows))
        })?;
        let channels = self.units[0].outputs;
        fit(&mut self.kept, channels);
        fit(&mut self.passing, channels);
        if self.policy.is_some() {
            fit(&mut self.policy_gradient, channels);
        }
        let value_channels = self.units[self.value].outputs;
        fit(&mut self.value_gradient, value_channels);
        self.heads.prepare(isa, params, &self.pointwise)
    }
}

/// Calls `f` with the numbers of a parameter.
pub(crate) fn read<T>(params: &BTreeMap<String, Var>, name: &str, f: impl FnOnce(&[f32]) -> T) -> Result<T> {
    match params.get(name) {
        Some(var) => with_slices([var.as_tensor()], |[w]| Ok(f(w))),
        None => candle_core::bail!("the network has no parameter `{name}`"),
    }
}

/// The numbers of some boards in a buffer that holds whole boards of `board` numbers.
fn boards<'a>(buffer: &'a [f32], range: &Range<usize>, board: usize) -> &'a [f32] {
    &buffer[range.start * board..range.end * board]
}

/// The groups that `range` is cut into.
pub(crate) fn groups(range: Range<usize>, group: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(group).map(move |start| start..(start + group).min(end))
}

#[cfg(test)]
mod tests;
