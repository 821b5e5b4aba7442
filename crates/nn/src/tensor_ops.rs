//! The same operations as plain tensor operations, for CUDA and Metal (and, in the tests, on the CPU device).
//!
//! A convolution gathers its nine neighbours with one `index_select` and is then one matrix product. Its gradient is
//! ours too: candle's `conv2d` has a wrong weight gradient on Metal and slow gradients on CUDA, and a graph through
//! the gather would keep nine copies of every activation.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CudaStorage, CustomOp3, DType, Device, Layout, MetalStorage, Result, Shape, Tensor};

use crate::kernels::{Geometry, OFF};

/// The gather of a geometry: for each square and tap the index of the square read, `squares` for a zero.
#[derive(Clone)]
pub(crate) struct Gather {
    index: Tensor,
    squares: usize,
    taps: usize,
}

impl Gather {
    pub(crate) fn new(geometry: &Geometry, device: &Device) -> Result<Self> {
        let (squares, taps) = (geometry.squares(), geometry.taps());
        let places = (0..squares).flat_map(|square| (0..taps).map(move |tap| geometry.source(square, tap)));
        let index: Vec<u32> = places.map(|s| if s == OFF { squares as u32 } else { u32::from(s) }).collect();
        Ok(Gather { index: Tensor::from_vec(index, squares * taps, device)?, squares, taps })
    }

    /// `[boards, squares, channels]` to `[boards * squares, taps * channels]`.
    fn columns(&self, x: &Tensor) -> Result<Tensor> {
        let (boards, squares, channels) = x.dims3()?;
        if self.taps == 1 {
            return x.reshape((boards * squares, channels));
        }
        let zeros = Tensor::zeros((boards, 1, channels), DType::F32, x.device())?;
        let padded = Tensor::cat(&[x, &zeros], 1)?.contiguous()?;
        padded.index_select(&self.index, 1)?.reshape((boards * squares, self.taps * channels))
    }

    /// The convolution of `[boards, squares, inputs]` with `[outputs, inputs, k, k]`.
    pub(crate) fn conv(&self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        let x = x.contiguous()?;
        let y = self.product(&x.detach(), &w.detach())?;
        x.apply_op3(w, &y, Attach(self.clone()))
    }

    fn product(&self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        let (outputs, inputs) = (w.dim(0)?, w.dim(1)?);
        let matrix = w.reshape((outputs, inputs, self.taps))?.permute((2, 1, 0))?.contiguous()?;
        let y = self.columns(x)?.matmul(&matrix.reshape((self.taps * inputs, outputs))?)?;
        y.reshape((x.dim(0)?, self.squares, outputs))
    }
}

/// Gives a finished product its place in the graph: passes `y` on, and knows the gradients of `x` and `w`.
struct Attach(Gather);

impl CustomOp3 for Attach {
    fn name(&self) -> &'static str {
        "conv_product"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        y: &CpuStorage,
        layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Ok((y.try_clone(layout)?, layout.shape().clone()))
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        y: &CudaStorage,
        layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        Ok((y.try_clone(layout)?, layout.shape().clone()))
    }

    fn metal_fwd(
        &self,
        _: &MetalStorage,
        _: &Layout,
        _: &MetalStorage,
        _: &Layout,
        y: &MetalStorage,
        layout: &Layout,
    ) -> Result<(MetalStorage, Shape)> {
        Ok((y.try_clone(layout)?, layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _y: &Tensor,
        _result: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gather = &self.0;
        let (outputs, inputs) = (w.dim(0)?, w.dim(1)?);
        let (x_data, w_data, dy) = (x.detach(), w.detach(), dy.contiguous()?);
        let dx = match x.track_op() {
            true => {
                let flipped = w_data.reshape((outputs, inputs, gather.taps))?.flip(&[2])?.permute((2, 0, 1))?;
                let matrix = flipped.contiguous()?.reshape((gather.taps * outputs, inputs))?;
                Some(gather.columns(&dy)?.matmul(&matrix)?.reshape(x.shape())?)
            }
            false => None,
        };
        let rows = dy.dim(0)? * dy.dim(1)?;
        let columns = gather.columns(&x_data)?.t()?.contiguous()?;
        let dw = columns.matmul(&dy.reshape((rows, outputs))?)?;
        let dw = dw.reshape((gather.taps, inputs, outputs))?.permute((2, 1, 0))?.contiguous()?.reshape(w.shape())?;
        Ok((dx, Some(dw), None))
    }
}

/// Batch norm with the batch's own statistics; also gives the mean and the biased variance of each channel.
pub(crate) fn norm_train(z: &Tensor, gamma: &Tensor, beta: &Tensor, eps: f64) -> Result<(Tensor, Tensor, Tensor)> {
    let (boards, squares, channels) = z.dims3()?;
    let z = z.reshape((boards * squares, channels))?;
    let mean = z.mean(0)?;
    let centred = z.broadcast_sub(&mean)?;
    let var = centred.sqr()?.mean(0)?;
    let scale = (var.affine(1.0, eps)?.sqrt()?.recip()? * gamma)?;
    let y = centred.broadcast_mul(&scale)?.broadcast_add(beta)?;
    Ok((y.reshape((boards, squares, channels))?, mean.detach(), var.detach()))
}

/// Batch norm with running statistics.
pub(crate) fn norm_eval(
    z: &Tensor,
    gamma: &Tensor,
    beta: &Tensor,
    mean: &Tensor,
    var: &Tensor,
    eps: f64,
) -> Result<Tensor> {
    let scale = (var.affine(1.0, eps)?.sqrt()?.recip()? * gamma)?;
    let shift = (beta - (mean * &scale)?)?;
    z.broadcast_mul(&scale)?.broadcast_add(&shift)
}

/// `relu(y + residual)`, each part optional.
pub(crate) fn finish(y: Tensor, residual: Option<&Tensor>, relu: bool) -> Result<Tensor> {
    let y = match residual {
        Some(residual) => (y + residual)?,
        None => y,
    };
    if relu { y.relu() } else { Ok(y) }
}
