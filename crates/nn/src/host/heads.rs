//! The ends of both heads and the losses, forwards and backwards.

use std::collections::BTreeMap;
use std::mem::take;
use std::ops::Range;

use candle_core::{Result, Var};
use rayon::prelude::*;

use super::forward::cut;
use super::layer::{Layer, LayerGradient, merge_bias};
use super::{HostPass, Losses, PART, groups, read};
use crate::arch::{Architecture, ValueHead};
use crate::kernels::{
    Epilogue, Geometry, Isa, NormSums, Packing, Rows, WeightGradient, column_sums, masked_sums, merge, with_scratch,
};
use crate::loss::{BatchView, PolicySums, ValueSums, policy_row, value_gradient, value_row};

/// Weights of the last layers, of the present step.
pub(super) struct Heads {
    channels: usize,
    planes: usize,
    out: Option<Packing>,
    out_flipped: Option<Packing>,
    out_bias: Vec<f32>,
    fc1: Layer,
    fc2: Layer,
}

impl Heads {
    pub(super) fn new(arch: &Architecture) -> Self {
        let flat = arch.value_channels * arch.shape().squares();
        Heads {
            channels: arch.channels,
            planes: arch.policy_planes,
            out: None,
            out_flipped: None,
            out_bias: Vec::new(),
            fc1: Layer::linear("value.fc1", flat, arch.value_hidden),
            fc2: Layer::linear("value.fc2", arch.value_hidden, arch.value_outputs()),
        }
    }

    pub(super) fn prepare(&mut self, isa: Isa, params: &BTreeMap<String, Var>, pointwise: &Geometry) -> Result<()> {
        read(params, "policy.out.weight", |w| {
            self.out = Some(Packing::forward(isa, pointwise, self.channels, self.planes, w));
            self.out_flipped = Some(Packing::backward(isa, pointwise, self.channels, self.planes, w));
        })?;
        read(params, "policy.out.bias", |b| b.clone_into(&mut self.out_bias))?;
        self.fc1.prepare(isa, params)?;
        self.fc2.prepare(isa, params)
    }
}

/// One part of the batch, and its part of what is written.
struct Job<'a> {
    boards: Range<usize>,
    /// Output and norm's gradient of the policy's unit, if there is one.
    policy_y: &'a mut [f32],
    policy_gradient: &'a mut [f32],
    value_y: &'a mut [f32],
    value_gradient: &'a mut [f32],
    /// Gradient of the trunk, if there is no unit of the policy between.
    kept: &'a mut [f32],
}

/// Sums over one part of the batch.
struct Part {
    policy: PolicySums,
    value: ValueSums,
    out: WeightGradient,
    out_bias: Vec<f32>,
    fc1: LayerGradient,
    fc2: LayerGradient,
    policy_norm: NormSums,
    value_norm: NormSums,
}

/// Factors of the gradients, which make means of the sums over rows with a target.
#[derive(Clone, Copy)]
struct Scales {
    policy: f32,
    value: f32,
}

impl HostPass {
    /// Finishes the units of the heads, takes the losses, and goes back to the gradients of those units' norms (or of
    /// the trunk, in `kept`, where the policy has no unit).
    pub(super) fn run_heads(&mut self, view: &BatchView<'_>, value_factor: f64) -> Losses {
        let targets = |row| view.target[view.span(row)].iter().any(|t| *t > 0.0);
        let policy_rows = (0..view.rows).filter(|row| targets(*row)).count();
        let value_rows = view.value_weight.iter().filter(|w| **w > 0.0).count();
        let scales =
            Scales { policy: 1.0 / policy_rows.max(1) as f32, value: (value_factor / value_rows.max(1) as f64) as f32 };
        let (squares, value, policy) = (self.squares(), self.value, self.policy);
        let (channels, value_channels) = (self.heads.channels, self.units[value].outputs);
        let mut policy_y = policy.map_or(Vec::new(), |p| take(&mut self.units[p].state.y));
        let mut value_y = take(&mut self.units[value].state.y);
        let (mut d_policy, mut d_value) = (take(&mut self.policy_gradient), take(&mut self.value_gradient));
        let mut kept = take(&mut self.kept);
        let mut jobs = Vec::new();
        let (mut policy_ys, mut value_ys) = (policy_y.as_mut_slice(), value_y.as_mut_slice());
        let (mut d_policies, mut d_values) = (d_policy.as_mut_slice(), d_value.as_mut_slice());
        let mut kepts = kept.as_mut_slice();
        for boards in groups(0..view.rows, PART) {
            let len = |channels: usize| boards.len() * squares * channels;
            let unit = if policy.is_some() { len(channels) } else { 0 };
            jobs.push(Job {
                policy_y: cut(&mut policy_ys, unit),
                policy_gradient: cut(&mut d_policies, unit),
                value_y: cut(&mut value_ys, len(value_channels)),
                value_gradient: cut(&mut d_values, len(value_channels)),
                kept: cut(&mut kepts, len(channels)),
                boards,
            });
        }
        let this = &*self;
        let parts: Vec<Part> = jobs.into_par_iter().map(|job| this.head_part(job, view, scales)).collect();
        if let Some(p) = policy {
            self.units[p].state.y = policy_y;
        }
        self.units[value].state.y = value_y;
        (self.policy_gradient, self.value_gradient, self.kept) = (d_policy, d_value, kept);
        self.collect_heads(parts)
    }

    fn head_part(&self, mut job: Job<'_>, view: &BatchView<'_>, scales: Scales) -> Part {
        let (isa, heads) = (self.isa, &self.heads);
        let mut part = Part {
            policy: PolicySums::default(),
            value: ValueSums::default(),
            out: WeightGradient::new(isa, &self.pointwise, heads.channels, heads.planes),
            out_bias: vec![0.0; WeightGradient::stride(isa, heads.planes)],
            fc1: heads.fc1.gradient(isa),
            fc2: heads.fc2.gradient(isa),
            policy_norm: NormSums::zeros(heads.channels),
            value_norm: NormSums::zeros(self.units[self.value].outputs),
        };
        for range in groups(job.boards.clone(), self.group()) {
            self.policy_group(&range, &mut job, view, scales.policy, &mut part);
            self.value_group(&range, &mut job, view, scales.value, &mut part);
        }
        part
    }

    fn policy_group(&self, range: &Range<usize>, job: &mut Job<'_>, view: &BatchView<'_>, scale: f32, part: &mut Part) {
        let (isa, heads, squares) = (self.isa, &self.heads, self.squares());
        let board = squares * heads.channels;
        let own = (range.start - job.boards.start) * board..(range.end - job.boards.start) * board;
        let x = match self.policy {
            Some(p) => {
                self.finish(p, range, &mut job.policy_y[own.clone()], &mut []);
                &job.policy_y[own.clone()]
            }
            None => super::boards(&self.units[self.trunk].state.y, range, board),
        };
        let (Some(out), Some(flipped)) = (&heads.out, &heads.out_flipped) else { return };
        let (rows, actions) = (range.len(), squares * heads.planes);
        let stride = WeightGradient::stride(isa, heads.planes);
        let lens = [rows * actions, rows * squares * stride, rows * board];
        with_scratch(lens.iter().sum(), |scratch| {
            let (logits, rest) = scratch.split_at_mut(lens[0]);
            let (dz, d) = rest.split_at_mut(lens[1]);
            let epilogue = Epilogue { bias: Some(&heads.out_bias), ..Epilogue::default() };
            out.apply(&self.pointwise, rows, Rows { data: x, stride: heads.channels }, epilogue, logits);
            dz.fill(0.0);
            let mut legal = Vec::new();
            for ((row, logits), dz) in
                range.clone().zip(logits.chunks_exact(actions)).zip(dz.chunks_exact_mut(squares * stride))
            {
                let span = view.span(row);
                let indices = view.legal[span.clone()].iter().map(|i| usize::from(*i));
                legal.clear();
                legal.extend(indices.clone().map(|i| logits[i]));
                policy_row(&mut legal, &view.target[span], &mut part.policy);
                for (i, g) in indices.zip(&legal) {
                    dz[i / heads.planes * stride + i % heads.planes] += g * scale;
                }
            }
            column_sums(isa, dz, &mut part.out_bias);
            part.out.add(&self.pointwise, rows, x, dz);
            let dz = Rows { data: dz, stride };
            match self.policy {
                Some(p) => {
                    flipped.apply(&self.pointwise, rows, dz, Epilogue::default(), d);
                    let state = &self.units[p].state;
                    let z = super::boards(&state.z, range, board);
                    let out = &mut job.policy_gradient[own];
                    masked_sums(isa, d, Some(x), z, &state.stats.mean, out, &mut part.policy_norm);
                }
                None => flipped.apply(&self.pointwise, rows, dz, Epilogue::default(), &mut job.kept[own]),
            }
        });
    }

    fn value_group(&self, range: &Range<usize>, job: &mut Job<'_>, view: &BatchView<'_>, scale: f32, part: &mut Part) {
        let (isa, heads, unit) = (self.isa, &self.heads, &self.units[self.value]);
        let board = self.squares() * unit.outputs;
        let own = (range.start - job.boards.start) * board..(range.end - job.boards.start) * board;
        let y = &mut job.value_y[own.clone()];
        self.finish(self.value, range, y, &mut []);
        let (rows, wide, outputs) = (range.len(), heads.fc1.outputs(), heads.fc2.outputs());
        let lens = [rows * wide, rows * wide, rows * outputs, rows * outputs, rows * board];
        with_scratch(lens.iter().sum(), |scratch| {
            let (hidden, rest) = scratch.split_at_mut(lens[0]);
            let (d_hidden, rest) = rest.split_at_mut(lens[1]);
            let (raw, rest) = rest.split_at_mut(lens[2]);
            let (d_raw, d) = rest.split_at_mut(lens[3]);
            heads.fc1.forward(y, true, hidden);
            heads.fc2.forward(hidden, false, raw);
            if self.head == ValueHead::Scalar {
                raw.iter_mut().for_each(|v| *v = v.tanh());
            }
            d_raw.fill(0.0);
            for ((row, out), d) in range.clone().zip(raw.chunks_exact(outputs)).zip(d_raw.chunks_exact_mut(outputs)) {
                let (target, weight) = (view.value[row], view.value_weight[row]);
                if weight > 0.0 {
                    value_row(self.head, out, target, weight, &mut part.value);
                    value_gradient(self.head, out, target, weight * scale, d);
                }
            }
            heads.fc2.add_gradient(&mut part.fc2, hidden, d_raw);
            heads.fc2.input_gradient(d_raw, d_hidden);
            for (d, h) in d_hidden.iter_mut().zip(&*hidden) {
                *d = if *h > 0.0 { *d } else { 0.0 };
            }
            heads.fc1.add_gradient(&mut part.fc1, y, d_hidden);
            heads.fc1.input_gradient(d_hidden, d);
            let z = super::boards(&unit.state.z, range, board);
            let out = &mut job.value_gradient[own];
            masked_sums(isa, d, Some(y), z, &unit.state.stats.mean, out, &mut part.value_norm);
        });
    }

    /// Adds up the parts, in order.
    fn collect_heads(&mut self, parts: Vec<Part>) -> Losses {
        let mut losses = Losses { policy: PolicySums::default(), value: ValueSums::default() };
        let (mut outs, mut biases, mut fc1, mut fc2) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut policy_norm, mut value_norm) = (Vec::new(), Vec::new());
        for part in parts {
            losses.policy.add(&part.policy);
            losses.value.add(&part.value);
            outs.push(part.out);
            biases.push(part.out_bias);
            fc1.push(part.fc1);
            fc2.push(part.fc2);
            policy_norm.push(part.policy_norm);
            value_norm.push(part.value_norm);
        }
        let (isa, heads) = (self.isa, &self.heads);
        if let Some(out) = self.gradients.get_mut("policy.out.weight") {
            merge(isa, outs, 1, heads.channels, heads.planes, out);
        }
        if let Some(out) = self.gradients.get_mut("policy.out.bias") {
            merge_bias(&biases, out);
        }
        heads.fc1.merge(isa, fc1, &mut self.gradients);
        heads.fc2.merge(isa, fc2, &mut self.gradients);
        if let Some(p) = self.policy {
            self.units[p].norm_sums = policy_norm;
        }
        self.units[self.value].norm_sums = value_norm;
        losses
    }
}
