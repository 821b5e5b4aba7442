//! AdamW (Loshchilov and Hutter, 2019) with named state that can be saved, and gradient clipping.

use std::cell::RefCell;
use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Tensor, Var};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::NnError;
use crate::arch::{Architecture, Role};
use crate::slices::with_slices;
use crate::weights::{self, HostTensor, Weights};

/// Settings of the optimizer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled decay of weights; biases and norms do not decay.
    pub weight_decay: f64,
    /// Longest gradient (global norm); longer ones are scaled down. 0 for none.
    pub clip: f64,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        OptimizerConfig { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, clip: 5.0 }
    }
}

/// Both moments of one parameter: in main memory for the CPU, on the device elsewhere.
enum Moments {
    Host { m: Vec<f32>, v: Vec<f32> },
    Device { m: Tensor, v: Tensor },
}

/// The optimizer: moments by parameter name, and the number of steps made.
pub(crate) struct AdamW {
    pub(crate) config: OptimizerConfig,
    steps: u64,
    moments: BTreeMap<String, Moments>,
    decays: BTreeMap<String, bool>,
}

impl AdamW {
    pub(crate) fn new(config: OptimizerConfig, arch: &Architecture, device: &Device) -> Result<Self, NnError> {
        AdamW::build(config, arch, device, 0, |_, _, shape| HostTensor {
            shape: shape.to_vec(),
            data: vec![0.0; shape.iter().product()],
        })
    }

    fn build(
        config: OptimizerConfig,
        arch: &Architecture,
        device: &Device,
        steps: u64,
        mut moment: impl FnMut(bool, &str, &[usize]) -> HostTensor,
    ) -> Result<Self, NnError> {
        let (mut moments, mut decays) = (BTreeMap::new(), BTreeMap::new());
        for spec in arch.tensors().into_iter().filter(|t| t.role.is_parameter()) {
            let (m, v) = (moment(true, &spec.name, &spec.shape), moment(false, &spec.name, &spec.shape));
            let both = if device.is_cpu() {
                Moments::Host { m: m.data, v: v.data }
            } else {
                Moments::Device { m: m.to(device)?, v: v.to(device)? }
            };
            decays.insert(spec.name.clone(), matches!(spec.role, Role::Weight(_)));
            moments.insert(spec.name, both);
        }
        Ok(AdamW { config, steps, moments, decays })
    }

    /// Steps made.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The moments as tensors `m.NAME` and `v.NAME`.
    pub(crate) fn state(&self, params: &BTreeMap<String, Var>) -> Result<Weights, NnError> {
        let mut out = Weights::new();
        for (name, moments) in &self.moments {
            let shape = params.get(name).map(|p| p.dims().to_vec()).unwrap_or_default();
            let (m, v) = match moments {
                Moments::Host { m, v } => {
                    let tensor = |data: &Vec<f32>| HostTensor { shape: shape.clone(), data: data.clone() };
                    (tensor(m), tensor(v))
                }
                Moments::Device { m, v } => (HostTensor::of(m)?, HostTensor::of(v)?),
            };
            out.insert(format!("m.{name}"), m);
            out.insert(format!("v.{name}"), v);
        }
        Ok(out)
    }

    /// An optimizer that goes on from saved moments, which must be exactly the architecture's.
    pub(crate) fn restore(
        config: OptimizerConfig,
        arch: &Architecture,
        device: &Device,
        steps: u64,
        state: &Weights,
        file: &str,
    ) -> Result<Self, NnError> {
        let mut expected = Vec::new();
        for spec in arch.tensors().into_iter().filter(|t| t.role.is_parameter()) {
            for moment in ["m", "v"] {
                let mut spec = spec.clone();
                spec.name = format!("{moment}.{}", spec.name);
                expected.push(spec);
            }
        }
        weights::check(state, &expected, file)?;
        AdamW::build(config, arch, device, steps, |m, name, _| {
            state[&format!("{}.{name}", if m { "m" } else { "v" })].clone()
        })
    }

    /// One step at the rate `lr`; `norm` is the norm of the gradients.
    pub(crate) fn step(
        &mut self,
        params: &BTreeMap<String, Var>,
        gradients: &Gradients<'_>,
        norm: f64,
        lr: f64,
    ) -> Result<(), NnError> {
        self.steps += 1;
        let config = self.config;
        let power = self.steps.min(i32::MAX as u64) as i32;
        let clip = if config.clip > 0.0 && norm > config.clip { config.clip / norm } else { 1.0 };
        for (name, var) in params {
            let Some(moments) = self.moments.get_mut(name) else { continue };
            let decay = if self.decays.get(name) == Some(&true) { lr * config.weight_decay } else { 0.0 };
            let rates = Rates {
                clip,
                keep: 1.0 - decay,
                lr,
                correct_m: 1.0 - config.beta1.powi(power),
                correct_v: 1.0 - config.beta2.powi(power),
                config,
            };
            match (moments, gradients) {
                (Moments::Host { m, v }, Gradients::Host(all)) => {
                    if let Some(gradient) = all.get(name) {
                        var.inplace_op1(&HostStep { rates, gradient, moments: RefCell::new((m, v)) })?;
                    }
                }
                (Moments::Host { m, v }, Gradients::Tensors(all)) => {
                    if let Some(grad) = all.get(var) {
                        with_slices([grad], |[gradient]| {
                            var.inplace_op1(&HostStep { rates, gradient, moments: RefCell::new((m, v)) })
                        })?;
                    }
                }
                (Moments::Device { m, v }, Gradients::Tensors(all)) => {
                    if let Some(grad) = all.get(var) {
                        rates.device_step(var, grad, m, v)?;
                    }
                }
                (Moments::Device { .. }, Gradients::Host(_)) => {
                    return Err(candle_core::Error::msg("gradients in main memory for weights on a device").into());
                }
            }
        }
        Ok(())
    }
}

/// The gradients of a step.
pub(crate) enum Gradients<'a> {
    /// In main memory, by parameter name.
    Host(&'a BTreeMap<String, Vec<f32>>),
    /// Of a graph of tensors.
    Tensors(GradStore),
}

impl Gradients<'_> {
    /// The norm of all gradients together.
    pub(crate) fn norm(&self, params: &BTreeMap<String, Var>) -> Result<f64, NnError> {
        let squares = |g: &[f32]| g.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
        let mut sum = 0.0;
        match self {
            Gradients::Host(all) => sum += all.values().map(|g| squares(g)).sum::<f64>(),
            Gradients::Tensors(all) => {
                for grad in params.values().filter_map(|var| all.get(var)) {
                    sum += if grad.device().is_cpu() {
                        with_slices([grad], |[g]| Ok(squares(g)))?
                    } else {
                        f64::from(grad.sqr()?.sum_all()?.to_scalar::<f32>()?)
                    };
                }
            }
        }
        Ok(sum.sqrt())
    }
}

/// The numbers of one parameter's step.
#[derive(Clone, Copy)]
struct Rates {
    clip: f64,
    keep: f64,
    lr: f64,
    correct_m: f64,
    correct_v: f64,
    config: OptimizerConfig,
}

impl Rates {
    fn device_step(&self, var: &Var, grad: &Tensor, m: &mut Tensor, v: &mut Tensor) -> candle_core::Result<()> {
        let OptimizerConfig { beta1, beta2, eps, .. } = self.config;
        let grad = grad.affine(self.clip, 0.0)?;
        *m = (m.affine(beta1, 0.0)? + grad.affine(1.0 - beta1, 0.0)?)?;
        *v = (v.affine(beta2, 0.0)? + grad.sqr()?.affine(1.0 - beta2, 0.0)?)?;
        let root = v.affine(1.0 / self.correct_v, 0.0)?.sqrt()?.affine(1.0, eps)?;
        let step = m.affine(self.lr / self.correct_m, 0.0)?.div(&root)?;
        var.set(&var.detach().affine(self.keep, 0.0)?.sub(&step)?)
    }
}

/// The step in place: no temporaries.
struct HostStep<'a> {
    rates: Rates,
    gradient: &'a [f32],
    moments: RefCell<(&'a mut Vec<f32>, &'a mut Vec<f32>)>,
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

#[cfg(test)]
mod tests;
