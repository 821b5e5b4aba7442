//! The two ends of squeeze-and-excitation: the mean over the board, and the gate with residual and ReLU.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{slice, tensor, with_slices};
use crate::kernels::at_least;

/// Mean over the squares: `[boards, squares, channels]` to `[boards, channels]`.
pub(crate) fn mean_squares(x: &Tensor) -> Result<Tensor> {
    let (_, squares, channels) = x.dims3()?;
    x.contiguous()?.apply_op1(Mean { squares, channels })
}

/// `relu(z * g + r)`: `z` and `r` are `[boards, squares, channels]`, `g` is `[boards, channels]`.
pub(crate) fn gate(z: &Tensor, g: &Tensor, r: &Tensor) -> Result<Tensor> {
    let (_, squares, channels) = z.dims3()?;
    z.contiguous()?.apply_op3(&g.contiguous()?, &r.contiguous()?, Gate { squares, channels })
}

struct Mean {
    squares: usize,
    channels: usize,
}

impl CustomOp1 for Mean {
    fn name(&self) -> &'static str {
        "mean_squares"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = slice(x, layout)?;
        let boards = x.len() / (self.squares * self.channels);
        let mut out = vec![0.0; boards * self.channels];
        for (out, x) in out.chunks_exact_mut(self.channels).zip(x.chunks_exact(self.squares * self.channels)) {
            mean_board(x, out);
        }
        Ok((CpuStorage::F32(out), Shape::from((boards, self.channels))))
    }

    fn bwd(&self, x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let board = self.squares * self.channels;
        let scale = 1.0 / self.squares as f32;
        let dx = with_slices([dy], |[dy]| {
            let mut dx = vec![0.0; dy.len() * self.squares];
            dx.par_chunks_mut(board).zip(dy.par_chunks(self.channels)).for_each(|(dx, dy)| {
                for row in dx.chunks_exact_mut(self.channels) {
                    for (dx, dy) in row.iter_mut().zip(dy) {
                        *dx = dy * scale;
                    }
                }
            });
            Ok(dx)
        })?;
        Ok(Some(tensor(dx, x)?))
    }
}

/// Mean of one board's rows: `[squares, channels]` to `[channels]`.
pub(crate) fn mean_board(x: &[f32], out: &mut [f32]) {
    let channels = out.len();
    out.fill(0.0);
    for row in x.chunks_exact(channels) {
        for (sum, x) in out.iter_mut().zip(row) {
            *sum += x;
        }
    }
    let scale = channels as f32 / x.len() as f32;
    out.iter_mut().for_each(|x| *x *= scale);
}

struct Gate {
    squares: usize,
    channels: usize,
}

impl CustomOp3 for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(
        &self,
        z: &CpuStorage,
        lz: &Layout,
        g: &CpuStorage,
        lg: &Layout,
        r: &CpuStorage,
        lr: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (z, g, r) = (slice(z, lz)?, slice(g, lg)?, slice(r, lr)?);
        let board = self.squares * self.channels;
        if z.len() != r.len() || z.len() != g.len() * self.squares {
            candle_core::bail!("gate: {} numbers, {} gates, {} residuals", z.len(), g.len(), r.len());
        }
        let mut y = vec![0.0; z.len()];
        y.par_chunks_mut(board).enumerate().for_each(|(i, y)| {
            let at = i * board..(i + 1) * board;
            gate_board(&z[at.clone()], &g[i * self.channels..][..self.channels], &r[at], y);
        });
        Ok((CpuStorage::F32(y), Shape::from((z.len() / board, self.squares, self.channels))))
    }

    fn bwd(
        &self,
        z: &Tensor,
        g: &Tensor,
        r: &Tensor,
        y: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (board, channels) = (self.squares * self.channels, self.channels);
        let (dz, dg, dr) = with_slices([z, g, y, dy], |[z, g, y, dy]| {
            let mut dz = vec![0.0; z.len()];
            let mut dr = vec![0.0; z.len()];
            let mut dg = vec![0.0; g.len()];
            let outputs = dz.par_chunks_mut(board).zip(dr.par_chunks_mut(board)).zip(dg.par_chunks_mut(channels));
            outputs.enumerate().for_each(|(i, ((dz, dr), dg))| {
                let at = i * board..(i + 1) * board;
                let masked = dy[at.clone()].iter().zip(&y[at.clone()]).map(|(dy, y)| if *y > 0.0 { *dy } else { 0.0 });
                dr.iter_mut().zip(masked).for_each(|(dr, dm)| *dr = dm);
                let g = &g[i * channels..][..channels];
                let rows = dz.chunks_exact_mut(channels).zip(dr.chunks_exact(channels));
                for ((dz, dm), z) in rows.zip(z[at].chunks_exact(channels)) {
                    for (((dz, dg), (dm, z)), g) in dz.iter_mut().zip(dg.iter_mut()).zip(dm.iter().zip(z)).zip(g) {
                        *dz = dm * g;
                        *dg += dm * z;
                    }
                }
            });
            Ok((dz, dg, dr))
        })?;
        Ok((Some(tensor(dz, z)?), Some(tensor(dg, g)?), Some(tensor(dr, r)?)))
    }
}

/// One board of the gate.
pub(crate) fn gate_board(z: &[f32], g: &[f32], r: &[f32], y: &mut [f32]) {
    let channels = g.len();
    let rows = z.chunks_exact(channels).zip(r.chunks_exact(channels));
    for (y, (z, r)) in y.chunks_exact_mut(channels).zip(rows) {
        for ((y, r), (z, g)) in y.iter_mut().zip(r).zip(z.iter().zip(g)) {
            *y = at_least(z * g + r, 0.0);
        }
    }
}
