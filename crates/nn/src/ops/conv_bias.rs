//! Convolution with bias: the end of the policy head.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{slice, tensor, with_slices};
use crate::kernels::{Backward, Epilogue, Geometry, Isa, Packing, Rows, boards_per_group};

/// `conv(x, w) + b`: `x` is `[boards, squares, inputs]`, `w` `[outputs, inputs, k, k]`, `b` `[outputs]`.
pub(crate) fn conv_bias(geometry: Arc<Geometry>, x: &Tensor, w: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (outputs, inputs) = (w.dim(0)?, w.dim(1)?);
    x.contiguous()?.apply_op3(&w.contiguous()?, &b.contiguous()?, ConvBias { geometry, inputs, outputs })
}

struct ConvBias {
    geometry: Arc<Geometry>,
    inputs: usize,
    outputs: usize,
}

impl CustomOp3 for ConvBias {
    fn name(&self) -> &'static str {
        "conv_bias"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, w, b) = (slice(x, lx)?, slice(w, lw)?, slice(b, lb)?);
        let squares = self.geometry.squares();
        let boards = x.len() / (squares * self.inputs);
        if x.len() != boards * squares * self.inputs || b.len() != self.outputs {
            candle_core::bail!("conv_bias: {} inputs do not fit {squares} squares of {}", x.len(), self.inputs);
        }
        let packed = Packing::forward(Isa::best(), &self.geometry, self.inputs, self.outputs, w);
        let rows = boards_per_group(squares) * squares;
        let mut y = vec![0.0; boards * squares * self.outputs];
        y.par_chunks_mut(rows * self.outputs).zip(x.par_chunks(rows * self.inputs)).for_each(|(y, x)| {
            let epilogue = Epilogue { bias: Some(b), ..Epilogue::default() };
            let boards = x.len() / (squares * self.inputs);
            packed.apply(&self.geometry, boards, Rows { data: x, stride: self.inputs }, epilogue, y);
        });
        Ok((CpuStorage::F32(y), Shape::from((boards, squares, self.outputs))))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        b: &Tensor,
        _y: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (squares, outputs) = (self.geometry.squares(), self.outputs);
        let (result, db) = with_slices([x, w, dy], |[x_data, w, dy]| {
            let conv = Backward {
                isa: Isa::best(),
                geometry: &self.geometry,
                inputs: self.inputs,
                outputs,
                weight: w,
                x: x_data,
                want_input: x.track_op(),
            };
            let result = conv.run(|boards, stride, dz| {
                let dy = &dy[boards.start * squares * outputs..boards.end * squares * outputs];
                for (dz, dy) in dz.chunks_exact_mut(stride).zip(dy.chunks_exact(outputs)) {
                    dz[..outputs].copy_from_slice(dy);
                }
            });
            Ok((result, bias_gradient(dy, outputs, boards_per_group(squares) * squares)))
        })?;
        let dx = result.input.map(|dx| tensor(dx, x)).transpose()?;
        Ok((dx, Some(tensor(result.weight, w)?), Some(tensor(db, b)?)))
    }
}

/// Column sums, group of rows by group of rows in order.
fn bias_gradient(dy: &[f32], outputs: usize, rows: usize) -> Vec<f32> {
    let groups: Vec<Vec<f32>> = dy
        .par_chunks(rows * outputs)
        .map(|dy| {
            let mut sum = vec![0.0f32; outputs];
            for row in dy.chunks_exact(outputs) {
                for (s, x) in sum.iter_mut().zip(row) {
                    *s += x;
                }
            }
            sum
        })
        .collect();
    (0..outputs).map(|c| groups.iter().map(|g| f64::from(g[c])).sum::<f64>() as f32).collect()
}
