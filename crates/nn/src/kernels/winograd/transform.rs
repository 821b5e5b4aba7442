//! The linear maps of F(4x4, 3x3), for whole tiles and all channels.
//!
//! With the points 0, a, -a, b, -b and infinity, the six numbers of a transformed row are the values of a polynomial
//! at the points. Published code takes 1 and 2; 3/4 and 3/2 halve the rounding error, and their powers are exact.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::super::vector::{Avx2, Avx512};
use super::super::vector::{Lanes, Vector};

const A: f32 = 0.75;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;
/// `1 / product of the differences to the other points`, for 0, for a and -a, for b and -b.
const AT_0: f32 = 1.0 / (A2 * B2);
const AT_A: f32 = 1.0 / (2.0 * A2 * (A2 - B2));
const AT_B: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// Marks a place of a tile that is not on the board.
pub(super) const NOWHERE: usize = usize::MAX;

/// What is done to an output tile before it is stored.
#[derive(Clone, Copy)]
pub(super) struct Finish {
    /// One number a channel.
    pub(super) bias: *const f32,
    /// Laid out like the output, or null.
    pub(super) residual: *const f32,
    /// Whether negative results become 0.
    pub(super) relu: bool,
}

/// `fn(rows, channels, out, step)`: from 36 rows of input, or 16 of an output's gradient, to 36 rows `step` apart.
///
/// # Safety
/// Each of `rows` must be valid for `channels` reads, `out` for `channels` writes at `i * step` of each of 36 rows; the
/// processor must have the instructions.
type Spread<const N: usize> = unsafe fn(&[*const f32; N], usize, *mut f32, usize);

/// `fn(products, channels, places, finish, out)`: from 36 rows to the 16 rows of an output tile, which begin at `places`
/// of `out` and of the residual.
///
/// # Safety
/// Each of `products` must be valid for `channels` reads, `finish.bias` for `channels` reads, `out` for
/// writes and the residual, if there is one, for reads of `channels` numbers at each place other than [`NOWHERE`]; the
/// processor must have the instructions.
type Output = unsafe fn(&[*const f32; 36], usize, &[usize; 16], Finish, *mut f32);

/// `fn(from, to, len)`: maps `len` kernels at once, in rows `len` apart: 9 rows to 36, or 36 gradients to 9.
///
/// # Safety
/// `from` and `to` must be valid for their rows, `len` must be a multiple of the lanes; the processor must have the
/// instructions.
type Kernels = unsafe fn(*const f32, *mut f32, usize);

/// The maps of one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Transforms {
    /// `B^T d B` of an input tile.
    pub(super) input: Spread<36>,
    /// `A y A^T` of the gradient of an output tile.
    pub(super) gradient: Spread<16>,
    /// `A^T m A`, and the end of the layer.
    pub(super) output: Output,
    /// `G g G^T`.
    pub(super) kernels: Kernels,
    /// `G^T u G`, from the gradient of `G g G^T` to the gradient of g.
    pub(super) kernel_gradients: Kernels,
}

/// A linear map of a row of numbers. (A trait and not a function argument: calls through `Fn` are not inlined into
/// functions that turn an instruction set on.)
trait Map<const N: usize, const M: usize> {
    /// # Safety
    /// As for all operations of [`Vector`].
    unsafe fn map<V: Vector>(x: [V; N]) -> [V; M];
}

/// A tile between its two maps: the columns are mapped, the rows are not. It stays where it is made: handed over by
/// value, its 36 vectors would be copied.
struct Half<V, const N: usize, const M: usize>([MaybeUninit<[V; M]>; N]);

impl<V: Vector, const N: usize, const M: usize> Half<V, N, M> {
    #[inline(always)]
    fn new() -> Self {
        Half([const { MaybeUninit::uninit() }; N])
    }

    /// Maps the columns of the numbers at `c` of N x N rows.
    ///
    /// # Safety
    /// Each of `rows` must be valid for a vector at `c`; else as for all operations of [`Vector`].
    #[inline(always)]
    unsafe fn columns<F: Map<N, M>>(&mut self, rows: &[*const f32], c: usize) {
        // SAFETY: passed on.
        unsafe {
            for j in 0..N {
                let mut column = [V::splat(0.0); N];
                for i in 0..N {
                    column[i] = V::load(rows[i * N + j].add(c));
                }
                self.0[j].write(F::map(column));
            }
        }
    }

    /// Row `i` of the result.
    ///
    /// # Safety
    /// [`Half::columns`] must have been called; else as for all operations of [`Vector`].
    #[inline(always)]
    unsafe fn row<F: Map<N, M>>(&self, i: usize) -> [V; M] {
        // SAFETY: passed on; `columns` has written all of it.
        unsafe {
            let mut row = [V::splat(0.0); N];
            for j in 0..N {
                row[j] = self.0[j].assume_init_ref()[i];
            }
            F::map(row)
        }
    }
}

/// `B^T d`.
struct InputMap;

impl Map<6, 6> for InputMap {
    #[inline(always)]
    unsafe fn map<V: Vector>(d: [V; 6]) -> [V; 6] {
        // SAFETY: passed on.
        unsafe {
            let even_a = d[2].fma(V::splat(-B2), d[4]);
            let odd_a = d[1].fma(V::splat(-B2), d[3]);
            let even_b = d[2].fma(V::splat(-A2), d[4]);
            let odd_b = d[1].fma(V::splat(-A2), d[3]);
            [
                d[0].fma(V::splat(A2 * B2), d[2].fma(V::splat(-A2 - B2), d[4])),
                odd_a.fma(V::splat(A), even_a),
                odd_a.fma(V::splat(-A), even_a),
                odd_b.fma(V::splat(B), even_b),
                odd_b.fma(V::splat(-B), even_b),
                d[1].fma(V::splat(A2 * B2), d[3].fma(V::splat(-A2 - B2), d[5])),
            ]
        }
    }
}

/// `A^T m`.
struct OutputMap;

impl Map<6, 4> for OutputMap {
    #[inline(always)]
    unsafe fn map<V: Vector>(m: [V; 6]) -> [V; 4] {
        // SAFETY: passed on.
        unsafe {
            let (sum_a, difference_a) = (m[1].add(m[2]), m[1].sub(m[2]));
            let (sum_b, difference_b) = (m[3].add(m[4]), m[3].sub(m[4]));
            [
                m[0].add(sum_a).add(sum_b),
                difference_a.fma(V::splat(A), difference_b.mul(V::splat(B))),
                sum_a.fma(V::splat(A2), sum_b.mul(V::splat(B2))),
                difference_a.fma(V::splat(A * A2), difference_b.fma(V::splat(B * B2), m[5])),
            ]
        }
    }
}

/// `A y`, the transpose of [`OutputMap`].
struct GradientMap;

impl Map<4, 6> for GradientMap {
    #[inline(always)]
    unsafe fn map<V: Vector>(y: [V; 4]) -> [V; 6] {
        // SAFETY: passed on.
        unsafe {
            let even_a = y[2].fma(V::splat(A2), y[0]);
            let odd_a = y[3].fma(V::splat(A2), y[1]);
            let even_b = y[2].fma(V::splat(B2), y[0]);
            let odd_b = y[3].fma(V::splat(B2), y[1]);
            [
                y[0],
                odd_a.fma(V::splat(A), even_a),
                odd_a.fma(V::splat(-A), even_a),
                odd_b.fma(V::splat(B), even_b),
                odd_b.fma(V::splat(-B), even_b),
                y[3],
            ]
        }
    }
}

/// `G g`.
struct KernelMap;

impl Map<3, 6> for KernelMap {
    #[inline(always)]
    unsafe fn map<V: Vector>(g: [V; 3]) -> [V; 6] {
        // SAFETY: passed on.
        unsafe {
            let even_a = g[2].fma(V::splat(A2), g[0]).mul(V::splat(AT_A));
            let even_b = g[2].fma(V::splat(B2), g[0]).mul(V::splat(AT_B));
            [
                g[0].mul(V::splat(AT_0)),
                g[1].fma(V::splat(A * AT_A), even_a),
                g[1].fma(V::splat(-A * AT_A), even_a),
                g[1].fma(V::splat(B * AT_B), even_b),
                g[1].fma(V::splat(-B * AT_B), even_b),
                g[2],
            ]
        }
    }
}

/// `G^T u`, the transpose of [`KernelMap`].
struct KernelGradientMap;

impl Map<6, 3> for KernelGradientMap {
    #[inline(always)]
    unsafe fn map<V: Vector>(u: [V; 6]) -> [V; 3] {
        // SAFETY: passed on.
        unsafe {
            let (sum_a, difference_a) = (u[1].add(u[2]).mul(V::splat(AT_A)), u[1].sub(u[2]));
            let (sum_b, difference_b) = (u[3].add(u[4]).mul(V::splat(AT_B)), u[3].sub(u[4]));
            [
                u[0].fma(V::splat(AT_0), sum_a.add(sum_b)),
                difference_a.fma(V::splat(A * AT_A), difference_b.mul(V::splat(B * AT_B))),
                sum_a.fma(V::splat(A2), sum_b.fma(V::splat(B2), u[5])),
            ]
        }
    }
}

/// Calls `wide` for chunks that cover `channels` (the last two may overlap), or `single` for each channel where not
/// even one chunk fits.
#[inline(always)]
fn chunks<V: Vector>(channels: usize, wide: impl Fn(usize), single: impl Fn(usize)) {
    let mut c = 0;
    while c + V::LANES <= channels {
        wide(c);
        c += V::LANES;
    }
    if c < channels {
        if channels >= V::LANES {
            wide(channels - V::LANES);
        } else {
            (0..channels).for_each(single);
        }
    }
}

#[inline(always)]
unsafe fn spread_chunk<F: Map<N, 6>, V: Vector, const N: usize>(
    rows: &[*const f32],
    c: usize,
    out: *mut f32,
    step: usize,
) {
    // SAFETY: the caller's promises, as written at `Spread`.
    unsafe {
        let mut half = Half::<V, N, 6>::new();
        half.columns::<F>(rows, c);
        for i in 0..6 {
            let row = half.row::<F>(i);
            for j in 0..6 {
                row[j].store(out.add((i * 6 + j) * step + c));
            }
        }
    }
}

#[inline(always)]
unsafe fn output_chunk<V: Vector>(
    products: &[*const f32; 36],
    c: usize,
    places: &[usize; 16],
    finish: Finish,
    out: *mut f32,
) {
    // SAFETY: the caller's promises, as written at `Output`.
    unsafe {
        let mut half = Half::<V, 6, 4>::new();
        half.columns::<OutputMap>(products, c);
        let bias = V::load(finish.bias.add(c));
        for i in 0..4 {
            let row = half.row::<OutputMap>(i);
            for j in 0..4 {
                let place = places[i * 4 + j];
                if place != NOWHERE {
                    let mut y = row[j].add(bias);
                    if !finish.residual.is_null() {
                        y = y.add(V::load(finish.residual.add(place + c)));
                    }
                    if finish.relu {
                        y = y.relu();
                    }
                    y.store(out.add(place + c));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn kernel_chunks<F: Map<N, M>, V: Vector, const N: usize, const M: usize, const ROWS: usize>(
    from: *const f32,
    to: *mut f32,
    len: usize,
) {
    // SAFETY: the caller's promises, as written at `Kernels`.
    unsafe {
        let mut rows = [from; ROWS];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = from.add(i * len);
        }
        for c in (0..len).step_by(V::LANES) {
            let mut half = Half::<V, N, M>::new();
            half.columns::<F>(&rows, c);
            for i in 0..M {
                let row = half.row::<F>(i);
                for j in 0..M {
                    row[j].store(to.add((i * M + j) * len + c));
                }
            }
        }
    }
}

/// The maps above, compiled for one instruction set.
macro_rules! transforms {
    ($module:ident, $table:ident, $vector:ty, $(#[$feature:meta])?) => {
        mod $module {
            use super::*;

            // SAFETY of all: the promises are passed on unchanged; chunks stay below the number of channels.
            $(#[$feature])?
            unsafe fn input(rows: &[*const f32; 36], channels: usize, out: *mut f32, step: usize) {
                chunks::<$vector>(
                    channels,
                    #[inline(always)]
                    |c| unsafe { spread_chunk::<InputMap, $vector, 6>(rows, c, out, step) },
                    |c| unsafe { spread_chunk::<InputMap, Lanes<1>, 6>(rows, c, out, step) },
                );
            }

            $(#[$feature])?
            unsafe fn gradient(rows: &[*const f32; 16], channels: usize, out: *mut f32, step: usize) {
                chunks::<$vector>(
                    channels,
                    #[inline(always)]
                    |c| unsafe { spread_chunk::<GradientMap, $vector, 4>(rows, c, out, step) },
                    |c| unsafe { spread_chunk::<GradientMap, Lanes<1>, 4>(rows, c, out, step) },
                );
            }

            $(#[$feature])?
            unsafe fn output(
                products: &[*const f32; 36],
                channels: usize,
                places: &[usize; 16],
                finish: Finish,
                out: *mut f32,
            ) {
                chunks::<$vector>(
                    channels,
                    #[inline(always)]
                    |c| unsafe { output_chunk::<$vector>(products, c, places, finish, out) },
                    |c| unsafe { output_chunk::<Lanes<1>>(products, c, places, finish, out) },
                );
            }

            $(#[$feature])?
            unsafe fn kernels(from: *const f32, to: *mut f32, len: usize) {
                unsafe { kernel_chunks::<KernelMap, $vector, 3, 6, 9>(from, to, len) }
            }

            $(#[$feature])?
            unsafe fn kernel_gradients(from: *const f32, to: *mut f32, len: usize) {
                unsafe { kernel_chunks::<KernelGradientMap, $vector, 6, 3, 36>(from, to, len) }
            }

            pub(crate) const TABLE: Transforms = Transforms { input, gradient, output, kernels, kernel_gradients };
        }
        /// This instruction set's maps.
        pub(super) const $table: Transforms = $module::TABLE;
    };
}

#[cfg(target_arch = "x86_64")]
transforms!(avx512, AVX512, Avx512, #[target_feature(enable = "avx512f")]);
#[cfg(target_arch = "x86_64")]
transforms!(avx2, AVX2, Avx2, #[target_feature(enable = "avx2,fma")]);
transforms!(portable, PORTABLE, Lanes<8>,);
