//! Convolution, batch norm with the batch's own statistics, optional residual, optional ReLU.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{slice, tensor, with_slices};
use crate::kernels::{
    Backward, Epilogue, Geometry, GroupStats, Isa, NormForward, Normed, Packing, Rows, boards_per_group, norm_backward,
    norm_forward,
};

/// What the operation computes.
#[derive(Clone)]
pub(crate) struct ConvNormSpec {
    /// 3x3 or pointwise.
    pub(crate) geometry: Arc<Geometry>,
    /// Input channels.
    pub(crate) inputs: usize,
    /// Output channels.
    pub(crate) outputs: usize,
    /// Whether it ends in a ReLU.
    pub(crate) relu: bool,
    /// Added to the variance.
    pub(crate) eps: f64,
}

/// `y = relu(norm(conv(x, w)) + residual)` and the statistics of the batch.
///
/// `x` is `[boards, squares, inputs]`, `w` `[outputs, inputs, k, k]`, `gamma` and `beta` `[outputs]`.
pub(crate) fn conv_norm(
    spec: ConvNormSpec,
    x: &Tensor,
    w: &Tensor,
    gamma: &Tensor,
    beta: &Tensor,
    residual: Option<&Tensor>,
) -> Result<(Tensor, Normed)> {
    // candle's operations take at most three tensors: the parameters travel as one.
    let params = Tensor::cat(&[&w.flatten_all()?, gamma, beta], 0)?;
    let saved = Arc::new(OnceLock::new());
    let op = ConvNorm { spec, saved: saved.clone() };
    let x = x.contiguous()?;
    let y = match residual {
        Some(residual) => x.apply_op3(&params, &residual.contiguous()?, op)?,
        None => x.apply_op2(&params, op)?,
    };
    match saved.get() {
        Some(saved) => Ok((y, saved.stats.clone())),
        None => candle_core::bail!("conv_norm runs on the CPU only"),
    }
}

struct Saved {
    /// What the convolution gave.
    z: Vec<f32>,
    stats: Normed,
}

struct ConvNorm {
    spec: ConvNormSpec,
    saved: Arc<OnceLock<Saved>>,
}

impl ConvNorm {
    fn piece(&self) -> usize {
        let squares = self.spec.geometry.squares();
        boards_per_group(squares) * squares * self.spec.outputs
    }

    fn weights(&self) -> usize {
        self.spec.geometry.taps() * self.spec.inputs * self.spec.outputs
    }

    fn forward(&self, x: &[f32], params: &[f32], residual: Option<&[f32]>) -> Result<(CpuStorage, Shape)> {
        let ConvNormSpec { geometry, inputs, outputs, relu, eps } = &self.spec;
        let (squares, piece) = (geometry.squares(), self.piece());
        let boards = x.len() / (squares * inputs);
        if boards == 0 || x.len() != boards * squares * inputs || params.len() != self.weights() + 2 * outputs {
            candle_core::bail!("conv_norm: {} inputs do not fit {squares} squares of {inputs} channels", x.len());
        }
        if residual.is_some_and(|r| r.len() != boards * squares * outputs) {
            candle_core::bail!("conv_norm: the residual does not have the output's shape");
        }
        let (w, norm) = params.split_at(self.weights());
        let (gamma, beta) = norm.split_at(*outputs);
        let packed = Packing::forward(Isa::best(), geometry, *inputs, *outputs, w);
        let mut z = vec![0.0; boards * squares * outputs];
        let groups: Vec<GroupStats> = z
            .par_chunks_mut(piece)
            .zip(x.par_chunks(piece / outputs * inputs))
            .map(|(z, x)| {
                let rows = Rows { data: x, stride: *inputs };
                packed.apply(geometry, x.len() / (squares * inputs), rows, Epilogue::default(), z);
                GroupStats::of(z, *outputs)
            })
            .collect();
        let stats = GroupStats::merge(&groups, *outputs, *eps);
        let y = norm_forward(&NormForward { stats: &stats, gamma, beta, residual, relu: *relu }, &z, piece);
        // A second run of the same operation would give the same numbers.
        let _ = self.saved.set(Saved { z, stats });
        Ok((CpuStorage::F32(y), Shape::from((boards, squares, *outputs))))
    }

    /// Gradients of input, parameters and residual.
    fn backward(&self, x: &Tensor, params: &Tensor, y: &Tensor, dy: &Tensor, residual: bool) -> Result<Gradients> {
        let Some(saved) = self.saved.get() else { candle_core::bail!("conv_norm: backward before forward") };
        let ConvNormSpec { geometry, inputs, outputs, relu, .. } = &self.spec;
        let squares = geometry.squares();
        with_slices([x, params, y, dy], |[x_data, p, y_data, dy]| {
            let (w, norm) = p.split_at(self.weights());
            let y_data = relu.then_some(y_data);
            let norm = norm_backward(&saved.stats, &norm[..*outputs], &saved.z, y_data, dy, self.piece());
            let conv = Backward {
                isa: Isa::best(),
                geometry,
                inputs: *inputs,
                outputs: *outputs,
                weight: w,
                x: x_data,
                want_input: x.track_op(),
            };
            let result = conv.run(|boards, stride, dz| {
                norm.fill(boards.start * squares..boards.end * squares, stride, dz);
            });
            let mut dp = result.weight;
            dp.extend_from_slice(&norm.gamma);
            dp.extend_from_slice(&norm.beta);
            Ok(Gradients {
                input: result.input.map(|dx| tensor(dx, x)).transpose()?,
                params: tensor(dp, params)?,
                residual: residual.then(|| tensor(norm.residual(), y)).transpose()?,
            })
        })
    }
}

struct Gradients {
    input: Option<Tensor>,
    params: Tensor,
    residual: Option<Tensor>,
}

impl CustomOp2 for ConvNorm {
    fn name(&self) -> &'static str {
        "conv_norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, p: &CpuStorage, lp: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(slice(x, lx)?, slice(p, lp)?, None)
    }

    fn bwd(&self, x: &Tensor, p: &Tensor, y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradients = self.backward(x, p, y, dy, false)?;
        Ok((gradients.input, Some(gradients.params)))
    }
}

impl CustomOp3 for ConvNorm {
    fn name(&self) -> &'static str {
        "conv_norm_residual"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        p: &CpuStorage,
        lp: &Layout,
        r: &CpuStorage,
        lr: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(slice(x, lx)?, slice(p, lp)?, Some(slice(r, lr)?))
    }

    fn bwd(
        &self,
        x: &Tensor,
        p: &Tensor,
        r: &Tensor,
        y: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradients = self.backward(x, p, y, dy, r.track_op())?;
        Ok((gradients.input, Some(gradients.params), gradients.residual))
    }
}
