//! AdamW (Loshchilov and Hutter, 2019) for one parameter, in main memory and on a device.

use std::cell::RefCell;

use candle_core::{CpuStorage, InplaceOp1, Layout, Tensor, Var};
use rayon::prelude::*;

use super::OptimizerConfig;

/// The numbers of one parameter's step.
#[derive(Clone, Copy)]
pub(super) struct Rates {
    pub(super) clip: f64,
    pub(super) keep: f64,
    pub(super) lr: f64,
    pub(super) correct_m: f64,
    pub(super) correct_v: f64,
    pub(super) config: OptimizerConfig,
}

impl Rates {
    pub(super) fn device_step(
        &self,
        var: &Var,
        grad: &Tensor,
        m: &mut Tensor,
        v: &mut Tensor,
    ) -> candle_core::Result<()> {
        let OptimizerConfig { beta1, beta2, eps, .. } = self.config;
        // A gradient may remember how it came to be; the moments would hold every step's graph for ever.
        let grad = grad.detach().affine(self.clip, 0.0)?;
        *m = (m.affine(beta1, 0.0)? + grad.affine(1.0 - beta1, 0.0)?)?;
        *v = (v.affine(beta2, 0.0)? + grad.sqr()?.affine(1.0 - beta2, 0.0)?)?;
        let root = v.affine(1.0 / self.correct_v, 0.0)?.sqrt()?.affine(1.0, eps)?;
        let step = m.affine(self.lr / self.correct_m, 0.0)?.div(&root)?;
        var.set(&var.detach().affine(self.keep, 0.0)?.sub(&step)?)
    }
}

/// The step in place: no temporaries.
pub(super) struct HostStep<'a> {
    pub(super) rates: Rates,
    pub(super) gradient: &'a [f32],
    pub(super) moments: RefCell<(&'a mut Vec<f32>, &'a mut Vec<f32>)>,
}

impl InplaceOp1 for HostStep<'_> {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn cpu_fwd(&self, weights: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        const PIECE: usize = 1 << 14;
        let grad = self.gradient;
        let (CpuStorage::F32(weights), Some((start, end))) = (weights, layout.contiguous_offsets()) else {
            candle_core::bail!("adamw: the weights are not contiguous f32");
        };
        let weights = &mut weights[start..end];
        let mut moments = self.moments.borrow_mut();
        let (m, v) = &mut *moments;
        if weights.len() != grad.len() || m.len() != grad.len() || v.len() != grad.len() {
            candle_core::bail!("adamw: {} weights, {} gradients, {} moments", weights.len(), grad.len(), m.len());
        }
        let Rates { clip, keep, lr, correct_m, correct_v, config } = self.rates;
        let (clip, keep, b1, b2) = (clip as f32, keep as f32, config.beta1 as f32, config.beta2 as f32);
        let (a1, a2) = ((1.0 - config.beta1) as f32, (1.0 - config.beta2) as f32);
        let (rate, scale_v, eps) = ((lr / correct_m) as f32, (1.0 / correct_v) as f32, config.eps as f32);
        let parts = weights.par_chunks_mut(PIECE).zip(grad.par_chunks(PIECE));
        parts.zip(m.par_chunks_mut(PIECE).zip(v.par_chunks_mut(PIECE))).for_each(|((w, g), (m, v))| {
            for (((w, g), m), v) in w.iter_mut().zip(g).zip(m).zip(v) {
                let g = g * clip;
                *m = *m * b1 + g * a1;
                *v = *v * b2 + g * g * a2;
                *w = *w * keep - rate * *m / ((*v * scale_v).sqrt() + eps);
            }
        });
        Ok(())
    }
}
