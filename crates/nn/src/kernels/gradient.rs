//! The backward pass of a convolution: gradients of its input and of its weights, in one go over the boards.
//!
//! The work is cut into a fixed number of chunks that does not depend on the number of threads. Each chunk adds up its
//! own weight gradient, and the chunks are summed in order: the result is the same bits on any machine with the same
//! instruction set.

use std::ops::Range;

use rayon::prelude::*;

use super::conv::{Epilogue, Packing, Panel, Rows, panels};
use super::geometry::{Geometry, OFF};
use super::tile::{self, Isa, Outer};
use super::winograd::{self, WeightSums};
use super::{Aligned, boards_per_group};

/// Pieces that a batch is cut into.
const CHUNKS: usize = 16;

/// The backward pass of one convolution.
pub(crate) struct Backward<'a> {
    /// Instruction set.
    pub(crate) isa: Isa,
    /// 3x3 or pointwise.
    pub(crate) geometry: &'a Geometry,
    /// Input channels.
    pub(crate) inputs: usize,
    /// Output channels.
    pub(crate) outputs: usize,
    /// `[outputs][inputs][taps]`.
    pub(crate) weight: &'a [f32],
    /// `[boards, squares, inputs]`.
    pub(crate) x: &'a [f32],
    /// Whether anything needs the gradient of the input.
    pub(crate) want_input: bool,
}

/// What a backward pass gives.
pub(crate) struct BackwardResult {
    /// Like `x`; only if it was wanted.
    pub(crate) input: Option<Vec<f32>>,
    /// Like `weight`.
    pub(crate) weight: Vec<f32>,
}

/// One chunk's place: its boards, and its part of the input gradient.
struct Chunk<'a> {
    boards: Range<usize>,
    input: Option<&'a mut [f32]>,
}

impl Backward<'_> {
    /// Runs it. `fill(boards, stride, dz)` writes the gradient of the convolution's output for a range of boards:
    /// `dz` has one row of `stride` numbers a square, the first `outputs` of which are to be set.
    pub(crate) fn run(&self, fill: impl Fn(Range<usize>, usize, &mut [f32]) + Sync) -> BackwardResult {
        let squares = self.geometry.squares();
        let boards = self.x.len() / (squares * self.inputs);
        let flipped = self
            .want_input
            .then(|| Packing::backward(self.isa, self.geometry, self.inputs, self.outputs, self.weight));
        let plan = WeightPlan::new(self.isa, self.geometry, self.inputs, self.outputs);
        let mut input = flipped.is_some().then(|| vec![0.0; self.x.len()]);
        let group = boards_per_group(squares);
        let groups = boards.div_ceil(group);
        let mut chunks = Vec::with_capacity(CHUNKS);
        let mut rest = input.as_deref_mut();
        for i in 0..CHUNKS {
            let boards = (groups * i / CHUNKS * group).min(boards)..(groups * (i + 1) / CHUNKS * group).min(boards);
            if !boards.is_empty() {
                let (mine, others) = match rest {
                    Some(rest) => {
                        let (mine, others) = rest.split_at_mut(boards.len() * squares * self.inputs);
                        (Some(mine), Some(others))
                    }
                    None => (None, None),
                };
                rest = others;
                chunks.push(Chunk { boards, input: mine });
            }
        }
        let sums: Vec<Aligned> =
            chunks.into_par_iter().map(|chunk| self.chunk(chunk, group, &plan, flipped.as_ref(), &fill)).collect();
        BackwardResult { input, weight: plan.weights(sums) }
    }

    fn chunk(
        &self,
        mut chunk: Chunk<'_>,
        group: usize,
        plan: &WeightPlan,
        flipped: Option<&Packing>,
        fill: &(impl Fn(Range<usize>, usize, &mut [f32]) + Sync),
    ) -> Aligned {
        let squares = self.geometry.squares();
        let board_x = squares * self.inputs;
        let mut sums = match winograd::pays(self.geometry, self.inputs, self.outputs) {
            true => Sums::ByTiles(WeightSums::new(self.isa, self.inputs, self.outputs)),
            false => Sums::Direct {
                sums: Aligned::zeros(plan.sums_len()),
                // One tile may read past the last row of its board: the copy has room for that.
                x: Aligned::zeros(group * board_x + plan.rows),
            },
        };
        let mut dz = Aligned::zeros(group * squares * plan.width);
        for start in chunk.boards.clone().step_by(group) {
            let boards = start..(start + group).min(chunk.boards.end);
            let dz = &mut dz[..boards.len() * squares * plan.width];
            fill(boards.clone(), plan.width, dz);
            let own_x = &self.x[boards.start * board_x..boards.end * board_x];
            let dz_rows = Rows { data: dz, stride: plan.width };
            match &mut sums {
                Sums::ByTiles(sums) => {
                    sums.add(self.geometry, boards.len(), Rows { data: own_x, stride: self.inputs }, dz_rows);
                }
                Sums::Direct { sums, x } => {
                    x[..own_x.len()].copy_from_slice(own_x);
                    plan.add(boards.len(), x, dz, sums);
                }
            }
            if let (Some(flipped), Some(input)) = (flipped, &mut chunk.input) {
                let at = (boards.start - chunk.boards.start) * board_x;
                let out = &mut input[at..at + boards.len() * board_x];
                flipped.apply(self.geometry, boards.len(), dz_rows, Epilogue::default(), out);
            }
        }
        match sums {
            Sums::ByTiles(sums) => sums.taps(),
            Sums::Direct { sums, .. } => sums,
        }
    }
}

/// The gradient of the weights while it is added up.
enum Sums {
    ByTiles(WeightSums),
    Direct { sums: Aligned, x: Aligned },
}

/// How the weight gradient is added up: which pairs of squares meet at each tap, and the layout of the sums,
/// `[tap][input, padded][output, padded]`.
struct WeightPlan {
    inputs: usize,
    outputs: usize,
    taps: usize,
    /// Numbers in one board of the input.
    board_x: usize,
    /// Numbers in one board of the output gradient.
    board_dz: usize,
    /// Boards of one pass: about 64 squares, so that both operands stay in the first-level cache.
    pass: usize,
    /// For each tap, offsets of the input row and of the gradient row, for the boards of one pass.
    pairs: Vec<Vec<(u32, u32)>>,
    /// Input channels of a tile.
    rows: usize,
    /// Input channels, padded to whole tiles.
    depth: usize,
    lanes: usize,
    outer: [Outer; 2],
    panels: Vec<Panel>,
    /// Output channels, padded to whole panels.
    width: usize,
}

impl WeightPlan {
    fn new(isa: Isa, geometry: &Geometry, inputs: usize, outputs: usize) -> Self {
        let (rows, outer) = tile::outer_of(isa);
        let (panels, width) = panels(isa, outputs);
        let squares = geometry.squares();
        let pass = (64 / squares).max(1);
        let pairs = |tap| {
            let squares = (0..pass).flat_map(|board| (0..squares).map(move |square| (board * squares, square)));
            let on = squares.filter_map(|(start, square)| match geometry.source(square, tap) {
                OFF => None,
                source => Some((start + usize::from(source), start + square)),
            });
            on.map(|(source, square)| ((source * inputs) as u32, (square * width) as u32)).collect()
        };
        WeightPlan {
            inputs,
            outputs,
            taps: geometry.taps(),
            board_x: squares * inputs,
            board_dz: squares * width,
            pass,
            pairs: (0..geometry.taps()).map(pairs).collect(),
            rows,
            depth: inputs.next_multiple_of(rows),
            lanes: isa.lanes(),
            outer,
            panels,
            width,
        }
    }

    fn sums_len(&self) -> usize {
        self.taps * self.depth * self.width
    }

    /// Adds the gradient of `boards` boards. `x` must be `rows` numbers longer than the boards need.
    fn add(&self, boards: usize, x: &[f32], dz: &[f32], sums: &mut [f32]) {
        for start in (0..boards).step_by(self.pass) {
            let count = self.pass.min(boards - start);
            let x = &x[start * self.board_x..][..count * self.board_x + self.rows];
            let dz = &dz[start * self.board_dz..][..count * self.board_dz];
            for (tap, pairs) in self.pairs.iter().enumerate() {
                let pairs = &pairs[..pairs.len() / self.pass * count];
                for input in (0..self.depth).step_by(self.rows) {
                    for panel in &self.panels {
                        let columns = panel.vectors * self.lanes;
                        let at = (tap * self.depth + input) * self.width + panel.first;
                        let sums = &mut sums[at..][..(self.rows - 1) * self.width + columns];
                        // SAFETY: the pairs were made for `pass` boards and are cut to `count`: an input row starts at
                        // most at `count * board_x - inputs`, and `input < inputs`, so that `rows` reads stay inside
                        // `x`; a gradient row starts at most at `count * board_dz - width` and
                        // `panel.first + columns <= width`; `sums` was cut to what a tile touches; an `Isa` other
                        // than `Portable` is only made by `Isa::available`, which asks the processor.
                        unsafe {
                            let outer = self.outer[panel.vectors - 1];
                            let (x, dz) = (x.as_ptr().add(input), dz.as_ptr().add(panel.first));
                            outer(pairs, x, dz, sums.as_mut_ptr(), self.width);
                        }
                    }
                }
            }
        }
    }

    /// The sum of all chunks, in their order, as `[output][input][tap]`.
    fn weights(&self, mut chunks: Vec<Aligned>) -> Vec<f32> {
        let mut out = vec![0.0; self.outputs * self.inputs * self.taps];
        let Some((first, others)) = chunks.split_first_mut() else { return out };
        first.par_chunks_mut(4096).enumerate().for_each(|(i, sums)| {
            for other in others.iter() {
                for (sum, x) in sums.iter_mut().zip(&other[i * 4096..]) {
                    *sum += x;
                }
            }
        });
        for (i, out) in out.chunks_exact_mut(self.taps).enumerate() {
            let (output, input) = (i / self.inputs, i % self.inputs);
            for (tap, w) in out.iter_mut().enumerate() {
                *w = first[(tap * self.depth + input) * self.width + output];
            }
        }
        out
    }
}
