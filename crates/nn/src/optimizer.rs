//! The optimizer: AdamW, or Muon for the 3x3 convolutions and AdamW for the rest, with named state that can be saved, and
//! gradient clipping.

mod adamw;
mod muon;

use std::cell::RefCell;
use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::NnError;
use crate::arch::{Role, TensorSpec};
use crate::slices::with_slices;
use crate::weights::{self, HostTensor, Weights};
use adamw::{HostStep, Rates};

/// How weights follow their gradients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// AdamW for everything.
    #[default]
    Adamw,
    /// Muon (Jordan et al., 2024) for the 3x3 convolutions, AdamW for everything else: the momentum of a convolution, as a
    /// matrix, is replaced by the nearest orthogonal one.
    Muon,
}

/// Settings of the optimizer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// AdamW or Muon.
    pub method: Method,
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
        OptimizerConfig { method: Method::Adamw, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, clip: 5.0 }
    }
}

/// What is remembered of one parameter's gradients.
enum Moments {
    /// AdamW's moments in main memory, for the CPU.
    Host { m: Vec<f32>, v: Vec<f32> },
    /// AdamW's moments on the device.
    Device { m: Tensor, v: Tensor },
    /// Muon's momentum, where the weights are.
    Muon { m: Tensor },
}

/// The saved moments of a parameter, by prefix.
fn saved(spec: &TensorSpec, method: Method) -> &'static [&'static str] {
    if method == Method::Muon && muon::suits(spec) { &["m"] } else { &["m", "v"] }
}

/// The optimizer: moments by parameter name, and the number of steps made.
pub(crate) struct Optimizer {
    pub(crate) config: OptimizerConfig,
    steps: u64,
    moments: BTreeMap<String, Moments>,
    decays: BTreeMap<String, bool>,
}

impl Optimizer {
    /// Fresh moments for the parameters among `tensors`.
    pub(crate) fn new(config: OptimizerConfig, tensors: Vec<TensorSpec>, device: &Device) -> Result<Self, NnError> {
        Optimizer::build(config, tensors, device, 0, |_, spec| HostTensor {
            shape: spec.shape.clone(),
            data: vec![0.0; spec.shape.iter().product()],
        })
    }

    fn build(
        config: OptimizerConfig,
        tensors: Vec<TensorSpec>,
        device: &Device,
        steps: u64,
        moment: impl Fn(&str, &TensorSpec) -> HostTensor,
    ) -> Result<Self, NnError> {
        let (mut moments, mut decays) = (BTreeMap::new(), BTreeMap::new());
        for spec in tensors.into_iter().filter(|t| t.role.is_parameter()) {
            let remembered = if saved(&spec, config.method).len() == 1 {
                Moments::Muon { m: moment("m", &spec).to(device)? }
            } else {
                let (m, v) = (moment("m", &spec), moment("v", &spec));
                if device.is_cpu() {
                    Moments::Host { m: m.data, v: v.data }
                } else {
                    Moments::Device { m: m.to(device)?, v: v.to(device)? }
                }
            };
            decays.insert(spec.name.clone(), matches!(spec.role, Role::Weight(_)));
            moments.insert(spec.name, remembered);
        }
        Ok(Optimizer { config, steps, moments, decays })
    }

    /// Steps made.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The moments as tensors `m.NAME` and, but for Muon, `v.NAME`.
    pub(crate) fn state(&self, params: &BTreeMap<String, Var>) -> Result<Weights, NnError> {
        let mut out = Weights::new();
        for (name, moments) in &self.moments {
            let shape = params.get(name).map(|p| p.dims().to_vec()).unwrap_or_default();
            let tensor = |data: &Vec<f32>| HostTensor { shape: shape.clone(), data: data.clone() };
            let (m, v) = match moments {
                Moments::Host { m, v } => (tensor(m), Some(tensor(v))),
                Moments::Device { m, v } => (HostTensor::of(m)?, Some(HostTensor::of(v)?)),
                Moments::Muon { m } => (HostTensor::of(m)?, None),
            };
            out.insert(format!("m.{name}"), m);
            if let Some(v) = v {
                out.insert(format!("v.{name}"), v);
            }
        }
        Ok(out)
    }

    /// An optimizer that goes on from saved moments, which must be exactly the tensors'.
    pub(crate) fn restore(
        config: OptimizerConfig,
        tensors: Vec<TensorSpec>,
        device: &Device,
        steps: u64,
        state: &Weights,
        file: &str,
    ) -> Result<Self, NnError> {
        let mut expected = Vec::new();
        for spec in tensors.iter().filter(|t| t.role.is_parameter()) {
            for moment in saved(spec, config.method) {
                let mut spec = spec.clone();
                spec.name = format!("{moment}.{}", spec.name);
                expected.push(spec);
            }
        }
        weights::check(state, &expected, file)?;
        Optimizer::build(config, tensors, device, steps, |moment, spec| {
            state[&format!("{moment}.{}", spec.name)].clone()
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
                (Moments::Muon { m }, Gradients::Host(all)) => {
                    if let Some(gradient) = all.get(name) {
                        let gradient = Tensor::from_slice(gradient, var.dims(), var.device())?;
                        muon::step(var, &gradient, m, &rates)?;
                    }
                }
                (Moments::Muon { m }, Gradients::Tensors(all)) => {
                    if let Some(gradient) = all.get(var) {
                        muon::step(var, gradient, m, &rates)?;
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

#[cfg(test)]
mod tests;
