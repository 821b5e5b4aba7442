//! Cross-entropy between the target and the softmax over the legal moves.

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use super::BatchView;

/// Added to the logit of a filler: its probability is exactly 0, and 0 times it is still 0.
const FILLER: f32 = -1e30;

/// Sums over the rows that have a policy target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PolicySums {
    /// Rows with a target.
    pub(crate) rows: usize,
    /// Cross-entropy in nats.
    pub(crate) loss: f64,
    /// Rows whose likeliest move is the target's (one of its best moves).
    pub(crate) top1: usize,
    /// Rows in which fewer than five legal moves are likelier than the target's best.
    pub(crate) top5: usize,
    /// Entropy of the prediction in nats.
    pub(crate) entropy: f64,
}

impl PolicySums {
    pub(crate) fn add(&mut self, other: &PolicySums) {
        self.rows += other.rows;
        self.loss += other.loss;
        self.top1 += other.top1;
        self.top5 += other.top5;
        self.entropy += other.entropy;
    }
}

/// One row: adds to the sums and turns `logits`, of the legal moves, into the gradient of the row's loss.
pub(crate) fn policy_row(logits: &mut [f32], target: &[f32], sums: &mut PolicySums) {
    let mass: f64 = target.iter().map(|t| f64::from(*t)).sum();
    if mass <= 0.0 {
        logits.fill(0.0);
        return;
    }
    // Not `f32::max`, which would pass over a NaN.
    let max = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a }));
    let total: f64 = logits.iter().map(|l| (f64::from(*l) - max).exp()).sum();
    let log_sum = max + total.ln();
    let best = target.iter().copied().fold(0.0, f32::max);
    let mut best_logit = f32::NEG_INFINITY;
    let mut hit = false;
    for (l, t) in logits.iter().zip(target) {
        let log_p = f64::from(*l) - log_sum;
        if *t > 0.0 {
            sums.loss -= f64::from(*t) * log_p;
        }
        let p = log_p.exp();
        if p > 0.0 {
            sums.entropy -= p * log_p;
        }
        if *t == best {
            best_logit = best_logit.max(*l);
            hit |= f64::from(*l) == max;
        }
    }
    sums.rows += 1;
    sums.top1 += usize::from(hit);
    sums.top5 += usize::from(logits.iter().filter(|l| **l > best_logit).count() < 5);
    for (l, t) in logits.iter_mut().zip(target) {
        *l = (mass * (f64::from(*l) - log_sum).exp() - f64::from(*t)) as f32;
    }
}

/// The sums of a batch. `logits(row, out)` gives the logits of a row's legal moves.
fn all_rows(view: &BatchView<'_>, logits: impl Fn(usize, &mut [f32]) + Sync) -> PolicySums {
    let rows: Vec<PolicySums> = (0..view.rows)
        .into_par_iter()
        .with_min_len(32)
        .map(|row| {
            let span = view.span(row);
            let mut buffer = vec![0.0; span.len()];
            logits(row, &mut buffer);
            let mut sums = PolicySums::default();
            policy_row(&mut buffer, &view.target[span], &mut sums);
            sums
        })
        .collect();
    let mut sums = PolicySums::default();
    rows.iter().for_each(|row| sums.add(row));
    sums
}

/// The sums of a batch from logits `[rows, actions]` in main memory.
pub(crate) fn policy_sums(logits: &[f32], view: &BatchView<'_>) -> PolicySums {
    let actions = logits.len() / view.rows;
    all_rows(view, |row, out| {
        for (out, index) in out.iter_mut().zip(&view.legal[view.span(row)]) {
            *out = logits[row * actions + usize::from(*index)];
        }
    })
}

/// The mean loss of the rows with a target as a scalar that carries gradients, and the sums behind it.
///
/// Gathers the legal moves' logits into `[rows, most legal moves]`; short rows are filled up with [`FILLER`].
pub(crate) fn policy_loss(logits: &Tensor, view: &BatchView<'_>) -> Result<(Tensor, PolicySums)> {
    let width = (0..view.rows).map(|r| view.span(r).len()).max().unwrap_or(0).max(1);
    let mut index = vec![0u32; view.rows * width];
    let mut filler = vec![FILLER; view.rows * width];
    let mut target = vec![0.0f32; view.rows * width];
    for row in 0..view.rows {
        for (i, at) in view.span(row).enumerate() {
            index[row * width + i] = u32::from(view.legal[at]);
            filler[row * width + i] = 0.0;
            target[row * width + i] = view.target[at];
        }
    }
    let device = logits.device();
    let grid = |data: Vec<f32>| Tensor::from_vec(data, (view.rows, width), device);
    let picked = logits.gather(&Tensor::from_vec(index, (view.rows, width), device)?, 1)?;
    let host: Vec<f32> = picked.flatten_all()?.to_vec1()?;
    let get = |row: usize, out: &mut [f32]| out.copy_from_slice(&host[row * width..][..out.len()]);
    let sums = all_rows(view, get);
    let log_p = candle_nn::ops::log_softmax(&(picked + grid(filler)?)?, 1)?;
    let loss = (log_p * grid(target)?)?.sum_all()?;
    Ok((loss.affine(-1.0 / sums.rows.max(1) as f64, 0.0)?, sums))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    /// By the row function, or by tensor operations.
    fn loss_and_gradient(tensors: bool, logits: &[f32], target: &[f32]) -> (f32, PolicySums, Vec<f32>) {
        if !tensors {
            let (mut gradient, mut sums) = (logits.to_vec(), PolicySums::default());
            policy_row(&mut gradient, target, &mut sums);
            return ((sums.loss / sums.rows.max(1) as f64) as f32, sums, gradient);
        }
        let legal: Vec<u16> = (0..logits.len() as u16).collect();
        let view = BatchView {
            rows: 1,
            planes: &[],
            legal_offsets: &[0, logits.len() as u32],
            legal: &legal,
            target,
            value: &[0.0],
            value_weight: &[0.0],
        };
        let var = Var::from_slice(logits, (1, logits.len()), &Device::Cpu).unwrap();
        let (loss, sums) = policy_loss(&var, &view).unwrap();
        let grads = loss.backward().unwrap();
        let gradient = grads.get(&var).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        (loss.to_scalar().unwrap(), sums, gradient)
    }

    #[test]
    fn t4_logits_of_a_hundred_give_finite_losses_and_gradients() {
        for tensors in [false, true] {
            let (loss, _, gradient) = loss_and_gradient(tensors, &[100.0, -100.0, 0.0], &[0.0, 1.0, 0.0]);
            assert!((loss - 200.0).abs() < 1e-3, "{loss}");
            assert!((gradient[0] - 1.0).abs() < 1e-6 && (gradient[1] + 1.0).abs() < 1e-6);
            let (loss, sums, _) = loss_and_gradient(tensors, &[100.0, -100.0, 0.0], &[1.0, 0.0, 0.0]);
            assert!(loss.abs() < 1e-6 && sums.entropy.abs() < 1e-6 && sums.top1 == 1);
            let (loss, _, _) = loss_and_gradient(tensors, &[20.0, 0.0], &[1.0, 0.0]);
            assert!(loss.is_finite());
        }
    }

    #[test]
    fn m5_zero_target_on_an_impossible_move_and_rows_without_target_are_zero_not_nan() {
        let (loss, _, gradient) = loss_and_gradient(false, &[0.0, f32::NEG_INFINITY, 0.0], &[0.5, 0.0, 0.5]);
        assert!((loss - 2.0f32.ln()).abs() < 1e-6 && gradient.iter().all(|g| g.is_finite()));
        for tensors in [false, true] {
            let (loss, sums, gradient) = loss_and_gradient(tensors, &[3.0, 1.0], &[0.0, 0.0]);
            assert_eq!((loss, sums.rows), (0.0, 0));
            assert!(gradient.iter().all(|g| *g == 0.0));
            // A row of nothing but -inf is not hidden: the trainer refuses the loss.
            let (loss, ..) = loss_and_gradient(tensors, &[f32::NEG_INFINITY; 2], &[0.5, 0.5]);
            assert!(!loss.is_finite());
            let (loss, ..) = loss_and_gradient(tensors, &[f32::NAN, 0.0], &[0.0, 1.0]);
            assert!(!loss.is_finite());
        }
    }

    #[test]
    fn both_kernels_agree_and_match_finite_differences() {
        let logits = [0.3, -1.2, 2.0, 0.7, 0.0];
        let target = [0.1, 0.2, 0.0, 0.6, 0.1];
        let (loss, sums, gradient) = loss_and_gradient(false, &logits, &target);
        let (other, other_sums, other_gradient) = loss_and_gradient(true, &logits, &target);
        assert!((loss - other).abs() < 1e-6);
        assert_eq!(sums, other_sums);
        assert_eq!((sums.top1, sums.top5), (0, 1));
        for (i, (found, other)) in gradient.iter().zip(&other_gradient).enumerate() {
            assert!((found - other).abs() < 1e-6);
            let shifted = |h: f32| {
                let mut moved = logits;
                moved[i] += h;
                loss_and_gradient(false, &moved, &target).1.loss
            };
            let numeric = (shifted(1e-2) - shifted(-1e-2)) / 2e-2;
            assert!((numeric - f64::from(*found)).abs() < 1e-4, "{numeric} {found}");
        }
    }
}
