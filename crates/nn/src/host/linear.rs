//! A linear layer on a few rows: the ends of the network, and squeeze-and-excitation.

use std::collections::BTreeMap;

use candle_core::{Result, Var};

use super::{Gradients, read};
use crate::kernels::{Epilogue, Geometry, Isa, Packing, Rows, WeightGradient, column_sums, merge, with_scratch};

/// Weights of the present step.
pub(super) struct Linear {
    name: String,
    inputs: usize,
    outputs: usize,
    single: Geometry,
    weights: Option<Packing>,
    flipped: Option<Packing>,
    bias: Vec<f32>,
}

impl Linear {
    pub(super) fn new(name: &str, inputs: usize, outputs: usize) -> Self {
        let single = Geometry::pointwise(1);
        Linear { name: name.to_owned(), inputs, outputs, single, weights: None, flipped: None, bias: Vec::new() }
    }

    pub(super) fn prepare(&mut self, isa: Isa, params: &BTreeMap<String, Var>) -> Result<()> {
        read(params, &format!("{}.weight", self.name), |w| {
            self.weights = Some(Packing::forward(isa, &self.single, self.inputs, self.outputs, w));
            self.flipped = Some(Packing::backward(isa, &self.single, self.inputs, self.outputs, w));
        })?;
        read(params, &format!("{}.bias", self.name), |b| b.clone_into(&mut self.bias))
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// `x w^T + b`, with negative results cut off if `relu`.
    pub(super) fn forward(&self, x: &[f32], relu: bool, out: &mut [f32]) {
        let Some(weights) = &self.weights else { return };
        let epilogue = Epilogue { bias: Some(&self.bias), residual: None, relu };
        weights.apply(&self.single, x.len() / self.inputs, Rows { data: x, stride: self.inputs }, epilogue, out);
    }

    /// The gradient of the input from that of the output.
    pub(super) fn input_gradient(&self, dy: &[f32], out: &mut [f32]) {
        let Some(flipped) = &self.flipped else { return };
        let rows = Rows { data: dy, stride: self.outputs };
        flipped.apply(&self.single, dy.len() / self.outputs, rows, Epilogue::default(), out);
    }

    /// Sums for one part of a batch.
    pub(super) fn gradient(&self, isa: Isa) -> LinearGradient {
        let weight = WeightGradient::new(isa, &self.single, self.inputs, self.outputs);
        LinearGradient { isa, weight, bias: vec![0.0; self.outputs] }
    }

    /// Adds rows to a part's sums.
    pub(super) fn add_gradient(&self, sums: &mut LinearGradient, x: &[f32], dy: &[f32]) {
        let (rows, stride) = (dy.len() / self.outputs, WeightGradient::stride(sums.isa, self.outputs));
        column_sums(sums.isa, dy, &mut sums.bias);
        with_scratch(rows * stride, |padded| {
            for (to, from) in padded.chunks_exact_mut(stride).zip(dy.chunks_exact(self.outputs)) {
                to[..self.outputs].copy_from_slice(from);
            }
            sums.weight.add(&self.single, rows, x, padded);
        });
    }

    /// Writes the sum of all parts.
    pub(super) fn merge(&self, isa: Isa, parts: Vec<LinearGradient>, gradients: &mut Gradients) {
        let (weights, biases): (Vec<_>, Vec<_>) = parts.into_iter().map(|p| (p.weight, p.bias)).unzip();
        if let Some(out) = gradients.get_mut(&format!("{}.weight", self.name)) {
            merge(isa, weights, 1, self.inputs, self.outputs, out);
        }
        if let Some(out) = gradients.get_mut(&format!("{}.bias", self.name)) {
            merge_bias(&biases, out);
        }
    }
}

/// The gradient of a linear layer's weights over some rows.
pub(super) struct LinearGradient {
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
