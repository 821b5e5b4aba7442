//! One forward pass, with either set of kernels.

use std::collections::BTreeMap;

use candle_core::{Result, Tensor, Var};
use candle_nn::{Linear, Module};
use rayon::prelude::*;

use super::{EPS, Kernels, Mode, Network};
use crate::arch::ValueHead;
use crate::fold;
use crate::kernels::{Epilogue, Geometry, Isa, Packing, Rows, boards_per_group};
use crate::ops::{self, ConvNormSpec};
use crate::tensor_ops;

/// The two kinds of convolution.
#[derive(Clone, Copy)]
enum Kind {
    Conv3x3,
    Pointwise,
}

/// One forward pass.
pub(super) struct Pass<'a> {
    pub(super) network: &'a Network,
    pub(super) mode: Mode,
    /// Norm, mean, biased variance; in training only.
    pub(super) stats: Vec<(String, Tensor, Tensor)>,
}

impl Pass<'_> {
    /// Policy and value, as [`Network::forward`] gives them.
    pub(super) fn run(&mut self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let network = self.network;
        let arch = &network.arch;
        let shape = arch.shape();
        let (boards, squares, planes) = x.dims3()?;
        if squares != shape.squares() || planes != shape.planes() {
            candle_core::bail!("input is {:?}, expected [N, {}, {}]", x.dims(), shape.squares(), shape.planes());
        }
        let mut x = self.conv_norm(Kind::Conv3x3, "stem.conv", "stem.norm", x, None, true)?;
        for i in 0..arch.blocks {
            let name = |part: &str| format!("blocks.{i}.{part}");
            let inner = self.conv_norm(Kind::Conv3x3, &name("conv1"), &name("norm1"), &x, None, true)?;
            x = if arch.se.is_some() {
                let z = self.conv_norm(Kind::Conv3x3, &name("conv2"), &name("norm2"), &inner, None, false)?;
                self.squeeze(&name("se"), &z, &x)?
            } else {
                self.conv_norm(Kind::Conv3x3, &name("conv2"), &name("norm2"), &inner, Some(&x), true)?
            };
        }
        let policy = if arch.policy_conv {
            self.conv_norm(Kind::Conv3x3, "policy.conv", "policy.norm", &x, None, true)?
        } else {
            x.clone()
        };
        let policy = self.policy_out(&policy)?.reshape((boards, shape.actions()))?;
        let value = self.conv_norm(Kind::Pointwise, "value.conv", "value.norm", &x, None, true)?;
        let value = value.reshape((boards, squares * arch.value_channels))?;
        let value = self.linear("value.fc2", &self.linear("value.fc1", &value)?.relu()?)?;
        let value = match arch.value {
            ValueHead::Scalar => value.tanh()?,
            ValueHead::Wdl => value,
        };
        Ok((policy, value))
    }

    fn tensor(&self, map: &BTreeMap<String, Var>, name: &str) -> Result<Tensor> {
        match (map.get(name), self.mode) {
            (Some(var), Mode::Train) => Ok(var.as_tensor().clone()),
            (Some(var), Mode::Eval) => Ok(var.as_detached_tensor()),
            (None, _) => candle_core::bail!("the network has no tensor `{name}`"),
        }
    }

    fn param(&self, name: &str) -> Result<Tensor> {
        self.tensor(&self.network.params, name)
    }

    fn conv_norm(
        &mut self,
        kind: Kind,
        conv: &str,
        norm: &str,
        x: &Tensor,
        residual: Option<&Tensor>,
        relu: bool,
    ) -> Result<Tensor> {
        let network = self.network;
        let w = self.param(&format!("{conv}.weight"))?;
        let gamma = self.param(&format!("{norm}.weight"))?;
        let beta = self.param(&format!("{norm}.bias"))?;
        let (geometry, gather) = match kind {
            Kind::Conv3x3 => (&network.conv3x3, &network.gather3x3),
            Kind::Pointwise => (&network.pointwise, &network.gather1x1),
        };
        match (self.mode, network.kernels) {
            (Mode::Train, Kernels::Cpu) => {
                let (outputs, inputs) = (w.dim(0)?, w.dim(1)?);
                let spec = ConvNormSpec { geometry: geometry.clone(), inputs, outputs, relu, eps: EPS };
                let (y, stats) = ops::conv_norm(spec, x, &w, &gamma, &beta, residual)?;
                let vector = |v: Vec<f32>| Tensor::from_vec(v, outputs, &network.device);
                self.stats.push((norm.to_owned(), vector(stats.mean)?, vector(stats.var)?));
                Ok(y)
            }
            (Mode::Train, Kernels::Tensor) => {
                let z = gather.conv(x, &w)?;
                let (y, mean, var) = tensor_ops::norm_train(&z, &gamma, &beta, EPS)?;
                self.stats.push((norm.to_owned(), mean, var));
                tensor_ops::finish(y, residual, relu)
            }
            (Mode::Eval, kernels) => {
                let mean = self.tensor(&network.running, &format!("{norm}.running_mean"))?;
                let var = self.tensor(&network.running, &format!("{norm}.running_var"))?;
                match kernels {
                    Kernels::Cpu => {
                        let folded = fold::conv_norm(&w, &gamma, &beta, &mean, &var)?;
                        eval_conv(geometry, x, &folded.weight, &folded.bias, residual, relu)
                    }
                    Kernels::Tensor => {
                        let z = gather.conv(x, &w)?;
                        let y = tensor_ops::norm_eval(&z, &gamma, &beta, &mean, &var, EPS)?;
                        tensor_ops::finish(y, residual, relu)
                    }
                }
            }
        }
    }

    /// The gate's `relu(z * sigmoid(fc2(relu(fc1(mean(z))))) + residual)`.
    fn squeeze(&self, name: &str, z: &Tensor, residual: &Tensor) -> Result<Tensor> {
        let cpu = self.network.kernels == Kernels::Cpu;
        let mean = if cpu { ops::mean_squares(z)? } else { z.mean(1)? };
        let hidden = self.linear(&format!("{name}.fc1"), &mean)?.relu()?;
        let gate = candle_nn::ops::sigmoid(&self.linear(&format!("{name}.fc2"), &hidden)?)?;
        if cpu {
            ops::gate(z, &gate, residual)
        } else {
            tensor_ops::finish(z.broadcast_mul(&gate.unsqueeze(1)?)?, Some(residual), true)
        }
    }

    fn linear(&self, name: &str, x: &Tensor) -> Result<Tensor> {
        let weight = self.param(&format!("{name}.weight"))?;
        Linear::new(weight, Some(self.param(&format!("{name}.bias"))?)).forward(x)
    }

    fn policy_out(&self, x: &Tensor) -> Result<Tensor> {
        let network = self.network;
        let (w, b) = (self.param("policy.out.weight")?, self.param("policy.out.bias")?);
        match network.kernels {
            Kernels::Cpu => ops::conv_bias(network.pointwise.clone(), x, &w, &b),
            Kernels::Tensor => network.gather1x1.conv(x, &w)?.broadcast_add(&b),
        }
    }
}

/// A folded convolution, all cores, no gradient.
fn eval_conv(
    geometry: &Geometry,
    x: &Tensor,
    w: &[f32],
    bias: &[f32],
    residual: Option<&Tensor>,
    relu: bool,
) -> Result<Tensor> {
    let (boards, squares, inputs) = x.dims3()?;
    let outputs = bias.len();
    let packed = Packing::forward(Isa::best(), geometry, inputs, outputs, w);
    let rows = boards_per_group(squares) * squares;
    let mut y = vec![0.0; boards * squares * outputs];
    let run = |residual: Option<&[f32]>, y: &mut [f32]| {
        ops::with_slices([x], |[x]| {
            y.par_chunks_mut(rows * outputs).enumerate().for_each(|(i, y)| {
                let boards = y.len() / (squares * outputs);
                let x = &x[i * rows * inputs..][..boards * squares * inputs];
                let residual = residual.map(|r| &r[i * rows * outputs..][..y.len()]);
                let epilogue = Epilogue { bias: Some(bias), residual, relu };
                packed.apply(geometry, boards, Rows { data: x, stride: inputs }, epilogue, y);
            });
            Ok(())
        })
    };
    match residual {
        Some(residual) => ops::with_slices([residual], |[r]| run(Some(r), &mut y))?,
        None => run(None, &mut y)?,
    }
    Tensor::from_vec(y, (boards, squares, outputs), x.device())
}
