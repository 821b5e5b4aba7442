//! The buffers in which a model evaluates batches.

use games::Packed;

use super::packed::{Layer, PackedNet};
use super::{Evaluations, Model, Weights};
use crate::NnError;
use crate::arch::ValueHead;
use crate::kernels::{Channelwise, Epilogue, Geometry, Isa, Rows, affine, boards_per_group, column_sums};
use crate::loss::wdl_softmax;
use crate::network::{Mode, Network};

/// Evaluations of one batch, in the executor's buffers.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    /// Policy logits, `[rows, actions]`; illegal moves are among them.
    pub policy: &'a [f32],
    /// Values, -1..1, the mover's view.
    pub value: &'a [f32],
    /// Probabilities of win, draw and loss `[rows, 3]`, the mover's view, if the network has them.
    pub wdl: Option<&'a [f32]>,
}

impl Outputs<'_> {
    /// A copy.
    pub fn to_evaluations(self) -> Evaluations {
        Evaluations { policy: self.policy.to_vec(), value: self.value.to_vec(), wdl: self.wdl.map(<[f32]>::to_vec) }
    }
}

/// Evaluates batches on one thread, without allocating (on the CPU).
pub struct Executor {
    model: Model,
    max_batch: usize,
    planes: Vec<f32>,
    policy: Vec<f32>,
    value: Vec<f32>,
    /// What the value head gives, `[rows, 1 or 3]`.
    raw_value: Vec<f32>,
    scratch: Scratch,
}

/// Room for the activations of a few boards, which go through the whole network together: the buffers stay in the
/// second-level cache.
#[derive(Default)]
struct Scratch {
    boards: usize,
    trunk: Vec<f32>,
    inner: Vec<f32>,
    other: Vec<f32>,
    pooled: Vec<f32>,
    squeezed: Vec<f32>,
    value_planes: Vec<f32>,
    hidden: Vec<f32>,
    zeros: Vec<f32>,
}

impl Executor {
    pub(super) fn new(model: Model, max_batch: usize) -> Self {
        let max_batch = max_batch.max(1);
        let arch = model.arch.clone();
        let shape = arch.shape();
        let scratch = if model.on_device() {
            Scratch::default()
        } else {
            let boards = (2 * boards_per_group(shape.squares())).min(max_batch);
            let trunk = boards * shape.squares() * arch.channels;
            Scratch {
                boards,
                trunk: vec![0.0; trunk],
                inner: vec![0.0; trunk],
                other: vec![0.0; trunk],
                pooled: vec![0.0; boards * arch.channels],
                squeezed: vec![0.0; boards * arch.squeezed().unwrap_or(0)],
                value_planes: vec![0.0; boards * shape.squares() * arch.value_channels],
                hidden: vec![0.0; boards * arch.value_hidden],
                zeros: vec![0.0; arch.channels],
            }
        };
        Executor {
            max_batch,
            planes: vec![0.0; max_batch * shape.inputs()],
            policy: vec![0.0; max_batch * shape.actions()],
            value: vec![0.0; max_batch],
            raw_value: vec![0.0; max_batch * arch.value_outputs()],
            scratch,
            model,
        }
    }

    /// The model it evaluates.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Most positions of a batch.
    pub fn max_batch(&self) -> usize {
        self.max_batch
    }

    /// Evaluates a batch of positions.
    ///
    /// # Errors
    /// [`NnError::BatchTooLarge`] beyond [`Executor::max_batch`] positions, [`NnError::Candle`] if a device fails.
    pub fn evaluate(&mut self, inputs: &[Packed]) -> Result<Outputs<'_>, NnError> {
        let shape = self.model.arch.shape();
        if inputs.len() > self.max_batch {
            return Err(NnError::BatchTooLarge { rows: inputs.len(), max: self.max_batch });
        }
        for (input, planes) in inputs.iter().zip(self.planes.chunks_exact_mut(shape.inputs())) {
            input.write_channels_last(shape, planes);
        }
        self.run(inputs.len())?;
        Ok(self.outputs(inputs.len()))
    }

    /// Logits and what the value head gives (after tanh for a scalar) for planes `[rows, squares, planes]`.
    pub(crate) fn raw(&mut self, planes: &[f32]) -> Result<(&[f32], &[f32]), NnError> {
        let arch = self.model.arch.clone();
        let rows = planes.len() / arch.shape().inputs();
        self.planes[..planes.len()].copy_from_slice(planes);
        self.run(rows)?;
        Ok((&self.policy[..rows * arch.shape().actions()], &self.raw_value[..rows * arch.value_outputs()]))
    }

    fn run(&mut self, rows: usize) -> Result<(), NnError> {
        let weights = self.model.weights.clone();
        match &*weights {
            Weights::Packed(net) => {
                self.run_packed(net, rows);
                Ok(())
            }
            Weights::Device(network) => self.run_device(network, rows),
        }
    }

    /// Turns what the value head gave into values, and shows the first `rows` rows.
    fn outputs(&mut self, rows: usize) -> Outputs<'_> {
        let arch = &self.model.arch;
        let outputs = arch.value_outputs();
        let raw = &mut self.raw_value[..rows * outputs];
        for (value, raw) in self.value.iter_mut().zip(raw.chunks_exact_mut(outputs)) {
            *value = match *raw {
                [win, draw, loss] => {
                    let p = wdl_softmax([win, draw, loss]);
                    raw.copy_from_slice(&p);
                    p[0] - p[2]
                }
                _ => raw[0],
            };
        }
        Outputs {
            policy: &self.policy[..rows * arch.shape().actions()],
            value: &self.value[..rows],
            wdl: (arch.value == ValueHead::Wdl).then_some(&self.raw_value[..rows * outputs]),
        }
    }

    fn run_device(&mut self, network: &Network, rows: usize) -> Result<(), NnError> {
        if rows == 0 {
            return Ok(());
        }
        let x = network.input(&self.planes[..rows * network.architecture().shape().inputs()])?;
        let (policy, value) = network.forward(&x, Mode::Eval)?;
        let policy: Vec<f32> = policy.flatten_all()?.to_vec1()?;
        let value: Vec<f32> = value.flatten_all()?.to_vec1()?;
        self.policy[..policy.len()].copy_from_slice(&policy);
        self.raw_value[..value.len()].copy_from_slice(&value);
        Ok(())
    }

    fn run_packed(&mut self, net: &PackedNet, rows: usize) {
        let arch = self.model.arch.clone();
        let (inputs, actions, outputs) = (arch.shape().inputs(), arch.shape().actions(), arch.value_outputs());
        let step = self.scratch.boards;
        for start in (0..rows).step_by(step) {
            let boards = step.min(rows - start);
            let planes = &self.planes[start * inputs..][..boards * inputs];
            let policy = &mut self.policy[start * actions..][..boards * actions];
            let value = &mut self.raw_value[start * outputs..][..boards * outputs];
            self.scratch.run(net, boards, planes, policy, value);
            if arch.value == ValueHead::Scalar {
                value.iter_mut().for_each(|v| *v = v.tanh());
            }
        }
    }
}

/// One layer over some boards.
fn apply(
    layer: &Layer,
    geometry: &Geometry,
    boards: usize,
    x: &[f32],
    residual: Option<&[f32]>,
    relu: bool,
    out: &mut [f32],
) {
    let stride = x.len() / (boards * geometry.squares());
    let epilogue = Epilogue { bias: Some(&layer.bias), residual, relu };
    layer.weights.apply(geometry, boards, Rows { data: x, stride }, epilogue, out);
}

impl Scratch {
    fn run(&mut self, net: &PackedNet, boards: usize, planes: &[f32], policy: &mut [f32], value: &mut [f32]) {
        let (isa, squares) = (Isa::best(), net.conv3x3.squares());
        let channels = net.stem.weights.outputs();
        let len = boards * squares * channels;
        let (mut trunk, mut other) = (&mut self.trunk[..len], &mut self.other[..len]);
        let mut inner = &mut self.inner[..len];
        apply(&net.stem, &net.conv3x3, boards, planes, None, true, trunk);
        for block in &net.blocks {
            apply(&block.conv1, &net.conv3x3, boards, trunk, None, true, inner);
            match &block.se {
                None => apply(&block.conv2, &net.conv3x3, boards, inner, Some(trunk), true, other),
                Some((fc1, fc2)) => {
                    apply(&block.conv2, &net.conv3x3, boards, inner, None, false, other);
                    let board = squares * channels;
                    let pooled = &mut self.pooled[..boards * channels];
                    for (z, mean) in other.chunks_exact(board).zip(pooled.chunks_exact_mut(channels)) {
                        mean.fill(0.0);
                        column_sums(isa, z, mean);
                        mean.iter_mut().for_each(|m| *m /= squares as f32);
                    }
                    let squeezed = &mut self.squeezed[..boards * fc1.weights.outputs()];
                    apply(fc1, &net.single, boards, pooled, None, true, squeezed);
                    apply(fc2, &net.single, boards, squeezed, None, false, pooled);
                    pooled.iter_mut().for_each(|g| *g = 1.0 / (1.0 + (-*g).exp()));
                    let gated = inner.chunks_exact_mut(board).zip(other.chunks_exact(board));
                    for ((out, z), (r, g)) in gated.zip(trunk.chunks_exact(board).zip(pooled.chunks_exact(channels))) {
                        affine(isa, z, Channelwise { scale: g, shift: &self.zeros }, Some(r), true, out);
                    }
                    std::mem::swap(&mut inner, &mut other);
                }
            }
            std::mem::swap(&mut trunk, &mut other);
        }
        match &net.policy_conv {
            Some(conv) => {
                apply(conv, &net.conv3x3, boards, trunk, None, true, inner);
                apply(&net.policy_out, &net.pointwise, boards, inner, None, false, policy);
            }
            None => apply(&net.policy_out, &net.pointwise, boards, trunk, None, false, policy),
        }
        let value_planes = &mut self.value_planes[..boards * squares * net.value_conv.weights.outputs()];
        apply(&net.value_conv, &net.pointwise, boards, trunk, None, true, value_planes);
        let hidden = &mut self.hidden[..boards * net.value_fc1.weights.outputs()];
        apply(&net.value_fc1, &net.single, boards, value_planes, None, true, hidden);
        apply(&net.value_fc2, &net.single, boards, hidden, None, false, value);
    }
}
