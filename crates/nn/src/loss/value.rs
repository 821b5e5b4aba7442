//! The value's error: squared for a scalar head, cross-entropy for win, draw and loss.
//!
//! A target v becomes probabilities that have the same mean and as many draws as possible: v > 0 is a win with
//! probability v and else a draw, v < 0 a loss with probability -v and else a draw.

use candle_core::{Result, Tensor};

use super::BatchView;
use crate::arch::ValueHead;

/// Sums over the rows that have a value target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ValueSums {
    /// Rows with a target.
    pub(crate) rows: usize,
    /// Weighted loss.
    pub(crate) loss: f64,
    /// `|prediction - target|`.
    pub(crate) abs_error: f64,
}

fn wdl_target(value: f32) -> [f32; 3] {
    let v = value.clamp(-1.0, 1.0);
    [v.max(0.0), 1.0 - v.abs(), (-v).max(0.0)]
}

/// Probabilities of win, draw and loss.
pub(crate) fn wdl_softmax(logits: [f32; 3]) -> [f32; 3] {
    let max = logits[0].max(logits[1]).max(logits[2]);
    let e = logits.map(|l| (l - max).exp());
    let sum = e[0] + e[1] + e[2];
    e.map(|x| x / sum)
}

impl ValueSums {
    pub(crate) fn add(&mut self, other: &ValueSums) {
        self.rows += other.rows;
        self.loss += other.loss;
        self.abs_error += other.abs_error;
    }
}

/// Adds one row to the sums. `output` is the value after tanh, or the three logits.
pub(crate) fn value_row(head: ValueHead, output: &[f32], target: f32, weight: f32, sums: &mut ValueSums) {
    let (loss, predicted) = match head {
        ValueHead::Scalar => ((f64::from(output[0]) - f64::from(target)).powi(2), output[0]),
        ValueHead::Wdl => {
            let logits = [output[0], output[1], output[2]];
            let max = f64::from(logits[0].max(logits[1]).max(logits[2]));
            let log_sum = max + logits.iter().map(|l| (f64::from(*l) - max).exp()).sum::<f64>().ln();
            let terms = wdl_target(target).into_iter().zip(logits).filter(|(t, _)| *t > 0.0);
            let p = wdl_softmax(logits);
            (terms.map(|(t, l)| f64::from(t) * (log_sum - f64::from(l))).sum(), p[0] - p[2])
        }
    };
    sums.rows += 1;
    sums.loss += f64::from(weight) * loss;
    sums.abs_error += f64::from((predicted - target).abs());
}

/// The gradient of `weight` times one row's loss with respect to the head's last layer, before a tanh.
pub(crate) fn value_gradient(head: ValueHead, output: &[f32], target: f32, weight: f32, gradient: &mut [f32]) {
    match head {
        ValueHead::Scalar => gradient[0] = weight * 2.0 * (output[0] - target) * (1.0 - output[0] * output[0]),
        ValueHead::Wdl => {
            let p = wdl_softmax([output[0], output[1], output[2]]);
            for (g, (p, t)) in gradient.iter_mut().zip(p.into_iter().zip(wdl_target(target))) {
                *g = weight * (p - t);
            }
        }
    }
}

/// The sums of a batch from the value head's outputs, `[rows, 1]` or `[rows, 3]`, in main memory.
pub(crate) fn value_sums(outputs: &[f32], head: ValueHead, view: &BatchView<'_>) -> ValueSums {
    let (mut sums, width) = (ValueSums::default(), outputs.len() / view.rows);
    for (row, output) in outputs.chunks_exact(width).enumerate() {
        if view.value_weight[row] > 0.0 {
            value_row(head, output, view.value[row], view.value_weight[row], &mut sums);
        }
    }
    sums
}

/// The loss as a scalar that carries gradients: the weighted sum over the number of rows with a target, so that a
/// batch with few targets teaches as much per target, and a small weight stays small. Also the sums behind it.
pub(crate) fn value_loss(outputs: &Tensor, head: ValueHead, view: &BatchView<'_>) -> Result<(Tensor, ValueSums)> {
    let host: Vec<f32> = outputs.flatten_all()?.to_vec1()?;
    let sums = value_sums(&host, head, view);
    let scale = 1.0 / sums.rows.max(1) as f32;
    let weights: Vec<f32> = view.value_weight.iter().map(|w| w * scale).collect();
    // The value of a row without target may be anything, even a NaN: 0 takes its place.
    let known = |row: usize| if view.value_weight[row] > 0.0 { view.value[row] } else { 0.0 };
    let device = outputs.device();
    let loss = match head {
        ValueHead::Scalar => {
            let target = Tensor::from_vec((0..view.rows).map(known).collect(), (view.rows, 1), device)?;
            let weights = Tensor::from_vec(weights, (view.rows, 1), device)?;
            ((outputs - target)?.sqr()? * weights)?.sum_all()?
        }
        ValueHead::Wdl => {
            let target = (0..view.rows).flat_map(|row| wdl_target(known(row)).map(|t| -t * weights[row]));
            let target = Tensor::from_vec(target.collect::<Vec<f32>>(), (view.rows, 3), device)?;
            (candle_nn::ops::log_softmax(outputs, 1)? * target)?.sum_all()?
        }
    };
    Ok((loss, sums))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    fn view<'a>(value: &'a [f32], weight: &'a [f32]) -> BatchView<'a> {
        BatchView {
            rows: value.len(),
            planes: &[],
            legal_offsets: &[],
            legal: &[],
            target: &[],
            value,
            value_weight: weight,
        }
    }

    #[test]
    fn targets_keep_their_mean() {
        for v in [-1.0, -0.4, 0.0, 0.25, 1.0] {
            let t = wdl_target(v);
            assert!((t[0] - t[2] - v).abs() < 1e-6 && (t.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn t4_wdl_logits_of_a_hundred() {
        let outputs = Var::from_slice(&[100.0f32, -100.0, 0.0, -100.0, 0.0, 100.0], (2, 3), &Device::Cpu).unwrap();
        let (loss, sums) = value_loss(&outputs, ValueHead::Wdl, &view(&[-1.0, -1.0], &[1.0, 1.0])).unwrap();
        assert!((loss.to_scalar::<f32>().unwrap() - 50.0).abs() < 1e-3);
        assert!((sums.loss - 100.0).abs() < 1e-3 && (sums.abs_error - 2.0).abs() < 1e-5);
        let grads = loss.backward().unwrap();
        let gradient: Vec<f32> = grads.get(&outputs).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        assert!(gradient.iter().all(|g| g.is_finite()) && gradient[2] < -0.49);
    }

    #[test]
    fn rows_without_value_teach_nothing_even_if_nan() {
        for (head, data) in
            [(ValueHead::Scalar, vec![0.5f32, 0.1]), (ValueHead::Wdl, vec![0.1f32, 0.2, 0.3, 1.0, 0.0, 0.0])]
        {
            let width = data.len() / 2;
            let outputs = Var::from_vec(data, (2, width), &Device::Cpu).unwrap();
            let (loss, sums) = value_loss(&outputs, head, &view(&[1.0, f32::NAN], &[0.5, 0.0])).unwrap();
            assert_eq!(sums.rows, 1);
            assert!((f64::from(loss.to_scalar::<f32>().unwrap()) - sums.loss).abs() < 1e-6);
            let grads = loss.backward().unwrap();
            let gradient: Vec<f32> = grads.get(&outputs).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert!(gradient[..width].iter().any(|g| *g != 0.0));
            assert!(gradient[width..].iter().all(|g| *g == 0.0));
        }
    }
}
