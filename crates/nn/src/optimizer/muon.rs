//! Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024) for one convolution.
//!
//! The momentum of the gradient, as a matrix of outputs by inputs, is replaced by the nearest matrix with orthonormal rows
//! (or columns), so that every direction of the weights moves alike. Five steps of a quintic Newton-Schulz iteration
//! bring the singular values near 1. The step is scaled to the length that AdamW's would have (Liu et al., "Muon is
//! scalable for LLM training", 2025, section 2.2), so that learning rate and decay keep their meaning.

use candle_core::{Result, Tensor, Var};

use super::adamw::Rates;
use crate::arch::{Role, TensorSpec};

/// Decay of the momentum, as published.
const MOMENTUM: f64 = 0.95;
/// Steps of the iteration and its coefficients, as published: fast, and no closer to 1 than 0.7 to 1.2.
const STEPS: usize = 5;
const COEFFICIENTS: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);
/// Root mean square of an AdamW step in units of the learning rate, as published.
const LENGTH: f64 = 0.2;

/// Convolutions that look at neighbours; heads, linear layers, norms and biases are AdamW's.
pub(super) fn suits(spec: &TensorSpec) -> bool {
    matches!(spec.role, Role::Weight(_))
        && matches!(spec.shape[..], [outputs, _, height, _] if outputs >= 8 && height > 1)
}

/// One step with Nesterov momentum.
pub(super) fn step(var: &Var, gradient: &Tensor, momentum: &mut Tensor, rates: &Rates) -> Result<()> {
    let gradient = gradient.detach().affine(rates.clip, 0.0)?;
    *momentum = (momentum.affine(MOMENTUM, 0.0)? + &gradient)?;
    let ahead = (momentum.affine(MOMENTUM, 0.0)? + gradient)?;
    let matrix = ahead.flatten_from(1)?;
    let longest = matrix.dims().iter().copied().max().unwrap_or(1) as f64;
    let direction = orthogonal(&matrix)?.reshape(var.dims())?;
    let change = direction.affine(rates.lr * LENGTH * longest.sqrt(), 0.0)?;
    var.set(&var.detach().affine(rates.keep, 0.0)?.sub(&change)?)
}

/// The matrix with its singular values brought near 1; zero stays zero.
fn orthogonal(matrix: &Tensor) -> Result<Tensor> {
    let (rows, columns) = matrix.dims2()?;
    let tall = rows > columns;
    let mut x = if tall { matrix.t()?.contiguous()? } else { matrix.clone() };
    let norm = f64::from(x.sqr()?.sum_all()?.to_scalar::<f32>()?).sqrt();
    x = x.affine(1.0 / (norm + 1e-12), 0.0)?;
    let (a, b, c) = COEFFICIENTS;
    for _ in 0..STEPS {
        let gram = x.matmul(&x.t()?)?;
        let poly = (gram.affine(b, 0.0)? + gram.matmul(&gram)?.affine(c, 0.0)?)?;
        x = (x.affine(a, 0.0)? + poly.matmul(&x)?)?;
    }
    if tall { x.t()?.contiguous() } else { Ok(x) }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::orthogonal;

    #[test]
    fn singular_values_come_near_one_and_directions_stay() {
        let mut rng = games::Rng::new(3);
        for (rows, columns) in [(8, 8), (16, 72), (72, 16)] {
            let data: Vec<f32> = (0..rows * columns).map(|_| rng.normal() as f32 * 1e-4).collect();
            let matrix = Tensor::from_vec(data, (rows, columns), &Device::Cpu).unwrap();
            let found = orthogonal(&matrix).unwrap();
            let (short, x) = if rows > columns { (columns, found.t().unwrap()) } else { (rows, found.clone()) };
            let gram = x.matmul(&x.t().unwrap().contiguous().unwrap()).unwrap().to_vec2::<f32>().unwrap();
            // The trace is the sum of the squared singular values, the largest entry off the diagonal bounds the rest.
            let trace: f32 = (0..short).map(|i| gram[i][i]).sum();
            assert!((0.5..1.5).contains(&(trace / short as f32)), "{rows}x{columns}: {trace}");
            let along = (matrix * found).unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(along > 0.0, "{rows}x{columns} turned round");
        }
        let zero = Tensor::zeros((8, 72), candle_core::DType::F32, &Device::Cpu).unwrap();
        assert_eq!(orthogonal(&zero).unwrap().abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap(), 0.0);
    }
}
