//! candle autograd operations over the CPU kernels: convolution with batch norm, convolution with bias, the two halves
//! of squeeze-and-excitation.
//!
//! Each has its own backward pass. A convolution and its norm are one operation because candle pays a zero fill and an
//! addition for every edge of the graph: half the edges, and the gradient between the two never reaches memory.

mod conv_bias;
mod conv_norm;
mod squeeze;

pub(crate) use conv_bias::conv_bias;
pub(crate) use conv_norm::{ConvNormSpec, conv_norm};
pub(crate) use squeeze::{gate, gate_board, mean_board, mean_squares};

use candle_core::{CpuStorage, Layout, Result, Storage, Tensor};

/// The numbers of a contiguous f32 argument.
pub(crate) fn slice<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
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

/// A tensor of the same shape as another, in main memory too.
pub(crate) fn tensor(data: Vec<f32>, like: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(data, like.shape(), like.device())
}

#[cfg(test)]
mod tests;
