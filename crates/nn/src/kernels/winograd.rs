//! Winograd's convolution F(4x4, 3x3): 36 multiplications for 16 outputs instead of 144 (Lavin and Gray, "Fast
//! algorithms for convolutional neural networks", 2015).
//!
//! ```text
//! y = A^T [ (G g G^T) * (B^T d B) ] A        one tile, one pair of channels; d is 6x6, g 3x3, y 4x4
//! ```
//!
//! Over all channels the product in the middle is 36 products of matrices, `[tiles, inputs] x [inputs, outputs]`. An
//! 8x8 board is exactly four tiles. The gradient of the weights is the transpose of the same steps:
//! `dg = G^T [ sum over tiles of (B^T d B) * (A dy A^T) ] G`.
//!
//! The sums of one output run over the input channels in one order, whatever tile or batch it is in: evaluations are
//! bit-equal in any batch. They differ from the direct convolution's by rounding, about 1e-6 of the output's size.

mod gradient;
mod transform;

use super::conv::{Epilogue, Panel, Rows};
use super::geometry::{Geometry, OFF};
use super::scratch::with_scratch;
use super::tile::{FEW, Isa, Tiles, with_tiles};
use super::{Aligned, boards_per_group};
pub(super) use gradient::WeightSums;
use transform::{Finish, NOWHERE, Transforms};

/// Numbers of a transformed tile.
pub(super) const POINTS: usize = 36;
/// Between the 36 matrices: one cache line, so that they do not fall into the same sets of the cache.
const GAP: usize = 16;
/// Fewer channels than this do not pay for the transforms.
const MIN_CHANNELS: usize = 16;

/// Whether this convolution is computed by tiles. Depends on the shapes only.
pub(super) fn pays(geometry: &Geometry, inputs: usize, outputs: usize) -> bool {
    inputs.min(outputs) >= MIN_CHANNELS
        && geometry.taps() == 9
        && 2 * POINTS * geometry.tiles().len() <= geometry.multiplications()
}

/// Rows of the matrices, to whole vectors of any instruction set.
fn padded(channels: usize) -> usize {
    channels.next_multiple_of(16)
}

fn transforms(isa: Isa) -> &'static Transforms {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => &transform::AVX512,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => &transform::AVX2,
        Isa::Portable => &transform::PORTABLE,
    }
}

/// `[panel][tap][input][column]` to `[panel][point][input][column]`.
pub(super) fn transform_weights(isa: Isa, depth: usize, panels: &[Panel], direct: &[f32]) -> Aligned {
    let mut out = Aligned::zeros(direct.len() / 9 * POINTS);
    for panel in panels {
        let len = depth * panel.vectors * isa.lanes();
        let from = &direct[panel.first * depth * 9..][..9 * len];
        let to = &mut out[panel.first * depth * POINTS..][..POINTS * len];
        // SAFETY: the slices hold 9 and 36 rows of `len`, which is a multiple of the lanes; an `Isa` other than
        // `Portable` is only made by `Isa::available`, which asks the processor.
        unsafe { (transforms(isa).kernels)(from.as_ptr(), to.as_mut_ptr(), len) };
    }
    out
}

/// One matrix for each point, `step` numbers apart.
struct Matrices<'a> {
    data: &'a mut [f32],
    step: usize,
}

/// A convolution with transformed weights.
pub(super) struct Convolution<'a> {
    pub(super) isa: Isa,
    pub(super) depth: usize,
    pub(super) outputs: usize,
    pub(super) panels: &'a [Panel],
    pub(super) weights: &'a [f32],
    /// At least `depth` zeros.
    pub(super) zeros: &'a [f32],
}

impl Convolution<'_> {
    /// Convolves `boards` boards, some at a time.
    pub(super) fn apply(
        &self,
        geometry: &Geometry,
        boards: usize,
        x: Rows<'_>,
        epilogue: Epilogue<'_>,
        out: &mut [f32],
    ) {
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
        let (squares, per_board) = (geometry.squares(), geometry.tiles().len());
        let group = boards_per_group(squares).min(boards.max(1));
        // A tile of rows may read and write beyond the last one: the matrices have room for that.
        let rows = (group * per_board).next_multiple_of(R);
        let (stride, widest) = (padded(self.depth), 2 * tiles.lanes);
        let (input_step, product_step) = (rows * stride + GAP, rows * widest + GAP);
        with_scratch(POINTS * (input_step + product_step), |scratch| {
            let (inputs, products) = scratch.split_at_mut(POINTS * input_step);
            let mut inputs = Matrices { data: inputs, step: input_step };
            let mut products = Matrices { data: products, step: product_step };
            for first in (0..boards).step_by(group) {
                let range = first..boards.min(first + group);
                spread_inputs(self.isa, geometry, range.clone(), x, self.depth, self.zeros, &mut inputs);
                for panel in self.panels {
                    self.multiply(tiles, panel, range.len() * per_board, &inputs, &mut products);
                    self.store(panel, geometry, range.clone(), &products, epilogue, out);
                }
            }
        });
    }

    /// The 36 products for one panel: `[point][tile][column]`.
    fn multiply<const R: usize>(
        &self,
        tiles: &Tiles<R>,
        panel: &Panel,
        count: usize,
        inputs: &Matrices<'_>,
        products: &mut Matrices<'_>,
    ) {
        let columns = panel.vectors * tiles.lanes;
        let stride = padded(self.depth);
        let block = self.depth * columns;
        let weights = &self.weights[panel.first * self.depth * POINTS..][..POINTS * block];
        for point in 0..POINTS {
            let inputs = &inputs.data[point * inputs.step..][..inputs.step];
            let products = &mut products.data[point * products.step..][..products.step];
            let weights = &weights[point * block..][..block];
            let mut row = 0;
            while row < count {
                let few = count - row <= FEW;
                let (height, table) = if few { (FEW, &tiles.multiply_few) } else { (R, &tiles.multiply) };
                let from = &inputs[row * stride..][..(height - 1) * stride + self.depth];
                let to = &mut products[row * columns..][..height * columns];
                // SAFETY: the slices are cut to what the loop touches; an `Isa` other than `Portable` is only made by
                // `Isa::available`, which asks the processor.
                unsafe {
                    table[panel.vectors - 1](from.as_ptr(), stride, self.depth, weights.as_ptr(), to.as_mut_ptr());
                }
                row += height;
            }
        }
    }

    fn store(
        &self,
        panel: &Panel,
        geometry: &Geometry,
        boards: std::ops::Range<usize>,
        products: &Matrices<'_>,
        epilogue: Epilogue<'_>,
        out: &mut [f32],
    ) {
        let columns = panel.vectors * self.isa.lanes();
        let valid = columns.min(self.outputs - panel.first);
        let (squares, tiles) = (geometry.squares(), geometry.tiles());
        let zeros = [0.0; super::tile::MAX_COLUMNS];
        let bias = epilogue.bias.map_or(&zeros[..valid], |b| &b[panel.first..panel.first + valid]);
        let finish = Finish {
            bias: bias.as_ptr(),
            residual: epilogue.residual.map_or(std::ptr::null(), <[f32]>::as_ptr),
            relu: epilogue.relu,
        };
        let end = boards.end * squares * self.outputs;
        assert!(out.len() >= end && epilogue.residual.is_none_or(|r| r.len() >= end));
        assert!(products.data.len() >= (POINTS - 1) * products.step + boards.len() * tiles.len() * columns);
        for (i, board) in boards.enumerate() {
            for (t, tile) in tiles.iter().enumerate() {
                let place = |square: u8| match square {
                    OFF => NOWHERE,
                    _ => (board * squares + usize::from(square)) * self.outputs + panel.first,
                };
                let mut places = [NOWHERE; 16];
                for (to, square) in places.iter_mut().zip(tile.outputs) {
                    *to = place(square);
                }
                // SAFETY: `products` and `out` were checked above: a place is a row of a board below `boards.end`, and
                // `panel.first + valid <= outputs`; for the instructions see `multiply`.
                unsafe {
                    let first = products.data.as_ptr().add((i * tiles.len() + t) * columns);
                    let mut rows = [first; POINTS];
                    for (point, row) in rows.iter_mut().enumerate() {
                        *row = first.add(point * products.step);
                    }
                    (transforms(self.isa).output)(&rows, valid, &places, finish, out.as_mut_ptr());
                }
            }
        }
    }
}

/// Transforms the input tiles of some boards: `[point][tile][channel]`.
fn spread_inputs(
    isa: Isa,
    geometry: &Geometry,
    boards: std::ops::Range<usize>,
    x: Rows<'_>,
    channels: usize,
    zeros: &[f32],
    out: &mut Matrices<'_>,
) {
    let (squares, tiles, stride) = (geometry.squares(), geometry.tiles(), padded(channels));
    assert!(channels <= x.stride && channels <= zeros.len());
    assert!(x.data.len() >= (boards.end * squares - 1) * x.stride + channels);
    assert!(out.data.len() >= (POINTS - 1) * out.step + boards.len() * tiles.len() * stride);
    for (i, board) in boards.enumerate() {
        let base = board * squares * x.stride;
        for (t, tile) in tiles.iter().enumerate() {
            let mut rows = [zeros.as_ptr(); POINTS];
            for (row, square) in rows.iter_mut().zip(tile.inputs).filter(|(_, square)| *square != OFF) {
                *row = x.data[base + usize::from(square) * x.stride..].as_ptr();
            }
            // SAFETY: the slices were checked above: a square is on its board, and a tile's row is one of `out`; for
            // the instructions see `Convolution::multiply`.
            unsafe {
                let to = out.data.as_mut_ptr().add((i * tiles.len() + t) * stride);
                (transforms(isa).input)(&rows, channels, to, out.step);
            }
        }
    }
}
