//! Batch norm, with an optional residual and ReLU: `y = relu(gamma * (z - mean) / sqrt(var + eps) + beta + residual)`.
//!
//! Statistics are exact to f32: each group of rows gives its own mean and sum of squared deviations, and groups are
//! merged in order in f64 (Chan, Golub and LeVeque, 1983).

use std::ops::Range;

use rayon::prelude::*;

use super::at_least;

/// What is known of the channels of a batch after the forward pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Normed {
    /// Mean of each channel.
    pub(crate) mean: Vec<f32>,
    /// Biased variance of each channel.
    pub(crate) var: Vec<f32>,
    /// `1 / sqrt(var + eps)`.
    pub(crate) inverse: Vec<f32>,
}

/// Mean and sum of squared deviations of the channels of one group of rows.
pub(crate) struct GroupStats {
    rows: usize,
    mean: Vec<f32>,
    squares: Vec<f32>,
}

impl GroupStats {
    /// Of `[rows, channels]`.
    pub(crate) fn of(z: &[f32], channels: usize) -> Self {
        let rows = z.len() / channels;
        let mut mean = vec![0.0f32; channels];
        for row in z.chunks_exact(channels) {
            for (m, x) in mean.iter_mut().zip(row) {
                *m += x;
            }
        }
        let scale = 1.0 / rows as f32;
        mean.iter_mut().for_each(|m| *m *= scale);
        let mut squares = vec![0.0f32; channels];
        for row in z.chunks_exact(channels) {
            for ((s, x), m) in squares.iter_mut().zip(row).zip(&mean) {
                *s += (x - m) * (x - m);
            }
        }
        GroupStats { rows, mean, squares }
    }

    /// The statistics of all groups together.
    pub(crate) fn merge(groups: &[GroupStats], channels: usize, eps: f64) -> Normed {
        let mut mean = vec![0.0f64; channels];
        let mut squares = vec![0.0f64; channels];
        let mut seen = 0.0;
        for group in groups {
            let rows = group.rows as f64;
            let all = seen + rows;
            for c in 0..channels {
                let delta = f64::from(group.mean[c]) - mean[c];
                mean[c] += delta * rows / all;
                squares[c] += f64::from(group.squares[c]) + delta * delta * seen * rows / all;
            }
            seen = all;
        }
        let var: Vec<f64> = squares.iter().map(|s| s / seen).collect();
        Normed {
            mean: mean.iter().map(|m| *m as f32).collect(),
            inverse: var.iter().map(|v| (1.0 / (v + eps).sqrt()) as f32).collect(),
            var: var.iter().map(|v| *v as f32).collect(),
        }
    }
}

/// The second half of the forward pass.
pub(crate) struct NormForward<'a> {
    /// Statistics of the batch.
    pub(crate) stats: &'a Normed,
    /// Scale.
    pub(crate) gamma: &'a [f32],
    /// Shift.
    pub(crate) beta: &'a [f32],
    /// Added before the ReLU.
    pub(crate) residual: Option<&'a [f32]>,
    /// Whether negative results become 0.
    pub(crate) relu: bool,
}

/// Normalises `z`, `rows` of `[channels]`, in pieces of `piece` numbers.
pub(crate) fn norm_forward(forward: &NormForward<'_>, z: &[f32], piece: usize) -> Vec<f32> {
    let stats = forward.stats;
    let channels = stats.mean.len();
    let scale: Vec<f32> = forward.gamma.iter().zip(&stats.inverse).map(|(g, i)| g * i).collect();
    let shift: Vec<f32> = forward
        .beta
        .iter()
        .zip(&scale)
        .zip(&stats.mean)
        .map(|((b, s), m)| f64::from(*b) - f64::from(*s) * f64::from(*m))
        .map(|x| x as f32)
        .collect();
    let floor = if forward.relu { 0.0 } else { f32::NEG_INFINITY };
    let mut out = vec![0.0; z.len()];
    out.par_chunks_mut(piece).enumerate().for_each(|(i, out)| {
        let at = i * piece..i * piece + out.len();
        let z = &z[at.clone()];
        let (scale, shift) = (&scale[..channels], &shift[..channels]);
        match forward.residual.map(|r| &r[at]) {
            Some(residual) => {
                let rows = out.chunks_exact_mut(channels).zip(z.chunks_exact(channels));
                for ((out, z), r) in rows.zip(residual.chunks_exact(channels)) {
                    for c in 0..channels {
                        out[c] = at_least(z[c] * scale[c] + shift[c] + r[c], floor);
                    }
                }
            }
            None => {
                for (out, z) in out.chunks_exact_mut(channels).zip(z.chunks_exact(channels)) {
                    for c in 0..channels {
                        out[c] = at_least(z[c] * scale[c] + shift[c], floor);
                    }
                }
            }
        }
    });
    out
}

/// What the backward pass of the norm needs, and gives once its sums are known.
pub(crate) struct NormGradient<'a> {
    z: &'a [f32],
    dm: std::borrow::Cow<'a, [f32]>,
    channels: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    /// Gradient of gamma.
    pub(crate) gamma: Vec<f32>,
    /// Gradient of beta.
    pub(crate) beta: Vec<f32>,
}

/// The first half of the backward pass: masks `dy` by the ReLU and sums over the batch, group by group in order.
///
/// `y` is the output of the forward pass; `None` if there was no ReLU.
pub(crate) fn norm_backward<'a>(
    stats: &Normed,
    gamma: &[f32],
    z: &'a [f32],
    y: Option<&[f32]>,
    dy: &'a [f32],
    piece: usize,
) -> NormGradient<'a> {
    let channels = gamma.len();
    let mut masked = if y.is_some() { vec![0.0; dy.len()] } else { Vec::new() };
    let sum = |z: &[f32], dm: &[f32]| {
        let mut sums = (vec![0.0f32; channels], vec![0.0f32; channels]);
        let (plain, hat) = (&mut sums.0[..channels], &mut sums.1[..channels]);
        let (mean, inverse) = (&stats.mean[..channels], &stats.inverse[..channels]);
        for (z, dm) in z.chunks_exact(channels).zip(dm.chunks_exact(channels)) {
            for c in 0..channels {
                plain[c] += dm[c];
                hat[c] += dm[c] * ((z[c] - mean[c]) * inverse[c]);
            }
        }
        sums
    };
    let groups: Vec<(Vec<f32>, Vec<f32>)> = match y {
        Some(y) => masked
            .par_chunks_mut(piece)
            .zip(dy.par_chunks(piece).zip(y.par_chunks(piece)))
            .zip(z.par_chunks(piece))
            .map(|((dm, (dy, y)), z)| {
                for ((dm, dy), y) in dm.iter_mut().zip(dy).zip(y) {
                    *dm = if *y > 0.0 { *dy } else { 0.0 };
                }
                sum(z, dm)
            })
            .collect(),
        None => dy.par_chunks(piece).zip(z.par_chunks(piece)).map(|(dy, z)| sum(z, dy)).collect(),
    };
    let rows = (z.len() / channels) as f64;
    let mut beta = vec![0.0f64; channels];
    let mut hat = vec![0.0f64; channels];
    for (plain, with_hat) in &groups {
        for c in 0..channels {
            beta[c] += f64::from(plain[c]);
            hat[c] += f64::from(with_hat[c]);
        }
    }
    // dz = gamma * inverse * (dm - mean(dm) - xhat * mean(dm * xhat)) = a * dm + b * z + c
    let (mut a, mut b, mut shift) = (vec![0.0; channels], vec![0.0; channels], vec![0.0; channels]);
    for c in 0..channels {
        let (inverse, mean) = (f64::from(stats.inverse[c]), f64::from(stats.mean[c]));
        let scale = f64::from(gamma[c]) * inverse;
        let slope = -scale * inverse * hat[c] / rows;
        a[c] = scale as f32;
        b[c] = slope as f32;
        shift[c] = (-scale * beta[c] / rows - slope * mean) as f32;
    }
    NormGradient {
        z,
        dm: if y.is_some() { masked.into() } else { dy.into() },
        channels,
        a,
        b,
        c: shift,
        gamma: hat.iter().map(|x| *x as f32).collect(),
        beta: beta.iter().map(|x| *x as f32).collect(),
    }
}

impl NormGradient<'_> {
    /// The second half: the gradient of `z` for a range of rows, into rows `stride` apart.
    pub(crate) fn fill(&self, rows: Range<usize>, stride: usize, dz: &mut [f32]) {
        let channels = self.channels;
        let at = rows.start * channels..rows.end * channels;
        let inputs = self.z[at.clone()].chunks_exact(channels).zip(self.dm[at].chunks_exact(channels));
        let (a, b, c) = (&self.a[..channels], &self.b[..channels], &self.c[..channels]);
        for (dz, (z, dm)) in dz.chunks_exact_mut(stride).zip(inputs) {
            let dz = &mut dz[..channels];
            for i in 0..channels {
                dz[i] = a[i] * dm[i] + (b[i] * z[i] + c[i]);
            }
        }
    }

    /// The gradient of the residual, which is the masked gradient of the output.
    pub(crate) fn residual(self) -> Vec<f32> {
        self.dm.into_owned()
    }
}
