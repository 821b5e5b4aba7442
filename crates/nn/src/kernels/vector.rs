//! Vectors of f32: what the inner loops are written in, once for all instruction sets.
//!
//! The loops are generic functions over [`Vector`], inlined into small functions that turn an instruction set on (see
//! `tile` and `winograd`); the operations below are then single instructions.

use super::at_least;

/// A vector register.
///
/// # Safety
/// All operations need the processor to have the type's instructions, and to be inlined into a function compiled for
/// them. Pointers must be valid for [`Vector::LANES`] numbers; no alignment is asked for.
pub(super) trait Vector: Copy {
    /// Numbers in a vector.
    const LANES: usize;
    /// All `x`.
    unsafe fn splat(x: f32) -> Self;
    /// Reads a vector.
    unsafe fn load(p: *const f32) -> Self;
    /// Writes a vector.
    unsafe fn store(self, p: *mut f32);
    /// `self + x`.
    unsafe fn add(self, x: Self) -> Self;
    /// `self - x`.
    unsafe fn sub(self, x: Self) -> Self;
    /// `self * x`.
    unsafe fn mul(self, x: Self) -> Self;
    /// `self * x + y`, with one rounding where the processor has it.
    unsafe fn fma(self, x: Self, y: Self) -> Self;
    /// Negative numbers become 0; a NaN stays.
    unsafe fn relu(self) -> Self;
    /// The numbers where `x` is positive, elsewhere 0.
    unsafe fn where_positive(self, x: Self) -> Self;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($name:ident, $inner:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $sub:ident,
         $mul:ident, $fma:ident, $max:ident, |$kept:ident, $x:ident| $where_positive:expr) => {
            #[derive(Clone, Copy)]
            pub(crate) struct $name($inner);

            // SAFETY of all: the processor has the instructions and pointers are valid, by the trait's contract.
            impl Vector for $name {
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn splat(x: f32) -> Self {
                    unsafe { $name($splat(x)) }
                }
                #[inline(always)]
                unsafe fn load(p: *const f32) -> Self {
                    unsafe { $name($load(p)) }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut f32) {
                    unsafe { $store(p, self.0) }
                }
                #[inline(always)]
                unsafe fn add(self, x: Self) -> Self {
                    unsafe { $name($add(self.0, x.0)) }
                }
                #[inline(always)]
                unsafe fn sub(self, x: Self) -> Self {
                    unsafe { $name($sub(self.0, x.0)) }
                }
                #[inline(always)]
                unsafe fn mul(self, x: Self) -> Self {
                    unsafe { $name($mul(self.0, x.0)) }
                }
                #[inline(always)]
                unsafe fn fma(self, x: Self, y: Self) -> Self {
                    unsafe { $name($fma(self.0, x.0, y.0)) }
                }
                #[inline(always)]
                unsafe fn relu(self) -> Self {
                    // The maximum instruction gives its second operand where either is a NaN.
                    unsafe { $name($max($splat(0.0), self.0)) }
                }
                #[inline(always)]
                unsafe fn where_positive(self, x: Self) -> Self {
                    let ($kept, $x) = (self.0, x.0);
                    unsafe { $name($where_positive) }
                }
            }
        };
    }

    vector!(
        Avx512,
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        |kept, x| _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, _mm512_setzero_ps()), kept)
    );
    vector!(
        Avx2,
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        |kept, x| _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(x, _mm256_setzero_ps()), kept)
    );
}
#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

/// An array that the compiler turns into whatever vectors the target has; with one lane, a plain number.
#[derive(Clone, Copy)]
pub(super) struct Lanes<const N: usize>([f32; N]);

impl<const N: usize> Lanes<N> {
    #[inline(always)]
    fn zip(self, x: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self;
        for i in 0..N {
            out.0[i] = f(self.0[i], x.0[i]);
        }
        out
    }
}

impl<const N: usize> Vector for Lanes<N> {
    const LANES: usize = N;
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Lanes([x; N])
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: valid for N reads, by the trait's contract; an unaligned read asks for no alignment.
        unsafe { Lanes(p.cast::<[f32; N]>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: valid for N writes, by the trait's contract.
        unsafe { p.cast::<[f32; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, x: Self) -> Self {
        self.zip(x, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, x: Self) -> Self {
        self.zip(x, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, x: Self) -> Self {
        self.zip(x, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn fma(self, x: Self, y: Self) -> Self {
        let mut out = y;
        for i in 0..N {
            // Fused only where the instruction is part of the base set: elsewhere it is a slow library call.
            out.0[i] = if cfg!(target_arch = "aarch64") {
                self.0[i].mul_add(x.0[i], y.0[i])
            } else {
                self.0[i] * x.0[i] + y.0[i]
            };
        }
        out
    }
    #[inline(always)]
    unsafe fn relu(self) -> Self {
        Lanes(self.0.map(|x| at_least(x, 0.0)))
    }
    #[inline(always)]
    unsafe fn where_positive(self, x: Self) -> Self {
        self.zip(x, |kept, x| if x > 0.0 { kept } else { 0.0 })
    }
}
