//! Batch norm: `y = gamma * (z - mean) / sqrt(var + eps) + beta`, with the batch's own statistics.
//!
//! Statistics are exact to f32: each group of rows gives its own mean and sum of squared deviations, and groups are
//! merged in order in f64 (Chan, Golub and LeVeque, 1983).

use super::rowwise::{NormSums, moments};
use super::tile::Isa;

/// What is known of the channels of a batch after the forward pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Normed {
    /// Mean of each channel.
    pub(crate) mean: Vec<f32>,
    /// Biased variance of each channel.
    pub(crate) var: Vec<f32>,
    /// `1 / sqrt(var + eps)`.
    pub(crate) inverse: Vec<f32>,
    /// The norm is `scale * z + shift`.
    pub(crate) scale: Vec<f32>,
    /// See `scale`.
    pub(crate) shift: Vec<f32>,
}

/// Mean and sum of squared deviations of the channels of one group of rows.
pub(crate) struct GroupStats {
    rows: usize,
    mean: Vec<f32>,
    squares: Vec<f32>,
}

impl GroupStats {
    /// Of `[rows, channels]`.
    pub(crate) fn of(isa: Isa, z: &[f32], channels: usize) -> Self {
        let (mut mean, mut squares) = (vec![0.0; channels], vec![0.0; channels]);
        moments(isa, z, &mut mean, &mut squares);
        GroupStats { rows: z.len() / channels, mean, squares }
    }

    /// The statistics of all groups together.
    pub(crate) fn merge(groups: &[GroupStats], gamma: &[f32], beta: &[f32], eps: f64) -> Normed {
        let channels = gamma.len();
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
        let inverse: Vec<f32> = var.iter().map(|v| (1.0 / (v + eps).sqrt()) as f32).collect();
        let scale: Vec<f32> = gamma.iter().zip(&inverse).map(|(g, i)| g * i).collect();
        let shift = (0..channels).map(|c| (f64::from(beta[c]) - f64::from(scale[c]) * mean[c]) as f32).collect();
        Normed {
            mean: mean.iter().map(|m| *m as f32).collect(),
            var: var.iter().map(|v| *v as f32).collect(),
            inverse,
            scale,
            shift,
        }
    }
}

/// The gradient of a norm with respect to its input, `a * d + b * z + c`, and to its parameters.
pub(crate) struct NormBackward {
    pub(crate) a: Vec<f32>,
    pub(crate) b: Vec<f32>,
    pub(crate) c: Vec<f32>,
    /// Gradient of gamma.
    pub(crate) gamma: Vec<f32>,
    /// Gradient of beta.
    pub(crate) beta: Vec<f32>,
}

impl NormBackward {
    /// From the sums over the groups of a batch of `rows` rows, taken in order.
    pub(crate) fn new(stats: &Normed, gamma: &[f32], groups: &[NormSums], rows: usize) -> Self {
        let channels = gamma.len();
        let (mut beta, mut hat) = (vec![0.0f64; channels], vec![0.0f64; channels]);
        for group in groups {
            for c in 0..channels {
                beta[c] += f64::from(group.plain[c]);
                hat[c] += f64::from(group.centred[c]);
            }
        }
        let rows = rows as f64;
        let (mut a, mut b, mut shift) = (vec![0.0; channels], vec![0.0; channels], vec![0.0; channels]);
        // dz = gamma * inverse * (d - mean(d) - zhat * mean(d * zhat)), where zhat = (z - mean) * inverse
        for c in 0..channels {
            let (inverse, mean) = (f64::from(stats.inverse[c]), f64::from(stats.mean[c]));
            hat[c] *= inverse;
            let scale = f64::from(gamma[c]) * inverse;
            let slope = -scale * inverse * hat[c] / rows;
            a[c] = scale as f32;
            b[c] = slope as f32;
            shift[c] = (-scale * beta[c] / rows - slope * mean) as f32;
        }
        let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect();
        NormBackward { a, b, c: shift, gamma: narrow(hat), beta: narrow(beta) }
    }
}
