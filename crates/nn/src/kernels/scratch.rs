//! Memory that a thread keeps for the intermediate results of the kernels, so that they allocate nothing.

use std::cell::RefCell;

use super::Aligned;

thread_local! {
    static FREE: RefCell<Vec<Aligned>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with `len` numbers, whatever they are, that start on a cache line. Calls may be nested.
pub(crate) fn with_scratch<T>(len: usize, f: impl FnOnce(&mut [f32]) -> T) -> T {
    // A stack: a call that is nested as deep as one before finds the buffer that was large enough for it.
    let mut buffer = FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Aligned::zeros(0));
    if buffer.len() < len {
        buffer = Aligned::zeros(len);
    }
    let result = f(&mut buffer[..len]);
    FREE.with_borrow_mut(|free| free.push(buffer));
    result
}
