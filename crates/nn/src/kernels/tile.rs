//! The register-tiled inner loops: the only place where the instruction set matters.
//!
//! Both loops are `acc[r][v] += a[r] * b[v]`: R scalars, each broadcast, times V vectors, with all sums in registers.
//!
//! * `product`: rows are output squares, columns output channels; it runs over taps and input channels.
//! * `outer`: rows are input channels, columns output channels; it runs over pairs of squares. It makes the gradient of
//!   the weights.
//!
//! There is one version each for AVX-512, for AVX2 with FMA, and in plain Rust (which compilers turn into NEON). The
//! order of the additions into one output is the same wherever its row sits in a tile: results depend on neither the
//! batch nor the block that a position falls into.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, Avx512};
use super::vector::{Lanes, Vector};

/// Most rows that a tile has.
pub(crate) const MAX_ROWS: usize = 8;
/// Most columns that a tile has.
pub(crate) const MAX_COLUMNS: usize = 32;

/// Rows of the lower tile that ends a product of matrices.
pub(crate) const FEW: usize = 4;

/// `(tap, pointers)`: the tap's number in the packed weights, and for each row of the tile its `depth` inputs there.
pub(crate) type Tap<const R: usize> = (usize, [*const f32; R]);

/// `fn(taps, depth, weights, out)`: writes R rows of V vectors to `out`.
///
/// # Safety
/// Every pointer of `taps` must be valid for `depth` reads, `weights` for `depth * columns` reads at
/// `tap * depth * columns` of each tap, `out` for `R * columns` writes; the processor must have the instructions.
pub(crate) type Product<const R: usize> = unsafe fn(&[Tap<R>], usize, *const f32, *mut f32);

/// `fn(rows, stride, depth, weights, out)`: as [`Product`] with one tap, for rows of input that are `stride` apart.
///
/// # Safety
/// `rows` must be valid for `depth` reads at `r * stride` of each row, `weights` for `depth * columns` reads, `out` for
/// `R * columns` writes; the processor must have the instructions.
pub(crate) type Multiply = unsafe fn(*const f32, usize, usize, *const f32, *mut f32);

/// `fn(pairs, x, dy, sums, stride)`: adds, for each pair `(i, j)`, `x[i..i + R]^T dy[j..j + columns]` to the R rows of
/// `sums`, which are `stride` apart.
///
/// # Safety
/// `x` must be valid for R reads at each `i`, `dy` for `columns` reads at each `j`, `sums` for reads and writes of
/// `columns` numbers at `r * stride` for each row; the processor must have the instructions.
pub(crate) type Outer = unsafe fn(&[(u32, u32)], *const f32, *const f32, *mut f32, usize);

/// The loops of one instruction set: R rows by one or two vectors of `lanes` numbers.
#[derive(Clone, Copy)]
pub(crate) struct Tiles<const R: usize> {
    /// Numbers in a vector.
    pub(crate) lanes: usize,
    /// Forward loops one and two vectors wide.
    pub(crate) product: [Product<R>; 2],
    /// Products of plain matrices of R rows, one and two vectors wide.
    pub(crate) multiply: [Multiply; 2],
    /// The same for [`FEW`] rows.
    pub(crate) multiply_few: [Multiply; 2],
    /// Weight-gradient loops one and two vectors wide.
    pub(crate) outer: [Outer; 2],
}

/// `with_tiles!(isa, |tiles| body)`: the body with the loops of an instruction set.
macro_rules! with_tiles {
    ($isa:expr, |$tiles:ident| $body:expr) => {{
        use $crate::kernels::tile;
        match $isa {
            #[cfg(target_arch = "x86_64")]
            tile::Isa::Avx512 => {
                let $tiles = &tile::AVX512;
                $body
            }
            #[cfg(target_arch = "x86_64")]
            tile::Isa::Avx2 => {
                let $tiles = &tile::AVX2;
                $body
            }
            tile::Isa::Portable => {
                let $tiles = &tile::PORTABLE;
                $body
            }
        }
    }};
}
pub(super) use with_tiles;

/// The instruction sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Isa {
    /// 8 rows by 2 x 16.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 6 rows by 2 x 8.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 4 rows by 2 x 8.
    Portable,
}

impl Isa {
    /// The best that this processor has.
    pub(crate) fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::available()[0])
    }

    /// All that this processor has, best first.
    pub(crate) fn available() -> Vec<Isa> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                all.push(Isa::Avx512);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Isa::Avx2);
            }
        }
        all.push(Isa::Portable);
        all
    }

    /// Numbers in a vector.
    pub(crate) fn lanes(self) -> usize {
        with_tiles!(self, |tiles| tiles.lanes)
    }
}

/// The weight-gradient loops of an instruction set, and the rows of their tiles.
pub(super) fn outer_of(isa: Isa) -> (usize, [Outer; 2]) {
    with_tiles!(isa, |tiles| (tiles.rows(), tiles.outer))
}

impl<const R: usize> Tiles<R> {
    const fn rows(&self) -> usize {
        R
    }
}

/// Adds the products of R rows and `depth` rows of weights to the sums of a tile.
///
/// # Safety
/// Each of `rows` must be valid for `depth` reads, `w` for `depth * columns` reads; the processor must have the
/// instructions.
#[inline(always)]
unsafe fn accumulate<V: Vector, const R: usize, const N: usize>(
    acc: &mut [[V; N]; R],
    rows: [*const f32; R],
    depth: usize,
    mut w: *const f32,
) {
    // SAFETY: passed on.
    unsafe {
        for k in 0..depth {
            let mut b = [V::splat(0.0); N];
            for v in 0..N {
                b[v] = V::load(w.add(v * V::LANES));
            }
            for r in 0..R {
                let a = V::splat(*rows[r].add(k));
                for v in 0..N {
                    acc[r][v] = a.fma(b[v], acc[r][v]);
                }
            }
            w = w.add(N * V::LANES);
        }
    }
}

/// Writes the sums of a tile, its rows side by side.
///
/// # Safety
/// `out` must be valid for `R * columns` writes; the processor must have the instructions.
#[inline(always)]
unsafe fn store<V: Vector, const R: usize, const N: usize>(acc: &[[V; N]; R], out: *mut f32) {
    // SAFETY: passed on.
    unsafe {
        for r in 0..R {
            for v in 0..N {
                acc[r][v].store(out.add((r * N + v) * V::LANES));
            }
        }
    }
}

/// See [`Product`].
#[inline(always)]
unsafe fn product<V: Vector, const R: usize, const N: usize>(
    taps: &[Tap<R>],
    depth: usize,
    weights: *const f32,
    out: *mut f32,
) {
    // SAFETY: the caller's promises, as written at `Product`.
    unsafe {
        let mut acc = [[V::splat(0.0); N]; R];
        for (tap, rows) in taps {
            accumulate(&mut acc, *rows, depth, weights.add(tap * depth * N * V::LANES));
        }
        store(&acc, out);
    }
}

/// See [`Multiply`].
#[inline(always)]
unsafe fn multiply<V: Vector, const R: usize, const N: usize>(
    rows: *const f32,
    stride: usize,
    depth: usize,
    weights: *const f32,
    out: *mut f32,
) {
    // SAFETY: the caller's promises, as written at `Multiply`.
    unsafe {
        let mut pointers = [rows; R];
        for r in 0..R {
            pointers[r] = rows.add(r * stride);
        }
        let mut acc = [[V::splat(0.0); N]; R];
        accumulate(&mut acc, pointers, depth, weights);
        store(&acc, out);
    }
}

/// See [`Outer`].
#[inline(always)]
unsafe fn outer<V: Vector, const R: usize, const N: usize>(
    pairs: &[(u32, u32)],
    x: *const f32,
    dy: *const f32,
    sums: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promises, as written at `Outer`.
    unsafe {
        let mut acc = [[V::splat(0.0); N]; R];
        for r in 0..R {
            for v in 0..N {
                acc[r][v] = V::load(sums.add(r * stride + v * V::LANES));
            }
        }
        for &(i, j) in pairs {
            let (x, dy) = (x.add(i as usize), dy.add(j as usize));
            let mut b = [V::splat(0.0); N];
            for v in 0..N {
                b[v] = V::load(dy.add(v * V::LANES));
            }
            for r in 0..R {
                let a = V::splat(*x.add(r));
                for v in 0..N {
                    acc[r][v] = a.fma(b[v], acc[r][v]);
                }
            }
        }
        for r in 0..R {
            for v in 0..N {
                acc[r][v].store(sums.add(r * stride + v * V::LANES));
            }
        }
    }
}

/// The loops above, compiled for one instruction set.
macro_rules! tiles {
    ($module:ident, $table:ident, $vector:ty, $rows:literal, $(#[$feature:meta])?) => {
        mod $module {
            use super::*;

            // SAFETY of all: the promises are passed on unchanged.
            $(#[$feature])?
            unsafe fn product<const N: usize>(taps: &[Tap<$rows>], depth: usize, w: *const f32, out: *mut f32) {
                unsafe { super::product::<$vector, $rows, N>(taps, depth, w, out) }
            }

            $(#[$feature])?
            unsafe fn multiply<const R: usize, const N: usize>(
                rows: *const f32,
                stride: usize,
                depth: usize,
                w: *const f32,
                out: *mut f32,
            ) {
                unsafe { super::multiply::<$vector, R, N>(rows, stride, depth, w, out) }
            }

            $(#[$feature])?
            unsafe fn outer<const N: usize>(
                pairs: &[(u32, u32)],
                x: *const f32,
                dy: *const f32,
                sums: *mut f32,
                stride: usize,
            ) {
                unsafe { super::outer::<$vector, $rows, N>(pairs, x, dy, sums, stride) }
            }

            pub(crate) const TABLE: Tiles<$rows> = Tiles {
                lanes: <$vector>::LANES,
                product: [product::<1>, product::<2>],
                multiply: [multiply::<$rows, 1>, multiply::<$rows, 2>],
                multiply_few: [multiply::<FEW, 1>, multiply::<FEW, 2>],
                outer: [outer::<1>, outer::<2>],
            };
        }
        /// This instruction set's loops.
        pub(crate) const $table: Tiles<$rows> = $module::TABLE;
    };
}

#[cfg(target_arch = "x86_64")]
tiles!(avx512, AVX512, Avx512, 8, #[target_feature(enable = "avx512f")]);
#[cfg(target_arch = "x86_64")]
tiles!(avx2, AVX2, Avx2, 6, #[target_feature(enable = "avx2,fma")]);
tiles!(portable, PORTABLE, Lanes<8>, 4,);
