//! Access to the numbers of tensors in main memory.

use candle_core::{CpuStorage, Layout, Result, Storage, Tensor};

/// The numbers of a contiguous f32 argument.
fn slice<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => candle_core::bail!("the operation needs contiguous arguments"),
    }
}

/// Calls `f` with the numbers of tensors that lie in main memory.
pub(crate) fn with_slices<T, const N: usize>(
    tensors: [&Tensor; N],
    f: impl FnOnce([&[f32]; N]) -> Result<T>,
) -> Result<T> {
    let tensors = tensors.iter().map(|t| t.contiguous()).collect::<Result<Vec<_>>>()?;
    let guards: Vec<_> = tensors.iter().map(Tensor::storage_and_layout).collect();
    let mut slices: [&[f32]; N] = [&[]; N];
    for (place, (storage, layout)) in slices.iter_mut().zip(&guards) {
        match &**storage {
            Storage::Cpu(storage) => *place = slice(storage, layout)?,
            _ => candle_core::bail!("the operation runs on the CPU only"),
        }
    }
    f(slices)
}
