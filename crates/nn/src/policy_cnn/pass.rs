//! A training step's forward and backward pass: part of the batch by part, and each part group of boards by group, in
//! buffers that stay in the cache.
//!
//! The loss is the cross-entropy over the legal moves: the engine asks for no other logits, and a position has some
//! thirty of the 4096. So the last layer is computed for these alone, forwards and backwards, which leaves a third of
//! the work.

use std::collections::BTreeMap;
use std::ops::Range;

use candle_core::{Result, Var};
use games::{Game, PolicyChess};
use rayon::prelude::*;

use super::{CHANNELS, FLAT, HIDDEN, tensors};
use crate::host::{Gradients, Layer, LayerGradient, PART, cut, groups, read};
use crate::kernels::{Geometry, Isa, boards_per_group, with_scratch};
use crate::loss::{BatchView, PolicySums, policy_row};

const SQUARES: usize = 64;
/// Numbers of a board between the convolutions.
const BOARD: usize = SQUARES * CHANNELS;
/// Policy indices with one from-square.
const BLOCK: usize = 64;

/// The layers with the weights of the present step, and the buffers of a batch.
pub(super) struct Pass {
    isa: Isa,
    conv1: Layer,
    conv2: Layer,
    fc1: Layer,
    fc2: Vec<f32>,
    fc2_bias: Vec<f32>,
    /// Outputs of the hidden layer, `[rows, HIDDEN]`.
    hidden: Vec<f32>,
    /// Gradients of the legal moves' logits.
    logits: Vec<f32>,
    gradients: Gradients,
}

/// One part of the batch, and its part of the buffers.
struct Job<'a> {
    rows: Range<usize>,
    hidden: &'a mut [f32],
    logits: &'a mut [f32],
}

/// Sums over one part of the batch.
struct Part {
    loss: PolicySums,
    conv1: LayerGradient,
    conv2: LayerGradient,
    fc1: LayerGradient,
}

impl Pass {
    pub(super) fn new() -> Self {
        let geometry = || Geometry::conv3x3(8, 8);
        let zeros = |len: usize| vec![0.0; len];
        Pass {
            isa: Isa::best(),
            conv1: Layer::with("conv1", geometry(), PolicyChess::SHAPE.planes(), CHANNELS),
            conv2: Layer::with("conv2", geometry(), CHANNELS, CHANNELS),
            fc1: Layer::linear("fc1", FLAT, HIDDEN),
            fc2: Vec::new(),
            fc2_bias: Vec::new(),
            hidden: Vec::new(),
            logits: Vec::new(),
            gradients: tensors().into_iter().map(|t| (t.name, zeros(t.shape.iter().product()))).collect(),
        }
    }

    /// Takes over the weights with which the next runs compute.
    pub(super) fn prepare(&mut self, params: &BTreeMap<String, Var>) -> Result<()> {
        self.conv1.prepare(self.isa, params)?;
        self.conv2.prepare(self.isa, params)?;
        self.fc1.prepare(self.isa, params)?;
        read(params, "fc2.weight", |w| w.clone_into(&mut self.fc2))?;
        read(params, "fc2.bias", |b| b.clone_into(&mut self.fc2_bias))
    }

    /// The gradients of the last training run.
    pub(super) fn gradients(&self) -> &Gradients {
        &self.gradients
    }

    /// The loss of a batch, which must fit the network, and its gradients.
    pub(super) fn train(&mut self, view: &BatchView<'_>) -> PolicySums {
        let targets = |row| view.target[view.span(row)].iter().any(|t| *t > 0.0);
        let rows = (0..view.rows).filter(|row| targets(*row)).count();
        let (parts, hidden, logits) = self.run(view, Some(1.0 / rows.max(1) as f32));
        self.last_layer(view, &hidden, &logits);
        (self.hidden, self.logits) = (hidden, logits);
        let mut loss = PolicySums::default();
        let (mut conv1, mut conv2, mut fc1) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            loss.add(&part.loss);
            conv1.push(part.conv1);
            conv2.push(part.conv2);
            fc1.push(part.fc1);
        }
        self.conv1.merge(self.isa, conv1, &mut self.gradients);
        self.conv2.merge(self.isa, conv2, &mut self.gradients);
        self.fc1.merge(self.isa, fc1, &mut self.gradients);
        loss
    }

    /// The loss of a batch alone.
    pub(super) fn evaluate(&mut self, view: &BatchView<'_>) -> PolicySums {
        let (parts, hidden, logits) = self.run(view, None);
        (self.hidden, self.logits) = (hidden, logits);
        let mut loss = PolicySums::default();
        parts.iter().for_each(|part| loss.add(&part.loss));
        loss
    }

    /// All parts of a batch, and its buffers. With `scale`, the factor of the gradients, backwards too.
    fn run(&mut self, view: &BatchView<'_>, scale: Option<f32>) -> (Vec<Part>, Vec<f32>, Vec<f32>) {
        let (mut hidden, mut logits) = (std::mem::take(&mut self.hidden), std::mem::take(&mut self.logits));
        hidden.resize(view.rows * HIDDEN, 0.0);
        logits.resize(view.legal.len(), 0.0);
        let (mut hiddens, mut all) = (hidden.as_mut_slice(), logits.as_mut_slice());
        let mut jobs = Vec::new();
        for rows in groups(0..view.rows, PART) {
            let entries = (view.legal_offsets[rows.end] - view.legal_offsets[rows.start]) as usize;
            let (hidden, logits) = (cut(&mut hiddens, rows.len() * HIDDEN), cut(&mut all, entries));
            jobs.push(Job { rows, hidden, logits });
        }
        let this = &*self;
        let parts = jobs.into_par_iter().map(|job| this.part(job, view, scale)).collect();
        (parts, hidden, logits)
    }

    fn part(&self, job: Job<'_>, view: &BatchView<'_>, scale: Option<f32>) -> Part {
        let mut part = Part {
            loss: PolicySums::default(),
            conv1: self.conv1.gradient(self.isa),
            conv2: self.conv2.gradient(self.isa),
            fc1: self.fc1.gradient(self.isa),
        };
        let (mut hiddens, mut logits) = (job.hidden, job.logits);
        for rows in groups(job.rows, boards_per_group(SQUARES)) {
            let hidden = cut(&mut hiddens, rows.len() * HIDDEN);
            let entries = (view.legal_offsets[rows.end] - view.legal_offsets[rows.start]) as usize;
            self.group(rows, view, scale, hidden, cut(&mut logits, entries), &mut part);
        }
        part
    }

    fn group(
        &self,
        rows: Range<usize>,
        view: &BatchView<'_>,
        scale: Option<f32>,
        hidden: &mut [f32],
        mut logits: &mut [f32],
        part: &mut Part,
    ) {
        let inputs = PolicyChess::SHAPE.inputs();
        let planes = &view.planes[rows.start * inputs..rows.end * inputs];
        let len = rows.len() * BOARD;
        with_scratch(5 * len + hidden.len(), |scratch| {
            let (y1, rest) = scratch.split_at_mut(len);
            let (y2, rest) = rest.split_at_mut(len);
            let (flat, rest) = rest.split_at_mut(len);
            let (d, rest) = rest.split_at_mut(len);
            let (d_flat, d_hidden) = rest.split_at_mut(len);
            self.conv1.forward(planes, true, y1);
            self.conv2.forward(y1, true, y2);
            turn(y2, flat, SQUARES);
            self.fc1.forward(flat, true, hidden);
            d_hidden.fill(0.0);
            for ((row, h), d_h) in rows.zip(hidden.chunks_exact(HIDDEN)).zip(d_hidden.chunks_exact_mut(HIDDEN)) {
                let span = view.span(row);
                let (legal, out) = (&view.legal[span.clone()], cut(&mut logits, span.len()));
                for (index, out) in legal.iter().zip(&mut *out) {
                    *out = dot(self.weights_of(*index), h) + self.fc2_bias[usize::from(*index)];
                }
                policy_row(out, &view.target[span], &mut part.loss);
                let Some(scale) = scale else { continue };
                for (index, d) in legal.iter().zip(out) {
                    *d *= scale;
                    add_scaled(d_h, *d, self.weights_of(*index));
                }
            }
            if scale.is_none() {
                return;
            }
            mask(d_hidden, hidden);
            self.fc1.add_gradient(&mut part.fc1, flat, d_hidden);
            self.fc1.input_gradient(d_hidden, d_flat);
            turn(d_flat, d, CHANNELS);
            mask(d, y2);
            self.conv2.add_gradient(&mut part.conv2, y1, d);
            // What the convolutions give is not needed any more.
            self.conv2.input_gradient(d, d_flat);
            mask(d_flat, y1);
            self.conv1.add_gradient(&mut part.conv1, planes, d_flat);
        });
    }

    fn weights_of(&self, index: u16) -> &[f32] {
        &self.fc2[usize::from(index) * HIDDEN..][..HIDDEN]
    }

    /// The gradients of the last layer, from-square by from-square, each row in order.
    fn last_layer(&mut self, view: &BatchView<'_>, hidden: &[f32], logits: &[f32]) {
        let (Some(mut weights), Some(mut biases)) =
            (self.gradients.remove("fc2.weight"), self.gradients.remove("fc2.bias"))
        else {
            return;
        };
        let blocks = weights.par_chunks_mut(BLOCK * HIDDEN).zip(biases.par_chunks_mut(BLOCK));
        blocks.enumerate().for_each(|(block, (weights, biases))| {
            weights.fill(0.0);
            biases.fill(0.0);
            let first = block * BLOCK;
            for (row, h) in hidden.chunks_exact(HIDDEN).enumerate() {
                let span = view.span(row);
                let legal = &view.legal[span.clone()];
                let from = legal.partition_point(|index| usize::from(*index) < first);
                for (index, d) in legal.iter().zip(&logits[span]).skip(from) {
                    let Some(at) = usize::from(*index).checked_sub(first).filter(|at| *at < BLOCK) else { break };
                    add_scaled(&mut weights[at * HIDDEN..][..HIDDEN], *d, h);
                    biases[at] += d;
                }
            }
        });
        self.gradients.insert("fc2.weight".to_owned(), weights);
        self.gradients.insert("fc2.bias".to_owned(), biases);
    }
}

/// Boards of rows of `BOARD / rows` numbers, turned: column after column.
fn turn(boards: &[f32], out: &mut [f32], rows: usize) {
    let columns = BOARD / rows;
    for (board, out) in boards.chunks_exact(BOARD).zip(out.chunks_exact_mut(BOARD)) {
        for (column, out) in out.chunks_exact_mut(rows).enumerate() {
            for (row, out) in out.iter_mut().enumerate() {
                *out = board[row * columns + column];
            }
        }
    }
}

/// Backwards through a ReLU that gave `y`.
fn mask(d: &mut [f32], y: &[f32]) {
    for (d, y) in d.iter_mut().zip(y) {
        *d = if *y > 0.0 { *d } else { 0.0 };
    }
}

/// The scalar product of two rows of [`HIDDEN`] numbers, with sums side by side.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}

/// `to += factor * from`.
fn add_scaled(to: &mut [f32], factor: f32, from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}
