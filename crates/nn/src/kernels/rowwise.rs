//! Loops over rows of channels, `[rows, channels]`: everything of a training step that is no product of matrices.
//!
//! Each loop goes down a few columns at a time, with what belongs to the columns in registers.

use super::tile::Isa;
#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, Avx512};
use super::vector::{Lanes, Vector};

/// Columns that are worked on together, in vectors: enough sums side by side to hide the time of an addition.
const TOGETHER: usize = 4;

/// A loop over some columns, starting at `c`.
trait Columns {
    /// # Safety
    /// The columns `c..c + N * V::LANES` must exist in all rows; else as for all operations of [`Vector`].
    unsafe fn run<V: Vector, const N: usize>(&self, c: usize);
}

/// Runs a loop over all columns.
///
/// # Safety
/// As for [`Columns::run`] of all columns.
#[inline(always)]
unsafe fn all_columns<V: Vector>(columns: &impl Columns, channels: usize) {
    let mut c = 0;
    // SAFETY: passed on; the columns end below `channels`.
    unsafe {
        while c + TOGETHER * V::LANES <= channels {
            columns.run::<V, TOGETHER>(c);
            c += TOGETHER * V::LANES;
        }
        while c + V::LANES <= channels {
            columns.run::<V, 1>(c);
            c += V::LANES;
        }
        while c < channels {
            columns.run::<Lanes<1>, 1>(c);
            c += 1;
        }
    }
}

/// Runs a loop over all columns with an instruction set.
///
/// # Safety
/// As for [`Columns::run`] of all columns; the processor must have the instructions.
unsafe fn run(isa: Isa, columns: &impl Columns, channels: usize) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(columns: &impl Columns, channels: usize) {
        unsafe { all_columns::<Avx512>(columns, channels) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(columns: &impl Columns, channels: usize) {
        unsafe { all_columns::<Avx2>(columns, channels) }
    }
    // SAFETY: passed on.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(columns, channels),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(columns, channels),
            Isa::Portable => all_columns::<Lanes<8>>(columns, channels),
        }
    }
}

#[inline(always)]
unsafe fn load<V: Vector, const N: usize>(p: *const f32) -> [V; N] {
    // SAFETY: the caller's pointer is valid for N vectors.
    unsafe {
        let mut out = [V::splat(0.0); N];
        for v in 0..N {
            out[v] = V::load(p.add(v * V::LANES));
        }
        out
    }
}

#[inline(always)]
unsafe fn store<V: Vector, const N: usize>(x: [V; N], p: *mut f32) {
    // SAFETY: the caller's pointer is valid for N vectors.
    unsafe {
        for v in 0..N {
            x[v].store(p.add(v * V::LANES));
        }
    }
}

struct Affine {
    x: *const f32,
    scale: *const f32,
    shift: *const f32,
    residual: *const f32,
    relu: bool,
    out: *mut f32,
    rows: usize,
    channels: usize,
}

impl Columns for Affine {
    #[inline(always)]
    unsafe fn run<V: Vector, const N: usize>(&self, c: usize) {
        // SAFETY: the columns exist, by the contract; `affine` and `affine_in_place` have checked the rows.
        unsafe {
            let (scale, shift) = (load::<V, N>(self.scale.add(c)), load::<V, N>(self.shift.add(c)));
            for row in 0..self.rows {
                let at = row * self.channels + c;
                let mut y = load::<V, N>(self.x.add(at));
                for v in 0..N {
                    y[v] = y[v].fma(scale[v], shift[v]);
                }
                if !self.residual.is_null() {
                    let r = load::<V, N>(self.residual.add(at));
                    for v in 0..N {
                        y[v] = y[v].add(r[v]);
                    }
                }
                if self.relu {
                    for v in 0..N {
                        y[v] = y[v].relu();
                    }
                }
                store(y, self.out.add(at));
            }
        }
    }
}

/// A scale and a shift for each channel.
#[derive(Clone, Copy)]
pub(crate) struct Channelwise<'a> {
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
}

/// `out = x * scale + shift + residual`, with negative results cut off if `relu`.
pub(crate) fn affine(isa: Isa, x: &[f32], by: Channelwise<'_>, residual: Option<&[f32]>, relu: bool, out: &mut [f32]) {
    let channels = by.scale.len();
    assert!(by.shift.len() == channels && x.len() == out.len() && x.len().is_multiple_of(channels));
    assert!(residual.is_none_or(|r| r.len() == x.len()));
    let columns = Affine {
        x: x.as_ptr(),
        scale: by.scale.as_ptr(),
        shift: by.shift.as_ptr(),
        residual: residual.map_or(std::ptr::null(), <[f32]>::as_ptr),
        relu,
        out: out.as_mut_ptr(),
        rows: x.len() / channels,
        channels,
    };
    // SAFETY: the lengths were checked above; an `Isa` other than `Portable` is only made by `Isa::available`.
    unsafe { run(isa, &columns, channels) }
}

/// [`affine`] with the result in the place of `x`.
pub(crate) fn affine_in_place(isa: Isa, x: &mut [f32], by: Channelwise<'_>, residual: Option<&[f32]>, relu: bool) {
    let channels = by.scale.len();
    assert!(by.shift.len() == channels && x.len().is_multiple_of(channels));
    assert!(residual.is_none_or(|r| r.len() == x.len()));
    let out = x.as_mut_ptr();
    let columns = Affine {
        x: out,
        scale: by.scale.as_ptr(),
        shift: by.shift.as_ptr(),
        residual: residual.map_or(std::ptr::null(), <[f32]>::as_ptr),
        relu,
        out,
        rows: x.len() / channels,
        channels,
    };
    // SAFETY: as in `affine`; every number is read before it is written, and only once.
    unsafe { run(isa, &columns, channels) }
}

struct Moments {
    x: *const f32,
    mean: *mut f32,
    squares: *mut f32,
    rows: usize,
    channels: usize,
}

impl Columns for Moments {
    #[inline(always)]
    unsafe fn run<V: Vector, const N: usize>(&self, c: usize) {
        // SAFETY: the columns exist, by the contract; `moments` has checked the rows.
        unsafe {
            let mut mean = [V::splat(0.0); N];
            for row in 0..self.rows {
                let x = load::<V, N>(self.x.add(row * self.channels + c));
                for v in 0..N {
                    mean[v] = mean[v].add(x[v]);
                }
            }
            for m in &mut mean {
                *m = m.mul(V::splat(1.0 / self.rows as f32));
            }
            let mut squares = [V::splat(0.0); N];
            for row in 0..self.rows {
                let x = load::<V, N>(self.x.add(row * self.channels + c));
                for v in 0..N {
                    let d = x[v].sub(mean[v]);
                    squares[v] = d.fma(d, squares[v]);
                }
            }
            store(mean, self.mean.add(c));
            store(squares, self.squares.add(c));
        }
    }
}

/// Mean and sum of squared deviations of each channel.
pub(crate) fn moments(isa: Isa, x: &[f32], mean: &mut [f32], squares: &mut [f32]) {
    let channels = mean.len();
    assert!(squares.len() == channels && x.len().is_multiple_of(channels));
    let (rows, x) = (x.len() / channels, x.as_ptr());
    let columns = Moments { x, mean: mean.as_mut_ptr(), squares: squares.as_mut_ptr(), rows, channels };
    // SAFETY: as in `affine`.
    unsafe { run(isa, &columns, channels) }
}

struct ColumnSums {
    x: *const f32,
    sums: *mut f32,
    rows: usize,
    channels: usize,
}

impl Columns for ColumnSums {
    #[inline(always)]
    unsafe fn run<V: Vector, const N: usize>(&self, c: usize) {
        // SAFETY: the columns exist, by the contract; `column_sums` has checked the rows.
        unsafe {
            let mut sums = load::<V, N>(self.sums.add(c));
            for row in 0..self.rows {
                let x = load::<V, N>(self.x.add(row * self.channels + c));
                for v in 0..N {
                    sums[v] = sums[v].add(x[v]);
                }
            }
            store(sums, self.sums.add(c));
        }
    }
}

/// Adds the rows to `sums`.
pub(crate) fn column_sums(isa: Isa, x: &[f32], sums: &mut [f32]) {
    let channels = sums.len();
    assert!(x.len().is_multiple_of(channels));
    let columns = ColumnSums { x: x.as_ptr(), sums: sums.as_mut_ptr(), rows: x.len() / channels, channels };
    // SAFETY: as in `affine`.
    unsafe { run(isa, &columns, channels) }
}

struct MaskedSums {
    d: *const f32,
    y: *const f32,
    z: *const f32,
    mean: *const f32,
    out: *mut f32,
    plain: *mut f32,
    centred: *mut f32,
    rows: usize,
    channels: usize,
}

impl Columns for MaskedSums {
    #[inline(always)]
    unsafe fn run<V: Vector, const N: usize>(&self, c: usize) {
        // SAFETY: the columns exist, by the contract; `masked_sums` has checked the rows.
        unsafe {
            let mean = load::<V, N>(self.mean.add(c));
            let mut plain = load::<V, N>(self.plain.add(c));
            let mut centred = load::<V, N>(self.centred.add(c));
            for row in 0..self.rows {
                let at = row * self.channels + c;
                let mut d = load::<V, N>(self.d.add(at));
                if !self.y.is_null() {
                    let y = load::<V, N>(self.y.add(at));
                    for v in 0..N {
                        d[v] = d[v].where_positive(y[v]);
                    }
                }
                let z = load::<V, N>(self.z.add(at));
                for v in 0..N {
                    plain[v] = plain[v].add(d[v]);
                    centred[v] = d[v].fma(z[v].sub(mean[v]), centred[v]);
                }
                store(d, self.out.add(at));
            }
            store(plain, self.plain.add(c));
            store(centred, self.centred.add(c));
        }
    }
}

/// The sums over a batch that the gradient of a norm needs, for each channel.
#[derive(Clone, Debug)]
pub(crate) struct NormSums {
    /// Of the gradient of the norm's output.
    pub(crate) plain: Vec<f32>,
    /// Of that times the deviation of the norm's input from its mean.
    pub(crate) centred: Vec<f32>,
}

impl NormSums {
    pub(crate) fn zeros(channels: usize) -> Self {
        NormSums { plain: vec![0.0; channels], centred: vec![0.0; channels] }
    }
}

/// Writes the gradient `d`, masked by where `y` is positive if there was a ReLU, to `out` and adds to the sums. `z` is
/// the norm's input and `mean` its mean.
pub(crate) fn masked_sums(
    isa: Isa,
    d: &[f32],
    y: Option<&[f32]>,
    z: &[f32],
    mean: &[f32],
    out: &mut [f32],
    sums: &mut NormSums,
) {
    let channels = mean.len();
    assert!(d.len() == out.len() && z.len() == out.len() && out.len().is_multiple_of(channels));
    assert!(y.is_none_or(|y| y.len() == out.len()));
    assert!(sums.plain.len() == channels && sums.centred.len() == channels);
    let columns = MaskedSums {
        d: d.as_ptr(),
        y: y.map_or(std::ptr::null(), <[f32]>::as_ptr),
        z: z.as_ptr(),
        mean: mean.as_ptr(),
        rows: out.len() / channels,
        out: out.as_mut_ptr(),
        plain: sums.plain.as_mut_ptr(),
        centred: sums.centred.as_mut_ptr(),
        channels,
    };
    // SAFETY: as in `affine`.
    unsafe { run(isa, &columns, channels) }
}

struct NormGradient {
    d: *const f32,
    z: *const f32,
    a: *const f32,
    b: *const f32,
    c: *const f32,
    out: *mut f32,
    rows: usize,
    channels: usize,
    stride: usize,
}

impl Columns for NormGradient {
    #[inline(always)]
    unsafe fn run<V: Vector, const N: usize>(&self, c: usize) {
        // SAFETY: the columns exist, by the contract; `norm_gradient` has checked the rows.
        unsafe {
            let (a, b) = (load::<V, N>(self.a.add(c)), load::<V, N>(self.b.add(c)));
            let shift = load::<V, N>(self.c.add(c));
            for row in 0..self.rows {
                let at = row * self.channels + c;
                let (mut d, z) = (load::<V, N>(self.d.add(at)), load::<V, N>(self.z.add(at)));
                for v in 0..N {
                    d[v] = d[v].fma(a[v], z[v].fma(b[v], shift[v]));
                }
                store(d, self.out.add(row * self.stride + c));
            }
        }
    }
}

/// `out = a * d + b * z + c`, into rows `stride` apart.
pub(crate) fn norm_gradient(isa: Isa, d: &[f32], z: &[f32], [a, b, c]: [&[f32]; 3], out: &mut [f32], stride: usize) {
    let channels = a.len();
    let rows = d.len() / channels;
    assert!(b.len() == channels && c.len() == channels && d.len() == z.len() && d.len().is_multiple_of(channels));
    assert!(channels <= stride && out.len() >= rows * stride);
    let (d, z, out) = (d.as_ptr(), z.as_ptr(), out.as_mut_ptr());
    let columns = NormGradient { d, z, a: a.as_ptr(), b: b.as_ptr(), c: c.as_ptr(), out, rows, channels, stride };
    // SAFETY: as in `affine`.
    unsafe { run(isa, &columns, channels) }
}
