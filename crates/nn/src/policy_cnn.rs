//! The policy network of the alpha-beta engine: two small convolutions, two linear layers, one logit for each pair of
//! squares.
//!
//! Input `[13, 8, 8]`, the planes of [`PolicyChess`]. Two 3x3 convolutions (padding 1) of 16 channels with ReLU, the
//! result flattened as `[channel][row][column]`, 1024 to 64 with ReLU, 64 to 4096 logits `from * 64 + to`. There is no
//! norm, so that the engine's own inference is a few loops, and it trains on the CPU whatever the device of a profile.

mod onnx;
mod pass;
mod trainer;

use std::collections::BTreeMap;

use candle_core::{Device, Var};
use games::{Game, PolicyChess};

use crate::NnError;
use crate::arch::{Role, TensorSpec};
use crate::weights::{self, HostTensor, Weights};
pub use trainer::{PolicyTrainer, PolicyValidator};

/// Channels of both convolutions.
const CHANNELS: usize = 16;
/// Numbers in the flattened output of the second convolution.
const FLAT: usize = CHANNELS * 64;
/// Width of the hidden linear layer.
const HIDDEN: usize = 64;

/// Every tensor, in the order of the network and of `policy.bin`.
pub(crate) fn tensors() -> Vec<TensorSpec> {
    let (planes, actions) = (PolicyChess::SHAPE.planes(), PolicyChess::SHAPE.actions());
    let he = |fan_in: usize| (2.0 / fan_in as f64).sqrt();
    let layers: [(&str, &[usize], f64); 4] = [
        ("conv1", &[CHANNELS, planes, 3, 3], he(planes * 9)),
        ("conv2", &[CHANNELS, CHANNELS, 3, 3], he(CHANNELS * 9)),
        ("fc1", &[HIDDEN, FLAT], he(FLAT)),
        // Small: the first predictions are near uniform.
        ("fc2", &[actions, HIDDEN], 0.1 / (HIDDEN as f64).sqrt()),
    ];
    let both = |(name, shape, deviation): (&str, &[usize], f64)| {
        let tensor = |part: &str, shape: &[usize], role| TensorSpec {
            name: format!("{name}.{part}"),
            shape: shape.to_vec(),
            role,
        };
        [tensor("weight", shape, Role::Weight(deviation)), tensor("bias", &shape[..1], Role::Bias)]
    };
    layers.into_iter().flat_map(both).collect()
}

/// A policy network in main memory.
pub struct PolicyCnn {
    params: BTreeMap<String, Var>,
}

impl PolicyCnn {
    /// What a checkpoint calls it; another one if a tensor's shape or meaning changes.
    pub const ID: &'static str = "policy_cnn-16-64";

    /// A network with fresh weights: normal (He), biases 0. Each tensor's numbers are a function of the seed and its
    /// name.
    ///
    /// # Errors
    /// [`NnError::Candle`] if memory cannot be had.
    pub fn new(seed: u64) -> Result<Self, NnError> {
        PolicyCnn::from_weights(&weights::fresh(tensors(), seed), "fresh weights")
    }

    /// A network with the given weights; `source` names them in errors.
    ///
    /// # Errors
    /// [`NnError::Tensors`] names each tensor that is missing, extra, reshaped or not finite.
    pub fn from_weights(weights: &Weights, source: &str) -> Result<Self, NnError> {
        let specs = tensors();
        weights::check(weights, &specs, source)?;
        let var = |spec: TensorSpec| {
            let tensor = &weights[&spec.name];
            Ok((spec.name, Var::from_slice(&tensor.data, tensor.shape.as_slice(), &Device::Cpu)?))
        };
        Ok(PolicyCnn { params: specs.into_iter().map(var).collect::<Result<_, NnError>>()? })
    }

    /// The trained variables by name: `conv1`, `conv2`, `fc1`, `fc2`, each with `.weight` and `.bias`.
    pub fn params(&self) -> &BTreeMap<String, Var> {
        &self.params
    }

    /// Trained numbers: 336,048.
    pub fn parameters() -> usize {
        tensors().iter().map(|t| t.shape.iter().product::<usize>()).sum()
    }

    /// All tensors, copied.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the copy fails.
    pub fn weights(&self) -> Result<Weights, NnError> {
        self.params.iter().map(|(name, var)| Ok((name.clone(), HostTensor::of(var)?))).collect()
    }

    /// The file `policy.bin`, which the engine reads: the tensors as little-endian f32 in the order of the network
    /// (for each layer weights, then biases), convolutions as `[output][input][row][column]`, linear layers as
    /// `[output][input]`; nothing before, between or after, 1,344,192 bytes.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the weights cannot be copied.
    ///
    /// # Stability
    /// This is a file format without a version: its size is the check.
    pub fn to_bin(&self) -> Result<Vec<u8>, NnError> {
        let weights = self.weights()?;
        Ok(tensors().iter().flat_map(|spec| &weights[&spec.name].data).flat_map(|x| x.to_le_bytes()).collect())
    }

    /// The file `policy.onnx`: the same network for any ONNX runtime (opset 13), from `planes` `[N, 13, 8, 8]` to
    /// `logits` `[N, 4096]`.
    ///
    /// # Errors
    /// [`NnError::Candle`] if the weights cannot be copied.
    pub fn to_onnx(&self) -> Result<Vec<u8>, NnError> {
        Ok(onnx::model(&self.weights()?))
    }
}
