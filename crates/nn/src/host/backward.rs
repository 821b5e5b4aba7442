//! The backward pass of a unit.

use std::mem::take;
use std::ops::Range;

use rayon::prelude::*;

use super::forward::cut;
use super::squeeze::SqueezeGradient;
use super::{HostPass, PART, boards, groups};
use crate::kernels::{
    Epilogue, NormBackward, NormSums, Rows, WeightGradient, masked_sums, merge, norm_gradient, with_scratch,
};
use crate::loss::BatchView;

/// One part of the batch, and its part of the two gradient buffers.
struct Job<'a> {
    boards: Range<usize>,
    kept: &'a mut [f32],
    passing: &'a mut [f32],
}

/// What a part of the batch gives: the gradient of the weights, and sums for the unit before.
struct Part {
    weight: WeightGradient,
    norm: NormSums,
    squeeze: Option<SqueezeGradient>,
}

/// Where the gradient of a unit's norm lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Kept,
    Passing,
    Policy,
    Value,
}

impl HostPass {
    /// The gradient of the output of a unit that feeds a residual connection is kept until the block's first
    /// convolution adds its own; what is behind a squeeze differs from it.
    fn place(&self, u: usize) -> Place {
        let inner = u > 0 && u <= self.trunk && self.units[u].residual.is_none();
        match u {
            _ if Some(u) == self.policy => Place::Policy,
            _ if u == self.value => Place::Value,
            _ if inner || self.units[u].squeeze.is_some() => Place::Passing,
            _ => Place::Kept,
        }
    }

    /// The gradients of unit `u` from the gradient of its norm's output; then the gradient of the norm of the unit
    /// that it reads, or, for the policy's unit, its share in the gradient of the trunk.
    pub(super) fn backward(&mut self, u: usize, view: &BatchView<'_>) {
        let (isa, squares, group) = (self.isa, self.squares(), self.group());
        let (mut kept, mut passing) = (take(&mut self.kept), take(&mut self.passing));
        let trunk_board = squares * self.units[0].outputs;
        let mut jobs = Vec::new();
        let (mut kepts, mut passings) = (kept.as_mut_slice(), passing.as_mut_slice());
        for boards in groups(0..view.rows, PART) {
            let len = boards.len() * trunk_board;
            jobs.push(Job { kept: cut(&mut kepts, len), passing: cut(&mut passings, len), boards });
        }
        let this = &*self;
        let unit = &this.units[u];
        let norm = NormBackward::new(&unit.state.stats, &unit.state.gamma, &unit.norm_sums, view.rows * squares);
        let parts: Vec<Part> = jobs
            .into_par_iter()
            .map(|mut job| {
                let mut part = Part {
                    weight: WeightGradient::new(isa, this.geometry(u), unit.inputs, unit.outputs),
                    norm: NormSums::zeros(unit.inputs),
                    squeeze: unit.source.and_then(|p| this.units[p].squeeze.as_ref()).map(|s| s.gradient(isa)),
                };
                for range in groups(job.boards.clone(), group) {
                    this.backward_group(u, &norm, range, &mut job, view, &mut part);
                }
                part
            })
            .collect();
        (self.kept, self.passing) = (kept, passing);
        self.collect(u, norm, parts);
    }

    fn backward_group(
        &self,
        u: usize,
        norm: &NormBackward,
        range: Range<usize>,
        job: &mut Job<'_>,
        view: &BatchView<'_>,
        part: &mut Part,
    ) {
        let (isa, unit, squares) = (self.isa, &self.units[u], self.squares());
        let (board_x, board_z) = (squares * unit.inputs, squares * unit.outputs);
        let own = |board| (range.start - job.boards.start) * board..(range.end - job.boards.start) * board;
        let stride = WeightGradient::stride(isa, unit.outputs);
        let (len_dz, len_x) = (range.len() * squares * stride, range.len() * board_x);
        with_scratch(len_dz + len_x, |scratch| {
            let (dz, d) = scratch.split_at_mut(len_dz);
            let normed = match self.place(u) {
                Place::Kept => &job.kept[own(board_z)],
                Place::Passing => &job.passing[own(board_z)],
                Place::Policy => boards(&self.policy_gradient, &range, board_z),
                Place::Value => boards(&self.value_gradient, &range, board_z),
            };
            let z = boards(&unit.state.z, &range, board_z);
            norm_gradient(isa, normed, z, [&norm.a, &norm.b, &norm.c], dz, stride);
            let x = match unit.source {
                Some(p) => boards(&self.units[p].state.y, &range, board_x),
                None => boards(view.planes, &range, board_x),
            };
            part.weight.add(self.geometry(u), range.len(), x, dz);
            let (Some(p), Some(flipped)) = (unit.source, &unit.state.flipped) else { return };
            // The first convolution of a block adds what its residual connection passes on, the value head what the
            // policy head gave.
            let first_of_block = u <= self.trunk && unit.residual.is_none();
            let residual = (first_of_block || u == self.value).then(|| &job.kept[own(board_x)]);
            let epilogue = Epilogue { residual, ..Epilogue::default() };
            flipped.apply(self.geometry(u), range.len(), Rows { data: dz, stride }, epilogue, d);
            let (kept, passing) = (&mut job.kept[own(board_x)], &mut job.passing[own(board_x)]);
            if Some(u) == self.policy {
                kept.copy_from_slice(d);
            } else {
                self.unfinish(p, &range, d, kept, passing, part);
            }
        });
    }

    /// Backwards through what lies between the convolution of unit `p` and its output, of which `d` is the gradient.
    fn unfinish(
        &self,
        p: usize,
        range: &Range<usize>,
        d: &mut [f32],
        kept: &mut [f32],
        passing: &mut [f32],
        part: &mut Part,
    ) {
        let unit = &self.units[p];
        let board = self.squares() * unit.outputs;
        let (y, z) = (boards(&unit.state.y, range, board), boards(&unit.state.z, range, board));
        let stats = &unit.state.stats;
        match (&unit.squeeze, &mut part.squeeze) {
            (Some(squeeze), Some(gradient)) => {
                let known = boards(&squeeze.boards, range, squeeze.board());
                squeeze.backward(self.isa, stats, known, (y, z), d, kept, passing, &mut part.norm, gradient);
            }
            _ => {
                let out = if self.place(p) == Place::Passing { passing } else { kept };
                masked_sums(self.isa, d, Some(y), z, &stats.mean, out, &mut part.norm);
            }
        }
    }

    /// Adds up the parts.
    fn collect(&mut self, u: usize, norm: NormBackward, parts: Vec<Part>) {
        let (isa, taps) = (self.isa, self.geometry(u).taps());
        let (mut weights, mut sums, mut squeezes) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            weights.push(part.weight);
            sums.push(part.norm);
            squeezes.extend(part.squeeze);
        }
        let unit = &self.units[u];
        if let Some(out) = self.gradients.get_mut(&format!("{}.weight", unit.conv)) {
            merge(isa, weights, taps, unit.inputs, unit.outputs, out);
        }
        self.gradients.insert(format!("{}.weight", unit.norm), norm.gamma);
        self.gradients.insert(format!("{}.bias", unit.norm), norm.beta);
        let Some(p) = unit.source.filter(|_| Some(u) != self.policy) else { return };
        if let Some(squeeze) = &self.units[p].squeeze {
            squeeze.merge(isa, squeezes, &mut self.gradients);
        }
        self.units[p].norm_sums = sums;
    }
}
