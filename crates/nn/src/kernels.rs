//! The CPU kernels: convolution on small boards, directly (`conv`, `gradient`) and by tiles (`winograd`), batch norm
//! (`norm`), and loops over rows (`rowwise`).
//!
//! Activations are channel-last, `[boards, squares, channels]`; a 1x1 convolution and a linear layer are the same
//! loops with one tap. All functions work on slices and know nothing of tensors. Unsafe code lives here and nowhere
//! else in the crate: vectors and the loops written in them (`vector`, `tile`, `rowwise`, `winograd`), the buffers that
//! they read (`aligned`), and the functions that call the loops after they have checked every range.
#![allow(unsafe_code)]
#![allow(
    clippy::needless_range_loop,
    reason = "loops over several slices at one index are what the compiler vectorises"
)]

mod aligned;
mod conv;
mod geometry;
mod gradient;
mod norm;
mod rowwise;
mod scratch;
mod tile;
mod vector;
mod winograd;

pub(crate) use aligned::Aligned;
pub(crate) use conv::{Epilogue, Packing, Rows};
pub(crate) use geometry::{Geometry, OFF};
pub(crate) use gradient::{WeightGradient, merge};
pub(crate) use norm::{GroupStats, NormBackward, Normed};
pub(crate) use rowwise::{Channelwise, NormSums, affine, affine_in_place, column_sums, masked_sums, norm_gradient};
pub(crate) use scratch::with_scratch;
pub(crate) use tile::Isa;

/// Boards that are worked on together, so that a panel of weights, once in the cache, serves about 512 rows.
pub(crate) fn boards_per_group(squares: usize) -> usize {
    (512 / squares).max(1)
}

/// `max(x, floor)` that keeps a NaN, which `f32::max` would hide.
#[inline(always)]
pub(crate) fn at_least(x: f32, floor: f32) -> f32 {
    if x < floor { floor } else { x }
}

#[cfg(test)]
mod tests;
