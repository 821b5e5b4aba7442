//! A layer with weights and a bias: linear on a few rows (the ends of the network, squeeze-and-excitation), or a
//! convolution without a norm.

use std::collections::BTreeMap;

use candle_core::{Result, Var};

use super::{Gradients, read};
use crate::kernels::{Epilogue, Geometry, Isa, Packing, Rows, WeightGradient, column_sums, merge, with_scratch};

/// Weights of the present step.
pub(crate) struct Layer {
    name: String,
    inputs: usize,
    outputs: usize,
    /// One square, if it is linear.
    geometry: Geometry,
    weights: Option<Packing>,
    flipped: Option<Packing>,
    bias: Vec<f32>,
}

impl Layer {
    pub(crate) fn linear(name: &str, inputs: usize, outputs: usize) -> Self {
        Layer::with(name, Geometry::pointwise(1), inputs, outputs)
    }

    pub(crate) fn with(name: &str, geometry: Geometry, inputs: usize, outputs: usize) -> Self {
        Layer { name: name.to_owned(), inputs, outputs, geometry, weights: None, flipped: None, bias: Vec::new() }
    }

    /// Packs the weights that the step begins with.
    pub(crate) fn prepare(&mut self, isa: Isa, params: &BTreeMap<String, Var>) -> Result<()> {
        read(params, &format!("{}.weight", self.name), |w| {
            self.weights = Some(Packing::forward(isa, &self.geometry, self.inputs, self.outputs, w));
            self.flipped = Some(Packing::backward(isa, &self.geometry, self.inputs, self.outputs, w));
        })?;
        read(params, &format!("{}.bias", self.name), |b| b.clone_into(&mut self.bias))
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// `x w^T + b`, or the convolution of boards, with negative results cut off if `relu`.
    pub(crate) fn forward(&self, x: &[f32], relu: bool, out: &mut [f32]) {
        let Some(weights) = &self.weights else { return };
        let epilogue = Epilogue { bias: Some(&self.bias), residual: None, relu };
        let boards = x.len() / self.inputs / self.geometry.squares();
        weights.apply(&self.geometry, boards, Rows { data: x, stride: self.inputs }, epilogue, out);
    }

    /// The gradient of the input from that of the output.
    pub(crate) fn input_gradient(&self, dy: &[f32], out: &mut [f32]) {
        let Some(flipped) = &self.flipped else { return };
        let rows = Rows { data: dy, stride: self.outputs };
        let boards = dy.len() / self.outputs / self.geometry.squares();
        flipped.apply(&self.geometry, boards, rows, Epilogue::default(), out);
    }

    /// Sums for one part of a batch.
    pub(crate) fn gradient(&self, isa: Isa) -> LayerGradient {
        let weight = WeightGradient::new(isa, &self.geometry, self.inputs, self.outputs);
        LayerGradient { isa, weight, bias: vec![0.0; self.outputs] }
    }

    /// Adds rows to a part's sums.
    pub(crate) fn add_gradient(&self, sums: &mut LayerGradient, x: &[f32], dy: &[f32]) {
        let (rows, stride) = (dy.len() / self.outputs, WeightGradient::stride(sums.isa, self.outputs));
        column_sums(sums.isa, dy, &mut sums.bias);
        with_scratch(rows * stride, |padded| {
            for (to, from) in padded.chunks_exact_mut(stride).zip(dy.chunks_exact(self.outputs)) {
                to[..self.outputs].copy_from_slice(from);
            }
            sums.weight.add(&self.geometry, rows / self.geometry.squares(), x, padded);
        });
    }

    /// Writes the sum of all parts.
    pub(crate) fn merge(&self, isa: Isa, parts: Vec<LayerGradient>, gradients: &mut Gradients) {
        let (weights, biases): (Vec<_>, Vec<_>) = parts.into_iter().map(|p| (p.weight, p.bias)).unzip();
        if let Some(out) = gradients.get_mut(&format!("{}.weight", self.name)) {
            merge(isa, weights, self.geometry.taps(), self.inputs, self.outputs, out);
        }
        if let Some(out) = gradients.get_mut(&format!("{}.bias", self.name)) {
            merge_bias(&biases, out);
        }
    }
}

/// The gradient of a layer's weights over some rows.
pub(crate) struct LayerGradient {
    isa: Isa,
    weight: WeightGradient,
    bias: Vec<f32>,
}

/// The sum of the parts' sums, in order.
pub(super) fn merge_bias(parts: &[Vec<f32>], out: &mut [f32]) {
    for (c, out) in out.iter_mut().enumerate() {
        *out = parts.iter().map(|p| f64::from(p[c])).sum::<f64>() as f32;
    }
}
