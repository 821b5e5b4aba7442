//! Batch norm folded into the convolution before it: `scale * w`, and a bias.

use candle_core::{Result, Tensor};

use crate::network::EPS;

/// A convolution with bias.
pub(crate) struct Folded {
    /// `[outputs][inputs][taps]`.
    pub(crate) weight: Vec<f32>,
    /// One number an output.
    pub(crate) bias: Vec<f32>,
}

/// Folds running statistics, scale and shift into the weights.
pub(crate) fn conv_norm(w: &Tensor, gamma: &Tensor, beta: &Tensor, mean: &Tensor, var: &Tensor) -> Result<Folded> {
    let vector = |t: &Tensor| t.flatten_all()?.to_vec1::<f32>();
    let (mut weight, gamma, beta, mean, var) = (vector(w)?, vector(gamma)?, vector(beta)?, vector(mean)?, vector(var)?);
    let fan_in = weight.len() / gamma.len();
    let mut bias = Vec::with_capacity(gamma.len());
    for (o, row) in weight.chunks_exact_mut(fan_in).enumerate() {
        let scale = f64::from(gamma[o]) / (f64::from(var[o]) + EPS).sqrt();
        row.iter_mut().for_each(|w| *w = (f64::from(*w) * scale) as f32);
        bias.push((f64::from(beta[o]) - f64::from(mean[o]) * scale) as f32);
    }
    Ok(Folded { weight, bias })
}
