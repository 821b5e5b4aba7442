//! The gradient of a convolution's weights, added up board by board.
//!
//! The caller cuts the work into a fixed number of parts that does not depend on the number of threads. Each part adds
//! up its own sums, and [`merge`] adds the parts in order: the result is the same bits on any machine with the same
//! instruction set.

use rayon::prelude::*;

use super::Aligned;
use super::conv::{Panel, Rows, panels};
use super::geometry::{Geometry, OFF};
use super::tile::{self, Isa, Outer};
use super::winograd::{self, WeightSums};

/// Sums over boards.
pub(crate) struct WeightGradient(Sums);

enum Sums {
    /// Pair of squares by pair of squares.
    Direct(DirectSums),
    /// By tiles.
    ByTiles(WeightSums),
}

impl WeightGradient {
    /// Zero.
    pub(crate) fn new(isa: Isa, geometry: &Geometry, inputs: usize, outputs: usize) -> Self {
        WeightGradient(match winograd::pays(geometry, inputs, outputs) {
            true => Sums::ByTiles(WeightSums::new(isa, inputs, outputs)),
            false => Sums::Direct(DirectSums::new(isa, geometry, inputs, outputs)),
        })
    }

    /// Numbers from one row of the gradient to the next that [`WeightGradient::add`] wants, for a convolution with this
    /// many outputs. What lies between `outputs` and this does not matter.
    pub(crate) fn stride(isa: Isa, outputs: usize) -> usize {
        panels(isa, outputs).1
    }

    /// Adds what some boards give: `x` is their input, `dz` the gradient of their output, in rows of
    /// [`WeightGradient::stride`].
    pub(crate) fn add(&mut self, geometry: &Geometry, boards: usize, x: &[f32], dz: &[f32]) {
        match &mut self.0 {
            Sums::Direct(sums) => sums.add(boards, x, dz),
            Sums::ByTiles(sums) => {
                let (inputs, width) = sums.shape();
                sums.add(geometry, boards, Rows { data: x, stride: inputs }, Rows { data: dz, stride: width });
            }
        }
    }

    fn taps(self) -> Aligned {
        match self.0 {
            Sums::Direct(sums) => sums.sums,
            Sums::ByTiles(sums) => sums.taps(),
        }
    }
}

/// The sum of all parts, in their order, as `[output][input][tap]`.
pub(crate) fn merge(isa: Isa, parts: Vec<WeightGradient>, taps: usize, inputs: usize, outputs: usize, out: &mut [f32]) {
    assert_eq!(out.len(), taps * inputs * outputs);
    let (rows, _) = tile::outer_of(isa);
    let (depth, width) = (inputs.next_multiple_of(rows), panels(isa, outputs).1);
    let parts: Vec<Aligned> = parts.into_par_iter().map(WeightGradient::taps).collect();
    assert!(parts.iter().all(|p| p.len() == taps * depth * width));
    // By output: the sums of one row of weights lie in columns that are a cache line apart, so that several outputs
    // are made from each line.
    const TOGETHER: usize = 16;
    out.par_chunks_mut(TOGETHER * inputs * taps).enumerate().for_each(|(i, out)| {
        let first = i * TOGETHER;
        for tap in 0..taps {
            for input in 0..inputs {
                let at = (tap * depth + input) * width + first;
                for (o, row) in out.chunks_exact_mut(inputs * taps).enumerate() {
                    row[input * taps + tap] = parts.iter().map(|p| p[at + o]).sum();
                }
            }
        }
    });
}

/// How the sums are made directly: which pairs of squares meet at each tap. The layout of the sums is
/// `[tap][input, padded][output, padded]`.
struct DirectSums {
    inputs: usize,
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
    sums: Aligned,
    /// The input of one pass. One tile may read past the last row of a board: the copy has room for that.
    x: Aligned,
}

impl DirectSums {
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
        let depth = inputs.next_multiple_of(rows);
        DirectSums {
            inputs,
            board_x: squares * inputs,
            board_dz: squares * width,
            pass,
            pairs: (0..geometry.taps()).map(pairs).collect(),
            rows,
            depth,
            lanes: isa.lanes(),
            outer,
            panels,
            width,
            sums: Aligned::zeros(geometry.taps() * depth * width),
            x: Aligned::zeros(pass * squares * inputs + rows),
        }
    }

    fn add(&mut self, boards: usize, x: &[f32], dz: &[f32]) {
        for start in (0..boards).step_by(self.pass) {
            let count = self.pass.min(boards - start);
            let own = &x[start * self.board_x..][..count * self.board_x];
            self.x[..own.len()].copy_from_slice(own);
            let x = &self.x[..count * self.board_x + self.rows];
            let dz = &dz[start * self.board_dz..][..count * self.board_dz];
            for (tap, pairs) in self.pairs.iter().enumerate() {
                let pairs = &pairs[..pairs.len() / self.pass * count];
                for input in (0..self.depth).step_by(self.rows) {
                    for panel in &self.panels {
                        let columns = panel.vectors * self.lanes;
                        let at = (tap * self.depth + input) * self.width + panel.first;
                        let sums = &mut self.sums[at..][..(self.rows - 1) * self.width + columns];
                        debug_assert!(input < self.inputs);
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
}
