//! A network's weights, folded and packed for the CPU kernels.

use candle_core::Var;

use crate::NnError;
use crate::fold;
use crate::kernels::{Geometry, Isa, Packing};
use crate::network::Network;

/// A convolution or linear layer with bias.
pub(super) struct Layer {
    pub(super) weights: Packing,
    pub(super) bias: Vec<f32>,
}

/// A residual block.
pub(super) struct Block {
    pub(super) conv1: Layer,
    pub(super) conv2: Layer,
    pub(super) se: Option<(Layer, Layer)>,
}

/// All layers.
pub(super) struct PackedNet {
    pub(super) conv3x3: Geometry,
    pub(super) pointwise: Geometry,
    /// A linear layer: every row is a board of one square.
    pub(super) single: Geometry,
    pub(super) stem: Layer,
    pub(super) blocks: Vec<Block>,
    pub(super) policy_conv: Option<Layer>,
    pub(super) policy_out: Layer,
    pub(super) value_conv: Layer,
    pub(super) value_fc1: Layer,
    pub(super) value_fc2: Layer,
}

impl PackedNet {
    pub(super) fn new(network: &Network) -> Result<Self, NnError> {
        let arch = network.architecture();
        let shape = arch.shape();
        let conv3x3 = Geometry::conv3x3(shape.height, shape.width);
        let pointwise = Geometry::pointwise(shape.squares());
        let single = Geometry::pointwise(1);
        let block = |i: usize| -> Result<Block, NnError> {
            let name = |part: &str| format!("blocks.{i}.{part}");
            Ok(Block {
                conv1: conv_norm(network, &conv3x3, &name("conv1"), &name("norm1"))?,
                conv2: conv_norm(network, &conv3x3, &name("conv2"), &name("norm2"))?,
                se: match arch.se {
                    Some(_) => {
                        Some((plain(network, &single, &name("se.fc1"))?, plain(network, &single, &name("se.fc2"))?))
                    }
                    None => None,
                },
            })
        };
        Ok(PackedNet {
            stem: conv_norm(network, &conv3x3, "stem.conv", "stem.norm")?,
            blocks: (0..arch.blocks).map(block).collect::<Result<_, _>>()?,
            policy_conv: match arch.policy_conv {
                true => Some(conv_norm(network, &conv3x3, "policy.conv", "policy.norm")?),
                false => None,
            },
            policy_out: plain(network, &pointwise, "policy.out")?,
            value_conv: conv_norm(network, &pointwise, "value.conv", "value.norm")?,
            value_fc1: plain(network, &single, "value.fc1")?,
            value_fc2: plain(network, &single, "value.fc2")?,
            conv3x3,
            pointwise,
            single,
        })
    }
}

fn param<'a>(network: &'a Network, name: &str) -> Result<&'a Var, NnError> {
    let found = network.params().get(name).or_else(|| network.running().get(name));
    found.ok_or_else(|| NnError::Architecture(format!("the network has no tensor `{name}`")))
}

fn conv_norm(network: &Network, geometry: &Geometry, conv: &str, norm: &str) -> Result<Layer, NnError> {
    let w = param(network, &format!("{conv}.weight"))?;
    let part = |name: &str| param(network, &format!("{norm}.{name}"));
    let folded = fold::conv_norm(w, part("weight")?, part("bias")?, part("running_mean")?, part("running_var")?)?;
    layer(w, geometry, &folded.weight, folded.bias)
}

fn plain(network: &Network, geometry: &Geometry, name: &str) -> Result<Layer, NnError> {
    let w = param(network, &format!("{name}.weight"))?;
    let bias = param(network, &format!("{name}.bias"))?.to_vec1()?;
    layer(w, geometry, &w.flatten_all()?.to_vec1::<f32>()?, bias)
}

fn layer(w: &Var, geometry: &Geometry, data: &[f32], bias: Vec<f32>) -> Result<Layer, NnError> {
    let (outputs, inputs) = (w.dim(0)?, w.dim(1)?);
    Ok(Layer { weights: Packing::forward(Isa::best(), geometry, inputs, outputs, data), bias })
}
