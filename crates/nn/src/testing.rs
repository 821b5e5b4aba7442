//! Batches and comparisons for the tests of this crate.

use candle_core::{Device, Tensor};
use games::{Chess, Connect4, Game, Packed, Rng, Shape, TicTacToe};

use crate::{Architecture, BatchView, NetConfig, Network, ValueHead};

pub(crate) const SHAPES: [Shape; 3] = [Chess::SHAPE, Connect4::SHAPE, TicTacToe::SHAPE];

/// Owned samples.
pub(crate) struct Samples {
    pub(crate) rows: usize,
    pub(crate) planes: Vec<f32>,
    pub(crate) legal_offsets: Vec<u32>,
    pub(crate) legal: Vec<u16>,
    pub(crate) target: Vec<f32>,
    pub(crate) value: Vec<f32>,
    pub(crate) value_weight: Vec<f32>,
}

impl Samples {
    /// Random inputs, legal moves and targets; every fifth row has no policy target, every seventh no value.
    pub(crate) fn random(shape: Shape, rows: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut out = Samples {
            rows,
            planes: vec![0.0; rows * shape.inputs()],
            legal_offsets: vec![0],
            legal: Vec::new(),
            target: Vec::new(),
            value: Vec::new(),
            value_weight: Vec::new(),
        };
        for (row, planes) in out.planes.chunks_exact_mut(shape.inputs()).enumerate() {
            Packed::random(shape, &mut rng).write_channels_last(shape, planes);
            let count = rng.between(1, 30.min(shape.actions()));
            let mut legal: Vec<u16> = (0..count).map(|_| rng.below(shape.actions()) as u16).collect();
            legal.sort_unstable();
            legal.dedup();
            let with_target = row % 5 != 4;
            let target = rng.dirichlet(0.5, legal.len());
            out.target.extend(target.iter().map(|t| if with_target { *t as f32 } else { 0.0 }));
            out.legal.extend(legal);
            out.legal_offsets.push(out.legal.len() as u32);
            out.value.push((rng.unit() * 2.0 - 1.0) as f32);
            out.value_weight.push(if row % 7 == 6 { 0.0 } else { 1.0 });
        }
        out
    }

    pub(crate) fn view(&self) -> BatchView<'_> {
        BatchView {
            rows: self.rows,
            planes: &self.planes,
            legal_offsets: &self.legal_offsets,
            legal: &self.legal,
            target: &self.target,
            value: &self.value,
            value_weight: &self.value_weight,
        }
    }
}

/// A small network with everything switched on, or off.
pub(crate) fn small(shape: Shape, full: bool) -> Architecture {
    let config = NetConfig {
        blocks: 2,
        channels: if full { 20 } else { 9 },
        se: full.then_some(4),
        policy_conv: full,
        value: if full { ValueHead::Wdl } else { ValueHead::Scalar },
        value_channels: 3,
        value_hidden: 10,
    };
    config.architecture(shape)
}

/// A network on the CPU whose last layers are not near zero and whose running statistics are not those of the start,
/// so that a test sees every part.
pub(crate) fn lively(arch: &Architecture, seed: u64) -> Network {
    let network = Network::new(arch, &Device::Cpu, seed).unwrap();
    let mut weights = network.weights().unwrap();
    let mut rng = Rng::new(seed);
    for (name, tensor) in &mut weights {
        let small = name.contains("out.weight") || name.contains("fc2.weight");
        for x in &mut tensor.data {
            match name.rsplit('.').next() {
                Some("running_var") => *x = 0.5 + rng.unit() as f32,
                Some("running_mean" | "bias") => *x += 0.1 * rng.normal() as f32,
                _ if name.contains("norm") => *x += 0.1 * rng.normal() as f32,
                _ if small => *x = 0.3 * rng.normal() as f32,
                _ => {}
            }
        }
    }
    Network::from_weights(arch, &Device::Cpu, &weights, "test").unwrap()
}

pub(crate) fn numbers(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

/// Asserts that two lists agree to `tolerance` of their largest number (or of 1).
pub(crate) fn assert_close(what: &str, a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len(), "{what}");
    let scale = b.iter().fold(1.0f32, |m, x| m.max(x.abs()));
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "{what}[{i}]: {a} and {b}");
    }
}
