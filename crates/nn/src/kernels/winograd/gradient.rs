//! The gradient of the weights by tiles.

use std::ops::Range;

use super::super::Aligned;
use super::super::conv::{Panel, Rows, panels};
use super::super::geometry::{Geometry, OFF};
use super::super::tile::{self, Isa, Outer};
use super::{GAP, Matrices, POINTS, padded, spread_inputs, transforms};
use crate::kernels::scratch::with_scratch;

/// Sums over boards, `[point][input, padded][output, padded]`.
pub(in crate::kernels) struct WeightSums {
    isa: Isa,
    inputs: usize,
    outputs: usize,
    /// Input channels of a register tile.
    rows: usize,
    depth: usize,
    panels: Vec<Panel>,
    width: usize,
    outer: [Outer; 2],
    sums: Aligned,
    zeros: Vec<f32>,
}

impl WeightSums {
    /// Zero.
    pub(in crate::kernels) fn new(isa: Isa, inputs: usize, outputs: usize) -> Self {
        let (rows, outer) = tile::outer_of(isa);
        let (panels, width) = panels(isa, outputs);
        let depth = inputs.next_multiple_of(rows);
        let sums = Aligned::zeros(POINTS * depth * width);
        WeightSums {
            isa,
            inputs,
            outputs,
            rows,
            depth,
            panels,
            width,
            outer,
            sums,
            zeros: vec![0.0; inputs.max(width)],
        }
    }

    /// Input channels, and the width of a row of the gradient.
    pub(in crate::kernels) fn shape(&self) -> (usize, usize) {
        (self.inputs, self.width)
    }

    /// Adds what some boards give: rows of `x`, and rows of the gradient of the output, boards counted alike.
    pub(in crate::kernels) fn add(&mut self, geometry: &Geometry, boards: usize, x: Rows<'_>, dz: Rows<'_>) {
        let count = boards * geometry.tiles().len();
        let stride = padded(self.inputs);
        // A register tile may read beyond the last row of the inputs.
        let (x_step, dz_step) = (count * stride + GAP + self.rows, count * self.width + GAP);
        let pairs: Vec<(u32, u32)> = (0..count).map(|t| ((t * stride) as u32, (t * self.width) as u32)).collect();
        with_scratch(POINTS * (x_step + dz_step), |scratch| {
            let (xs, dzs) = scratch.split_at_mut(POINTS * x_step);
            let mut xs = Matrices { data: xs, step: x_step };
            let mut dzs = Matrices { data: dzs, step: dz_step };
            spread_inputs(self.isa, geometry, 0..boards, x, self.inputs, &self.zeros, &mut xs);
            self.spread_gradients(geometry, 0..boards, dz, &mut dzs);
            for point in 0..POINTS {
                let x = &xs.data[point * x_step..][..x_step];
                let dz = &dzs.data[point * dz_step..][..dz_step];
                for input in (0..self.depth).step_by(self.rows) {
                    for panel in &self.panels {
                        let columns = panel.vectors * self.isa.lanes();
                        let at = (point * self.depth + input) * self.width + panel.first;
                        let sums = &mut self.sums[at..][..(self.rows - 1) * self.width + columns];
                        // SAFETY: a pair is a row of `x`, of which `input + rows` numbers may be read thanks to the
                        // room at its end, and a row of `dz`, which is `width` wide; `sums` was cut to what a tile
                        // touches; an `Isa` other than `Portable` is only made by `Isa::available`, which asks the
                        // processor.
                        unsafe {
                            let outer = self.outer[panel.vectors - 1];
                            let (x, dz) = (x.as_ptr().add(input), dz.as_ptr().add(panel.first));
                            outer(&pairs, x, dz, sums.as_mut_ptr(), self.width);
                        }
                    }
                }
            }
        });
    }

    fn spread_gradients(&self, geometry: &Geometry, boards: Range<usize>, dz: Rows<'_>, out: &mut Matrices<'_>) {
        let (squares, tiles) = (geometry.squares(), geometry.tiles());
        assert!(self.outputs <= dz.stride);
        assert!(dz.data.len() >= (boards.end * squares - 1) * dz.stride + self.outputs);
        assert!(out.data.len() >= (POINTS - 1) * out.step + boards.len() * tiles.len() * self.width);
        for board in boards {
            let base = board * squares * dz.stride;
            for (t, tile) in tiles.iter().enumerate() {
                let mut rows = [self.zeros.as_ptr(); 16];
                for (row, square) in rows.iter_mut().zip(tile.outputs).filter(|(_, square)| *square != OFF) {
                    *row = dz.data[base + usize::from(square) * dz.stride..].as_ptr();
                }
                // SAFETY: the slices were checked above: a square is on its board, and a tile's row is one of `out`;
                // for the instructions see `add`.
                unsafe {
                    let to = out.data.as_mut_ptr().add((board * tiles.len() + t) * self.width);
                    (transforms(self.isa).gradient)(&rows, self.outputs, to, out.step);
                }
            }
        }
    }

    /// The gradient so far as `[tap][input, padded][output, padded]`.
    pub(in crate::kernels) fn taps(&self) -> Aligned {
        let len = self.depth * self.width;
        let mut out = Aligned::zeros(9 * len);
        // SAFETY: the buffers hold 36 and 9 rows of `len`, and `width` is a multiple of the lanes; for the instructions
        // see `add`.
        unsafe { (transforms(self.isa).kernel_gradients)(self.sums.as_ptr(), out.as_mut_ptr(), len) };
        out
    }
}
