//! The forward convolution (and the input gradient, which is a convolution with flipped, transposed weights).

use super::geometry::{Geometry, OFF};
use super::tile::{Isa, MAX_COLUMNS, MAX_ROWS, Tap, Tiles, with_tiles};
use super::{Aligned, at_least, winograd};

const MAX_TAPS: usize = 9;

/// Rows of numbers, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// The numbers.
    pub(crate) data: &'a [f32],
    /// From one row to the next; at least the depth that is read.
    pub(crate) stride: usize,
}

/// What is done to a sum before it is stored: add the bias, add the residual, clip at zero.
#[derive(Clone, Copy, Default)]
pub(crate) struct Epilogue<'a> {
    /// One number an output channel.
    pub(crate) bias: Option<&'a [f32]>,
    /// Same layout as the output.
    pub(crate) residual: Option<&'a [f32]>,
    /// Whether negative results become 0.
    pub(crate) relu: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// First output channel.
    pub(super) first: usize,
    /// Width in vectors: 2, or 1 where that holds the rest.
    pub(super) vectors: usize,
}

/// The panels that cover `outputs` channels, and their width in all.
pub(super) fn panels(isa: Isa, outputs: usize) -> (Vec<Panel>, usize) {
    let (lanes, mut first, mut all) = (isa.lanes(), 0, Vec::new());
    while first < outputs {
        let vectors = if outputs - first > lanes { 2 } else { 1 };
        all.push(Panel { first, vectors });
        first += vectors * lanes;
    }
    (all, first)
}

/// Weights in the order in which the loops read them, padded with zeros: `[panel][tap][input][column]`, or, where the
/// convolution goes by tiles, `[panel][point][input][column]` (see `winograd`).
#[derive(Clone)]
pub(crate) struct Packing {
    isa: Isa,
    taps: usize,
    by_tiles: bool,
    depth: usize,
    outputs: usize,
    panels: Vec<Panel>,
    data: Aligned,
    zeros: Vec<f32>,
}

#[repr(align(64))]
struct Tile([f32; MAX_ROWS * MAX_COLUMNS]);

impl Packing {
    /// Packs `weight(tap, input, output)` for one geometry.
    fn new(
        isa: Isa,
        geometry: &Geometry,
        depth: usize,
        outputs: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let taps = geometry.taps();
        let (panels, width) = panels(isa, outputs);
        let mut data = Aligned::zeros(taps * depth * width);
        for panel in &panels {
            let columns = panel.vectors * isa.lanes();
            let valid = columns.min(outputs - panel.first);
            let start = panel.first * taps * depth;
            for (i, row) in data[start..][..taps * depth * columns].chunks_exact_mut(columns).enumerate() {
                for (column, w) in row[..valid].iter_mut().enumerate() {
                    *w = weight(i / depth, i % depth, panel.first + column);
                }
            }
        }
        let by_tiles = winograd::pays(geometry, depth, outputs);
        if by_tiles {
            data = winograd::transform_weights(isa, depth, &panels, &data);
        }
        Packing { isa, taps, by_tiles, depth, outputs, panels, data, zeros: vec![0.0; depth] }
    }

    /// Packs weights in the order `[output][input][tap]` (OIHW, the order of the checkpoint).
    pub(crate) fn forward(isa: Isa, geometry: &Geometry, depth: usize, outputs: usize, w: &[f32]) -> Self {
        let taps = geometry.taps();
        assert_eq!(w.len(), taps * depth * outputs);
        Packing::new(isa, geometry, depth, outputs, |t, k, o| w[(o * depth + k) * taps + t])
    }

    /// Packs the same weights for the gradient of the input: from `outputs` channels back to `depth`.
    pub(crate) fn backward(isa: Isa, geometry: &Geometry, depth: usize, outputs: usize, w: &[f32]) -> Self {
        let taps = geometry.taps();
        assert_eq!(w.len(), taps * depth * outputs);
        Packing::new(isa, geometry, outputs, depth, |t, k, o| w[(k * depth + o) * taps + taps - 1 - t])
    }

    /// Channels of the result.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Convolves `boards` boards: `out` is `[boards, squares, outputs]`.
    ///
    /// # Panics
    /// If a slice is too short or the geometry is not the one that the weights were packed for.
    pub(crate) fn apply(
        &self,
        geometry: &Geometry,
        boards: usize,
        x: Rows<'_>,
        epilogue: Epilogue<'_>,
        out: &mut [f32],
    ) {
        assert_eq!(geometry.taps(), self.taps);
        if self.by_tiles {
            let Packing { isa, depth, outputs, ref panels, ref data, ref zeros, .. } = *self;
            let convolution = winograd::Convolution { isa, depth, outputs, panels, weights: data, zeros };
            return convolution.apply(geometry, boards, x, epilogue, out);
        }
        with_tiles!(self.isa, |tiles| self.run(tiles, geometry, boards, x, epilogue, out));
    }

    fn run<const R: usize>(
        &self,
        tiles: &Tiles<R>,
        geometry: &Geometry,
        boards: usize,
        x: Rows<'_>,
        epilogue: Epilogue<'_>,
        out: &mut [f32],
    ) {
        let squares = geometry.squares();
        let total = boards * squares;
        let mut tile = Tile([0.0; MAX_ROWS * MAX_COLUMNS]);
        for panel in &self.panels {
            let columns = panel.vectors * tiles.lanes;
            let weights = &self.data[panel.first * self.taps * self.depth..][..self.taps * self.depth * columns];
            let (mut row, mut board, mut square) = (0, 0, 0);
            while row < total {
                let count = R.min(total - row);
                // Where each row of the tile sits: first row of its board, square.
                let mut at = [(0, 0); R];
                for place in &mut at[..count] {
                    *place = (board * squares, square);
                    square += 1;
                    if square == squares {
                        (board, square) = (board + 1, 0);
                    }
                }
                let mut taps: [Tap<R>; MAX_TAPS] = [(0, [self.zeros.as_ptr(); R]); MAX_TAPS];
                let mut used = 0;
                for tap in 0..self.taps {
                    let mut pointers = [self.zeros.as_ptr(); R];
                    let mut any = false;
                    for (pointer, &(start, square)) in pointers.iter_mut().zip(&at[..count]) {
                        let source = geometry.source(square, tap);
                        if source != OFF {
                            any = true;
                            *pointer = x.data[(start + usize::from(source)) * x.stride..][..self.depth].as_ptr();
                        }
                    }
                    // A tap that is off the board for the whole tile adds exact zeros: it is left out.
                    if any {
                        taps[used] = (tap, pointers);
                        used += 1;
                    }
                }
                // SAFETY: every pointer comes from a slice of `depth` numbers; `weights` holds `depth * columns`
                // numbers for each of the `self.taps` taps; the tile has room for MAX_ROWS x MAX_COLUMNS; an `Isa`
                // other than `Portable` is only made by `Isa::available`, which asks the processor.
                unsafe {
                    let product = tiles.product[panel.vectors - 1];
                    product(&taps[..used], self.depth, weights.as_ptr(), tile.0.as_mut_ptr());
                }
                let valid = columns.min(self.outputs - panel.first);
                for r in 0..count {
                    let sums = &tile.0[r * columns..][..valid];
                    let range = (row + r) * self.outputs + panel.first..(row + r) * self.outputs + panel.first + valid;
                    store(sums, epilogue, panel.first, range.clone(), &mut out[range]);
                }
                row += count;
            }
        }
    }
}

#[inline(always)]
fn store(sums: &[f32], epilogue: Epilogue<'_>, first: usize, range: std::ops::Range<usize>, out: &mut [f32]) {
    match epilogue.bias {
        Some(bias) => {
            for ((y, s), b) in out.iter_mut().zip(sums).zip(&bias[first..]) {
                *y = s + b;
            }
        }
        None => out.copy_from_slice(sums),
    }
    if let Some(residual) = epilogue.residual {
        for (y, r) in out.iter_mut().zip(&residual[range]) {
            *y += r;
        }
    }
    if epilogue.relu {
        for y in out {
            *y = at_least(*y, 0.0);
        }
    }
}
