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

/// Most rows that a tile has.
pub(crate) const MAX_ROWS: usize = 8;
/// Most columns that a tile has.
pub(crate) const MAX_COLUMNS: usize = 32;

/// `(tap, pointers)`: the tap's number in the packed weights, and for each row of the tile its `depth` inputs there.
pub(crate) type Tap<const R: usize> = (usize, [*const f32; R]);

/// `fn(taps, depth, weights, out)`: writes R rows of V vectors to `out`.
///
/// # Safety
/// Every pointer of `taps` must be valid for `depth` reads, `weights` for `depth * columns` reads at
/// `tap * depth * columns` of each tap, `out` for `R * columns` writes; the processor must have the instructions.
pub(crate) type Product<const R: usize> = unsafe fn(&[Tap<R>], usize, *const f32, *mut f32);

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
    /// Weight-gradient loops one and two vectors wide.
    pub(crate) outer: [Outer; 2],
}

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
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => AVX512.lanes,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => AVX2.lanes,
            Isa::Portable => PORTABLE.lanes,
        }
    }
}

macro_rules! tiles {
    ($name:ident, $table:ident, $rows:literal, $(#[$feature:meta])?) => {
        impl $name {
            $(#[$feature])?
            unsafe fn product<const V: usize>(
                taps: &[Tap<$rows>],
                depth: usize,
                weights: *const f32,
                out: *mut f32,
            ) {
                // SAFETY: the caller's promises, as written at `Product`.
                unsafe {
                    let mut acc = [[Self::zero(); V]; $rows];
                    for (tap, rows) in taps {
                        let rows = *rows;
                        let mut w = weights.add(tap * depth * V * Self::LANES);
                        for k in 0..depth {
                            let mut b = [Self::zero(); V];
                            for v in 0..V {
                                b[v] = Self::load(w.add(v * Self::LANES));
                            }
                            for r in 0..$rows {
                                let a = Self::splat(*rows[r].add(k));
                                for v in 0..V {
                                    acc[r][v] = Self::fma(a, b[v], acc[r][v]);
                                }
                            }
                            w = w.add(V * Self::LANES);
                        }
                    }
                    for r in 0..$rows {
                        for v in 0..V {
                            Self::store(out.add((r * V + v) * Self::LANES), acc[r][v]);
                        }
                    }
                }
            }

            $(#[$feature])?
            unsafe fn outer<const V: usize>(
                pairs: &[(u32, u32)],
                x: *const f32,
                dy: *const f32,
                sums: *mut f32,
                stride: usize,
            ) {
                // SAFETY: the caller's promises, as written at `Outer`.
                unsafe {
                    let mut acc = [[Self::zero(); V]; $rows];
                    for r in 0..$rows {
                        for v in 0..V {
                            acc[r][v] = Self::load(sums.add(r * stride + v * Self::LANES));
                        }
                    }
                    for &(i, j) in pairs {
                        let (x, dy) = (x.add(i as usize), dy.add(j as usize));
                        let mut b = [Self::zero(); V];
                        for v in 0..V {
                            b[v] = Self::load(dy.add(v * Self::LANES));
                        }
                        for r in 0..$rows {
                            let a = Self::splat(*x.add(r));
                            for v in 0..V {
                                acc[r][v] = Self::fma(a, b[v], acc[r][v]);
                            }
                        }
                    }
                    for r in 0..$rows {
                        for v in 0..V {
                            Self::store(sums.add(r * stride + v * Self::LANES), acc[r][v]);
                        }
                    }
                }
            }
        }

        /// This instruction set's loops.
        pub(crate) const $table: Tiles<$rows> = Tiles {
            lanes: $name::LANES,
            product: [$name::product::<1>, $name::product::<2>],
            outer: [$name::outer::<1>, $name::outer::<2>],
        };
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Tap, Tiles};
    use std::arch::x86_64::*;

    struct Avx512;

    /// The vector operations that the loops are made of.
    ///
    /// # Safety
    /// The processor must have AVX-512F, and pointers must be valid for 16 numbers.
    impl Avx512 {
        const LANES: usize = 16;
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn zero() -> __m512 {
            _mm512_setzero_ps()
        }
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn splat(x: f32) -> __m512 {
            _mm512_set1_ps(x)
        }
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn load(p: *const f32) -> __m512 {
            // SAFETY: valid for 16 reads, by the contract above.
            unsafe { _mm512_loadu_ps(p) }
        }
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn store(p: *mut f32, x: __m512) {
            // SAFETY: valid for 16 writes, by the contract above.
            unsafe { _mm512_storeu_ps(p, x) }
        }
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
            _mm512_fmadd_ps(a, b, c)
        }
    }

    struct Avx2;

    /// The vector operations that the loops are made of.
    ///
    /// # Safety
    /// The processor must have AVX2 and FMA, and pointers must be valid for 8 numbers.
    impl Avx2 {
        const LANES: usize = 8;
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn zero() -> __m256 {
            _mm256_setzero_ps()
        }
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn splat(x: f32) -> __m256 {
            _mm256_set1_ps(x)
        }
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn load(p: *const f32) -> __m256 {
            // SAFETY: valid for 8 reads, by the contract above.
            unsafe { _mm256_loadu_ps(p) }
        }
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn store(p: *mut f32, x: __m256) {
            // SAFETY: valid for 8 writes, by the contract above.
            unsafe { _mm256_storeu_ps(p, x) }
        }
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
            _mm256_fmadd_ps(a, b, c)
        }
    }

    tiles!(Avx512, AVX512, 8, #[target_feature(enable = "avx512f")]);
    tiles!(Avx2, AVX2, 6, #[target_feature(enable = "avx2,fma")]);
}
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{AVX2, AVX512};

struct Portable;

/// Vectors as arrays.
///
/// # Safety
/// Pointers must be valid for 8 numbers.
impl Portable {
    const LANES: usize = 8;
    #[inline(always)]
    unsafe fn zero() -> [f32; 8] {
        [0.0; 8]
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; 8] {
        [x; 8]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> [f32; 8] {
        // SAFETY: valid for 8 reads, by the contract above; an unaligned read asks for no alignment.
        unsafe { p.cast::<[f32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: [f32; 8]) {
        // SAFETY: valid for 8 writes, by the contract above.
        unsafe { p.cast::<[f32; 8]>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn fma(a: [f32; 8], b: [f32; 8], mut c: [f32; 8]) -> [f32; 8] {
        for i in 0..8 {
            // Fused only where the instruction is part of the base set: elsewhere it is a slow library call.
            c[i] = if cfg!(target_arch = "aarch64") { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] };
        }
        c
    }
}

tiles!(Portable, PORTABLE, 4,);
