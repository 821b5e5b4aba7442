//! The network input of one position in 160 bytes: what the shuffle pool, the inference queue and the cache hold.

use crate::{Rng, Shape, Symmetry};

/// Most planes of zeros and ones that a game has (chess: 18).
pub const MAX_BIT_PLANES: usize = 18;
/// Most scalar planes that a game has (chess: 2).
pub const MAX_SCALAR_PLANES: usize = 2;

/// A position's planes. Training and play both go through this type, so their planes cannot differ.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Packed {
    /// Bit `rank * width + file` of each plane.
    pub bits: [u64; MAX_BIT_PLANES],
    /// The number on every square of each scalar plane.
    pub scalars: [f32; MAX_SCALAR_PLANES],
}

impl Packed {
    /// Writes the planes as `[plane][rank][file]`.
    ///
    /// # Panics
    /// If `out` is not `shape.inputs()` long.
    pub fn write_planes(&self, shape: Shape, out: &mut [f32]) {
        assert_eq!(out.len(), shape.inputs());
        let squares = shape.squares();
        for (plane, out) in out.chunks_exact_mut(squares).enumerate() {
            for (square, x) in out.iter_mut().enumerate() {
                *x = self.at(shape, plane, square);
            }
        }
    }

    /// Writes the planes channel-last, `[rank][file][plane]`: the layout of the networks.
    ///
    /// # Panics
    /// If `out` is not `shape.inputs()` long.
    pub fn write_channels_last(&self, shape: Shape, out: &mut [f32]) {
        assert_eq!(out.len(), shape.inputs());
        let planes = shape.planes();
        self.write_common(shape, &mut out[..planes]);
        let (mut filled, all) = (planes, out.len());
        while filled < all {
            let more = filled.min(all - filled);
            out.copy_within(..more, filled);
            filled += more;
        }
        self.write_stones(shape, out);
    }

    /// Appends what [`Packed::write_channels_last`] writes, without touching the memory before.
    pub fn append_channels_last(&self, shape: Shape, out: &mut Vec<f32>) {
        let start = out.len();
        out.reserve(shape.inputs());
        out.resize(start + shape.planes(), 0.0);
        self.write_common(shape, &mut out[start..]);
        let (mut filled, all) = (shape.planes(), shape.inputs());
        while filled < all {
            let more = filled.min(all - filled);
            out.extend_from_within(start..start + more);
            filled += more;
        }
        self.write_stones(shape, &mut out[start..]);
    }

    /// Writes what most squares have in common: the planes that are one number all over.
    fn write_common(&self, shape: Shape, square: &mut [f32]) {
        for (x, &bits) in square.iter_mut().zip(&self.bits[..shape.bit_planes]) {
            *x = f32::from(u8::from(bits == shape.board()));
        }
        square[shape.bit_planes..].copy_from_slice(&self.scalars[..shape.scalar_planes]);
    }

    /// Adds the other planes' ones, a few dozen.
    fn write_stones(&self, shape: Shape, out: &mut [f32]) {
        let planes = shape.planes();
        for (plane, &bits) in self.bits[..shape.bit_planes].iter().enumerate() {
            let mut left = if bits == shape.board() { 0 } else { bits };
            while left != 0 {
                out[left.trailing_zeros() as usize * planes + plane] = 1.0;
                left &= left - 1;
            }
        }
    }

    fn at(&self, shape: Shape, plane: usize, square: usize) -> f32 {
        if plane < shape.bit_planes {
            (self.bits[plane] >> square & 1) as f32
        } else {
            self.scalars[plane - shape.bit_planes]
        }
    }

    /// A hash of everything the planes contain, and of nothing else: the key of an evaluation cache.
    pub fn key(&self) -> u64 {
        let mut hash = 0x243F_6A88_85A3_08D3_u64;
        let scalars = u64::from(self.scalars[0].to_bits()) << 32 | u64::from(self.scalars[1].to_bits());
        for word in self.bits.iter().copied().chain([scalars]) {
            let wide = u128::from(hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            hash = (wide >> 64) as u64 ^ wide as u64 ^ hash.rotate_left(23);
        }
        hash ^ hash >> 29
    }

    /// The planes of the position seen through a board symmetry.
    #[must_use]
    pub fn transformed(&self, shape: Shape, symmetry: &Symmetry) -> Self {
        let mut out = *self;
        for plane in &mut out.bits[..shape.bit_planes] {
            let mut left = *plane;
            *plane = 0;
            while left != 0 {
                *plane |= 1 << symmetry.map[left.trailing_zeros() as usize];
                left &= left - 1;
            }
        }
        out
    }

    /// A random input of the right form, for tests and benchmarks of networks.
    pub fn random(shape: Shape, rng: &mut Rng) -> Self {
        let mut out = Packed::default();
        let mask = if shape.squares() == 64 { u64::MAX } else { (1 << shape.squares()) - 1 };
        out.bits[..shape.bit_planes].iter_mut().for_each(|b| *b = rng.next_u64() & rng.next_u64() & mask);
        out.scalars[..shape.scalar_planes].iter_mut().for_each(|s| *s = rng.unit() as f32);
        out
    }
}
