//! The forward pass of a unit.

use std::mem::take;
use std::ops::Range;

use rayon::prelude::*;

use super::{HostPass, boards, groups};
use crate::kernels::{Channelwise, Epilogue, GroupStats, Rows, affine};
use crate::loss::BatchView;
use crate::network::EPS;

/// One group's part of what is written.
struct Job<'a> {
    boards: Range<usize>,
    z: &'a mut [f32],
    /// The output of the unit before, and what its squeeze keeps; empty if they are there already.
    y: &'a mut [f32],
    kept: &'a mut [f32],
}

impl HostPass {
    /// Convolves and takes the statistics of unit `u`; first finishes the unit `before` if there is one.
    pub(super) fn forward(&mut self, u: usize, before: Option<usize>, view: &BatchView<'_>) {
        let (isa, squares, group) = (self.isa, self.squares(), self.group());
        let (inputs, outputs) = (self.units[u].inputs, self.units[u].outputs);
        let mut z = take(&mut self.units[u].state.z);
        let mut y = before.map_or(Vec::new(), |p| take(&mut self.units[p].state.y));
        let mut kept = self.take_kept(before);
        let kept_board = before.and_then(|p| self.units[p].squeeze.as_ref()).map_or(0, |s| s.board());
        let mut jobs = Vec::new();
        let (mut zs, mut ys, mut kepts) = (z.as_mut_slice(), y.as_mut_slice(), kept.as_mut_slice());
        for boards in groups(0..view.rows, group) {
            jobs.push(Job {
                z: cut(&mut zs, boards.len() * squares * outputs),
                y: cut(&mut ys, if before.is_some() { boards.len() * squares * inputs } else { 0 }),
                kept: cut(&mut kepts, boards.len() * kept_board),
                boards,
            });
        }
        let this = &*self;
        let unit = &this.units[u];
        let stats: Vec<GroupStats> = jobs
            .into_par_iter()
            .map(|job| {
                let x = match (before, unit.source) {
                    (Some(p), _) => {
                        this.finish(p, &job.boards, job.y, job.kept);
                        &*job.y
                    }
                    (None, Some(p)) => boards(&this.units[p].state.y, &job.boards, squares * inputs),
                    (None, None) => boards(view.planes, &job.boards, squares * inputs),
                };
                if let Some(weights) = &unit.state.weights {
                    let rows = Rows { data: x, stride: inputs };
                    weights.apply(this.geometry(u), job.boards.len(), rows, Epilogue::default(), job.z);
                }
                GroupStats::of(isa, job.z, outputs)
            })
            .collect();
        if let Some(p) = before {
            self.units[p].state.y = y;
            self.give_kept(p, kept);
        }
        let state = &mut self.units[u].state;
        state.stats = GroupStats::merge(&stats, &state.gamma, &state.beta, EPS);
        state.z = z;
    }

    /// The output of unit `p` for some boards, from what its convolution gave.
    pub(super) fn finish(&self, p: usize, range: &Range<usize>, y: &mut [f32], kept: &mut [f32]) {
        let unit = &self.units[p];
        let board = self.squares() * unit.outputs;
        let z = boards(&unit.state.z, range, board);
        let by = Channelwise { scale: &unit.state.stats.scale, shift: &unit.state.stats.shift };
        let residual = unit.residual.map(|r| boards(&self.units[r].state.y, range, board));
        match (&unit.squeeze, residual) {
            (Some(squeeze), Some(residual)) => {
                affine(self.isa, z, by, None, false, y);
                squeeze.forward(self.isa, y, residual, kept);
            }
            _ => affine(self.isa, z, by, residual, true, y),
        }
    }

    fn take_kept(&mut self, p: Option<usize>) -> Vec<f32> {
        p.and_then(|p| self.units[p].squeeze.as_mut()).map_or(Vec::new(), |s| take(&mut s.boards))
    }

    fn give_kept(&mut self, p: usize, kept: Vec<f32>) {
        if let Some(squeeze) = &mut self.units[p].squeeze {
            squeeze.boards = kept;
        }
    }
}

/// Takes the first `len` numbers off a slice.
pub(crate) fn cut<'a>(slice: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
    let (first, rest) = take(slice).split_at_mut(len);
    *slice = rest;
    first
}
