//! One forward pass of tensor operations.

use std::collections::BTreeMap;

use candle_core::{Result, Tensor, Var};
use candle_nn::{Linear, Module};

use super::{EPS, Mode, Network};
use crate::arch::ValueHead;
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
        let gather = match kind {
            Kind::Conv3x3 => &network.gather3x3,
            Kind::Pointwise => &network.gather1x1,
        };
        let z = gather.conv(x, &w)?;
        let y = match self.mode {
            Mode::Train => {
                let (y, mean, var) = tensor_ops::norm_train(&z, &gamma, &beta, EPS)?;
                self.stats.push((norm.to_owned(), mean, var));
                y
            }
            Mode::Eval => {
                let mean = self.tensor(&network.running, &format!("{norm}.running_mean"))?;
                let var = self.tensor(&network.running, &format!("{norm}.running_var"))?;
                tensor_ops::norm_eval(&z, &gamma, &beta, &mean, &var, EPS)?
            }
        };
        tensor_ops::finish(y, residual, relu)
    }

    /// The gate's `relu(z * sigmoid(fc2(relu(fc1(mean(z))))) + residual)`.
    fn squeeze(&self, name: &str, z: &Tensor, residual: &Tensor) -> Result<Tensor> {
        let hidden = self.linear(&format!("{name}.fc1"), &z.mean(1)?)?.relu()?;
        let gate = candle_nn::ops::sigmoid(&self.linear(&format!("{name}.fc2"), &hidden)?)?;
        tensor_ops::finish(z.broadcast_mul(&gate.unsqueeze(1)?)?, Some(residual), true)
    }

    fn linear(&self, name: &str, x: &Tensor) -> Result<Tensor> {
        let weight = self.param(&format!("{name}.weight"))?;
        Linear::new(weight, Some(self.param(&format!("{name}.bias"))?)).forward(x)
    }

    fn policy_out(&self, x: &Tensor) -> Result<Tensor> {
        let (w, b) = (self.param("policy.out.weight")?, self.param("policy.out.bias")?);
        self.network.gather1x1.conv(x, &w)?.broadcast_add(&b)
    }
}
