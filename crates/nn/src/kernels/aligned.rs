//! Buffers of f32 that start on a cache line, so that no vector load of packed weights crosses one.

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A fixed-length buffer of f32, 64-byte aligned, initially zero.
#[derive(Clone)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Aligned { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `Line` is `repr(C)` over 16 f32 with no padding, and `lines` holds at least `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
