//! Cross-entropy between the target and the softmax over the legal moves.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::BatchView;
use crate::network::Kernels;
use crate::ops::{slice, with_slices};

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

/// One row: adds to the sums and turns `logits` into the gradient of the row's loss.
fn row(logits: &mut [f32], target: &[f32], sums: &mut PolicySums) {
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

/// The sums of a batch, and the gradient of the summed loss for each legal move. `logits(row, out)` gives the logits
/// of a row's legal moves.
fn all_rows(offsets: &[u32], target: &[f32], logits: impl Fn(usize, &mut [f32]) + Sync) -> (PolicySums, Vec<f32>) {
    let rows: Vec<(PolicySums, Vec<f32>)> = (0..offsets.len() - 1)
        .into_par_iter()
        .with_min_len(32)
        .map(|i| {
            let span = offsets[i] as usize..offsets[i + 1] as usize;
            let mut buffer = vec![0.0; span.len()];
            logits(i, &mut buffer);
            let mut sums = PolicySums::default();
            row(&mut buffer, &target[span], &mut sums);
            (sums, buffer)
        })
        .collect();
    let mut sums = PolicySums::default();
    let mut gradient = Vec::with_capacity(target.len());
    for (one, part) in rows {
        sums.rows += one.rows;
        sums.loss += one.loss;
        sums.top1 += one.top1;
        sums.top5 += one.top5;
        sums.entropy += one.entropy;
        gradient.extend_from_slice(&part);
    }
    (sums, gradient)
}

fn pick(logits: &[f32], legal: &[u16], out: &mut [f32]) {
    for (out, index) in out.iter_mut().zip(legal) {
        *out = logits[usize::from(*index)];
    }
}

/// The sums of a batch from logits `[rows, actions]` in main memory.
pub(crate) fn policy_sums(logits: &[f32], view: &BatchView<'_>) -> PolicySums {
    let actions = logits.len() / view.rows;
    let get = |row: usize, out: &mut [f32]| pick(&logits[row * actions..][..actions], &view.legal[view.span(row)], out);
    all_rows(view.legal_offsets, view.target, get).0
}

/// The mean loss of the rows with a target as a scalar that carries gradients, and the sums behind it.
pub(crate) fn policy_loss(kernels: Kernels, logits: &Tensor, view: &BatchView<'_>) -> Result<(Tensor, PolicySums)> {
    match kernels {
        Kernels::Cpu => {
            let found = Arc::new(OnceLock::new());
            let loss = logits.contiguous()?.apply_op1(PolicyLoss {
                offsets: view.legal_offsets.to_vec(),
                legal: view.legal.to_vec(),
                target: view.target.to_vec(),
                found: found.clone(),
            })?;
            Ok((loss, found.get().map(|f: &(PolicySums, Vec<f32>)| f.0).unwrap_or_default()))
        }
        Kernels::Tensor => gathered_loss(logits, view),
    }
}

/// Gathers the legal moves' logits into `[rows, most legal moves]`; short rows are filled up with [`FILLER`].
fn gathered_loss(logits: &Tensor, view: &BatchView<'_>) -> Result<(Tensor, PolicySums)> {
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
    let (sums, _) = all_rows(view.legal_offsets, view.target, get);
    let log_p = candle_nn::ops::log_softmax(&(picked + grid(filler)?)?, 1)?;
    let loss = (log_p * grid(target)?)?.sum_all()?;
    Ok((loss.affine(-1.0 / sums.rows.max(1) as f64, 0.0)?, sums))
}

struct PolicyLoss {
    offsets: Vec<u32>,
    legal: Vec<u16>,
    target: Vec<f32>,
    /// Sums, and the gradient of the summed loss for each legal move.
    found: Arc<OnceLock<(PolicySums, Vec<f32>)>>,
}

impl CustomOp1 for PolicyLoss {
    fn name(&self) -> &'static str {
        "policy_loss"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let logits = slice(logits, layout)?;
        let actions = logits.len() / (self.offsets.len() - 1);
        let get = |row: usize, out: &mut [f32]| {
            let span = self.offsets[row] as usize..self.offsets[row + 1] as usize;
            pick(&logits[row * actions..][..actions], &self.legal[span], out);
        };
        let found = all_rows(&self.offsets, &self.target, get);
        let loss = found.0.loss / found.0.rows.max(1) as f64;
        // A second run of the same operation would find the same.
        let _ = self.found.set(found);
        Ok((CpuStorage::F32(vec![loss as f32]), Shape::from(())))
    }

    fn bwd(&self, logits: &Tensor, _loss: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let Some((sums, gradient)) = self.found.get() else {
            candle_core::bail!("policy_loss: backward before forward")
        };
        let scale = with_slices([dy], |[dy]| Ok(dy[0]))? / sums.rows.max(1) as f32;
        let actions = logits.dim(1)?;
        let mut out = vec![0.0f32; logits.elem_count()];
        for (row, out) in out.chunks_exact_mut(actions).enumerate() {
            let span = self.offsets[row] as usize..self.offsets[row + 1] as usize;
            for (index, g) in self.legal[span.clone()].iter().zip(&gradient[span]) {
                out[usize::from(*index)] += g * scale;
            }
        }
        Ok(Some(Tensor::from_vec(out, logits.shape(), logits.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    fn loss_and_gradient(kernels: Kernels, logits: &[f32], target: &[f32]) -> (f32, PolicySums, Vec<f32>) {
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
        let (loss, sums) = policy_loss(kernels, &var, &view).unwrap();
        let grads = loss.backward().unwrap();
        let gradient = grads.get(&var).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        (loss.to_scalar().unwrap(), sums, gradient)
    }

    #[test]
    fn t4_logits_of_a_hundred_give_finite_losses_and_gradients() {
        for kernels in [Kernels::Cpu, Kernels::Tensor] {
            let (loss, _, gradient) = loss_and_gradient(kernels, &[100.0, -100.0, 0.0], &[0.0, 1.0, 0.0]);
            assert!((loss - 200.0).abs() < 1e-3, "{loss}");
            assert!((gradient[0] - 1.0).abs() < 1e-6 && (gradient[1] + 1.0).abs() < 1e-6);
            let (loss, sums, _) = loss_and_gradient(kernels, &[100.0, -100.0, 0.0], &[1.0, 0.0, 0.0]);
            assert!(loss.abs() < 1e-6 && sums.entropy.abs() < 1e-6 && sums.top1 == 1);
            let (loss, _, _) = loss_and_gradient(kernels, &[20.0, 0.0], &[1.0, 0.0]);
            assert!(loss.is_finite());
        }
    }

    #[test]
    fn m5_zero_target_on_an_impossible_move_and_rows_without_target_are_zero_not_nan() {
        let (loss, _, gradient) = loss_and_gradient(Kernels::Cpu, &[0.0, f32::NEG_INFINITY, 0.0], &[0.5, 0.0, 0.5]);
        assert!((loss - 2.0f32.ln()).abs() < 1e-6 && gradient.iter().all(|g| g.is_finite()));
        for kernels in [Kernels::Cpu, Kernels::Tensor] {
            let (loss, sums, gradient) = loss_and_gradient(kernels, &[3.0, 1.0], &[0.0, 0.0]);
            assert_eq!((loss, sums.rows), (0.0, 0));
            assert!(gradient.iter().all(|g| *g == 0.0));
            // A row of nothing but -inf is not hidden: the trainer refuses the loss.
            let (loss, ..) = loss_and_gradient(kernels, &[f32::NEG_INFINITY; 2], &[0.5, 0.5]);
            assert!(!loss.is_finite());
            let (loss, ..) = loss_and_gradient(kernels, &[f32::NAN, 0.0], &[0.0, 1.0]);
            assert!(!loss.is_finite());
        }
    }

    #[test]
    fn both_kernels_agree_and_match_finite_differences() {
        let logits = [0.3, -1.2, 2.0, 0.7, 0.0];
        let target = [0.1, 0.2, 0.0, 0.6, 0.1];
        let (loss, sums, gradient) = loss_and_gradient(Kernels::Cpu, &logits, &target);
        let (other, other_sums, other_gradient) = loss_and_gradient(Kernels::Tensor, &logits, &target);
        assert!((loss - other).abs() < 1e-6);
        assert_eq!(sums, other_sums);
        assert_eq!((sums.top1, sums.top5), (0, 1));
        for (i, (found, other)) in gradient.iter().zip(&other_gradient).enumerate() {
            assert!((found - other).abs() < 1e-6);
            let shifted = |h: f32| {
                let mut moved = logits;
                moved[i] += h;
                loss_and_gradient(Kernels::Cpu, &moved, &target).1.loss
            };
            let numeric = (shifted(1e-2) - shifted(-1e-2)) / 2e-2;
            assert!((numeric - f64::from(*found)).abs() < 1e-4, "{numeric} {found}");
        }
    }
}
