//! Forward and training steps of a network.

use games::{Chess, Game, Packed};
use nn::{BatchView, Executor, Model, Trainer, TrainerConfig};
use rayon::prelude::*;
use tabiya::BoxError;

use crate::{cores, network, positions, rate};

/// A batch as a loader gives it: planes, legal moves, and a move to learn for each position.
pub(crate) struct TrainingBatch {
    rows: usize,
    planes: Vec<f32>,
    offsets: Vec<u32>,
    legal: Vec<u16>,
    target: Vec<f32>,
    value: Vec<f32>,
    value_weight: Vec<f32>,
}

impl TrainingBatch {
    pub(crate) fn new(rows: usize) -> Self {
        let inputs = Chess::SHAPE.inputs();
        let (mut planes, mut legal, mut offsets) = (vec![0.0; rows * inputs], Vec::new(), vec![0]);
        for (game, row) in positions(rows).iter().zip(planes.chunks_exact_mut(inputs)) {
            game.pack().write_channels_last(Chess::SHAPE, row);
            legal.extend(game.legal_moves().iter().map(|m| game.index(*m)));
            offsets.push(legal.len() as u32);
        }
        let mut target = vec![0.0; legal.len()];
        offsets[..rows].iter().for_each(|o| target[*o as usize] = 1.0);
        TrainingBatch { rows, planes, offsets, legal, target, value: vec![0.0; rows], value_weight: vec![1.0; rows] }
    }

    pub(crate) fn view(&self) -> BatchView<'_> {
        BatchView {
            rows: self.rows,
            planes: &self.planes,
            legal_offsets: &self.offsets,
            legal: &self.legal,
            target: &self.target,
            value: &self.value,
            value_weight: &self.value_weight,
        }
    }
}

/// One line for each batch size.
pub(crate) fn net(
    blocks: usize,
    channels: usize,
    batches: &[usize],
    train: &[usize],
    seconds: f64,
) -> Result<String, BoxError> {
    let mut sizes = [batches, train].concat();
    sizes.sort_unstable();
    sizes.dedup();
    let model = Model::from_network(&network(blocks, channels)?)?;
    let mut lines = Vec::new();
    for batch in sizes {
        let mut line = format!("tabiya {blocks}x{channels} batch {batch}:");
        if batches.contains(&batch) {
            line += &format!(" forward {:.0}/s", forward(&model, batch, seconds)?);
        }
        if train.contains(&batch) {
            let (data, mut trainer) =
                (TrainingBatch::new(batch), Trainer::new(network(blocks, channels)?, TrainerConfig::default())?);
            let steps = rate(seconds, || trainer.step(&data.view(), 1e-4).map(|_| ()))?;
            line += &format!(" train {:.0}/s", steps * batch as f64);
        }
        lines.push(line);
    }
    Ok(lines.join("\n"))
}

/// Batches one after another, each shared out among the cores; a single position has nothing to share.
fn forward(model: &Model, batch: usize, seconds: f64) -> Result<f64, BoxError> {
    let inputs: Vec<Packed> = positions(batch).iter().map(Game::pack).collect();
    let share = batch.div_ceil(cores());
    let mut parts: Vec<(Executor, &[Packed])> =
        inputs.chunks(share).map(|part| (model.executor(part.len()), part)).collect();
    let run = |(executor, part): &mut (Executor, &[Packed])| executor.evaluate(part).map(|_| ());
    let steps = match parts.as_mut_slice() {
        [one] => rate(seconds, || run(one))?,
        // On a thread of the pool, so that a step is handed over to the other threads only.
        parts => rayon::ThreadPoolBuilder::new()
            .build()?
            .install(|| rate(seconds, || parts.par_iter_mut().try_for_each(run)))?,
    };
    Ok(steps * batch as f64)
}
