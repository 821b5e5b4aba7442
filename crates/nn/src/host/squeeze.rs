//! Squeeze-and-excitation (Hu, Shen and Sun, 2018) of a few boards: `y = relu(n * gate + residual)`, where n is the
//! norm's output and `gate = sigmoid(fc2(relu(fc1(mean of n))))`, one number a board and channel.

use std::collections::BTreeMap;

use candle_core::{Result, Var};

use super::Gradients;
use super::layer::{Layer, LayerGradient};
use crate::kernels::{
    Channelwise, Isa, NormSums, Normed, affine, affine_in_place, column_sums, masked_sums, with_scratch,
};

/// The two linear layers, and what the step knows of each board.
pub(super) struct Squeeze {
    channels: usize,
    squeezed: usize,
    fc1: Layer,
    fc2: Layer,
    pub(super) boards: Vec<f32>,
}

/// Sums over some boards.
pub(super) struct SqueezeGradient {
    fc1: LayerGradient,
    fc2: LayerGradient,
}

impl Squeeze {
    pub(super) fn new(name: &str, channels: usize, squeezed: usize) -> Self {
        let fc1 = Layer::linear(&format!("{name}.fc1"), channels, squeezed);
        let fc2 = Layer::linear(&format!("{name}.fc2"), squeezed, channels);
        Squeeze { channels, squeezed, fc1, fc2, boards: Vec::new() }
    }

    pub(super) fn prepare(&mut self, isa: Isa, params: &BTreeMap<String, Var>, rows: usize) -> Result<()> {
        self.boards.resize(rows * self.board(), 0.0);
        self.fc1.prepare(isa, params)?;
        self.fc2.prepare(isa, params)
    }

    /// Numbers kept of a board: the means, the squeezed layer, the gates. In a group of boards the parts follow each
    /// other, each for all boards.
    pub(super) fn board(&self) -> usize {
        2 * self.channels + self.squeezed
    }

    /// Turns `y`, the norm's output of a group, into the unit's output; fills the group's part of `boards`.
    pub(super) fn forward(&self, isa: Isa, y: &mut [f32], residual: &[f32], kept: &mut [f32]) {
        let (channels, rows) = (self.channels, kept.len() / self.board());
        let board = y.len() / rows;
        let (means, rest) = kept.split_at_mut(rows * channels);
        let (squeezed, gates) = rest.split_at_mut(rows * self.squeezed);
        let scale = channels as f32 / board as f32;
        for (y, mean) in y.chunks_exact(board).zip(means.chunks_exact_mut(channels)) {
            mean.fill(0.0);
            column_sums(isa, y, mean);
            mean.iter_mut().for_each(|m| *m *= scale);
        }
        self.fc1.forward(means, true, squeezed);
        self.fc2.forward(squeezed, false, gates);
        gates.iter_mut().for_each(|g| *g = 1.0 / (1.0 + (-*g).exp()));
        let shift = vec![0.0; channels];
        for ((y, r), gate) in
            y.chunks_exact_mut(board).zip(residual.chunks_exact(board)).zip(gates.chunks_exact(channels))
        {
            affine_in_place(isa, y, Channelwise { scale: gate, shift: &shift }, Some(r), true);
        }
    }

    pub(super) fn gradient(&self, isa: Isa) -> SqueezeGradient {
        SqueezeGradient { fc1: self.fc1.gradient(isa), fc2: self.fc2.gradient(isa) }
    }

    /// Backwards through a group. `d` is the gradient of the unit's output, and is overwritten; `masked` becomes the
    /// gradient of the residual, `normed` that of the norm's output.
    #[allow(clippy::too_many_arguments, reason = "the gradients of three things and their sums")]
    pub(super) fn backward(
        &self,
        isa: Isa,
        stats: &Normed,
        kept: &[f32],
        (y, z): (&[f32], &[f32]),
        d: &mut [f32],
        masked: &mut [f32],
        normed: &mut [f32],
        sums: &mut NormSums,
        gradient: &mut SqueezeGradient,
    ) {
        let (channels, rows) = (self.channels, kept.len() / self.board());
        let board = y.len() / rows;
        let (means, rest) = kept.split_at(rows * channels);
        let (squeezed, gates) = rest.split_at(rows * self.squeezed);
        with_scratch(rows * (2 * channels + self.squeezed), |scratch| {
            let (d_gates, rest) = scratch.split_at_mut(rows * channels);
            let (d_squeezed, d_means) = rest.split_at_mut(rows * self.squeezed);
            let parts = d.chunks_exact(board).zip(y.chunks_exact(board)).zip(z.chunks_exact(board));
            for ((((d, y), z), masked), (d_gate, gate)) in parts
                .zip(masked.chunks_exact_mut(board))
                .zip(d_gates.chunks_exact_mut(channels).zip(gates.chunks_exact(channels)))
            {
                let mut own = NormSums::zeros(channels);
                masked_sums(isa, d, Some(y), z, &stats.mean, masked, &mut own);
                for c in 0..channels {
                    // The sum of the gradient times n, where n = scale * z + shift.
                    let at_mean = stats.scale[c] * stats.mean[c] + stats.shift[c];
                    let sum = stats.scale[c] * own.centred[c] + at_mean * own.plain[c];
                    d_gate[c] = sum * gate[c] * (1.0 - gate[c]);
                }
            }
            self.fc2.add_gradient(&mut gradient.fc2, squeezed, d_gates);
            self.fc2.input_gradient(d_gates, d_squeezed);
            for (d, y) in d_squeezed.iter_mut().zip(squeezed) {
                *d = if *y > 0.0 { *d } else { 0.0 };
            }
            self.fc1.add_gradient(&mut gradient.fc1, means, d_squeezed);
            self.fc1.input_gradient(d_squeezed, d_means);
            let scale = channels as f32 / board as f32;
            d_means.iter_mut().for_each(|d| *d *= scale);
            let boards = d.chunks_exact_mut(board).zip(masked.chunks_exact(board)).zip(z.chunks_exact(board));
            for ((((d, masked), z), normed), (gate, d_mean)) in boards
                .zip(normed.chunks_exact_mut(board))
                .zip(gates.chunks_exact(channels).zip(d_means.chunks_exact(channels)))
            {
                affine(isa, masked, Channelwise { scale: gate, shift: d_mean }, None, false, d);
                masked_sums(isa, d, None, z, &stats.mean, normed, sums);
            }
        });
    }

    pub(super) fn merge(&self, isa: Isa, parts: Vec<SqueezeGradient>, gradients: &mut Gradients) {
        let (fc1, fc2) = parts.into_iter().map(|p| (p.fc1, p.fc2)).unzip();
        self.fc1.merge(isa, fc1, gradients);
        self.fc2.merge(isa, fc2, gradients);
    }
}
