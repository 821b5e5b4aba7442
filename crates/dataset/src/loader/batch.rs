//! Samples as the arrays that a network takes.

use games::{Shape, Symmetry};
use rayon::prelude::*;

use crate::Sample;

/// A batch of `rows` samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Samples.
    pub rows: usize,
    /// Inputs, `[rows, squares, planes]` (channel last), in each mover's frame.
    pub planes: Vec<f32>,
    /// Where each row's entries begin in `legal` and `target`; `rows + 1` numbers.
    pub legal_offsets: Vec<u32>,
    /// Policy indices of the legal moves, ascending in each row.
    pub legal: Vec<u16>,
    /// The policy target of each entry of `legal`; a row sums to 1, or to 0 without a policy target.
    pub target: Vec<f32>,
    /// Value targets, mover's view, -1..1; 0 where there is none.
    pub value: Vec<f32>,
    /// 1 where `value` counts, 0 where there is no value target.
    pub value_weight: Vec<f32>,
}

impl Batch {
    /// Lays samples out; planes are filled on the threads of the current rayon pool.
    pub fn new(shape: Shape, samples: &[Sample]) -> Self {
        let mut planes = vec![0.0; samples.len() * shape.inputs()];
        planes
            .par_chunks_mut(shape.inputs())
            .with_min_len(32)
            .zip(samples)
            .for_each(|(out, sample)| sample.packed.write_channels_last(shape, out));
        let entries = samples.iter().map(|s| s.legal.len()).sum();
        let mut batch = Batch {
            rows: samples.len(),
            planes,
            legal_offsets: vec![0],
            legal: Vec::with_capacity(entries),
            target: Vec::with_capacity(entries),
            value: samples.iter().map(|s| s.value.unwrap_or(0.0)).collect(),
            value_weight: samples.iter().map(|s| f32::from(u8::from(s.value.is_some()))).collect(),
        };
        for sample in samples {
            let mut targets = sample.target.iter().peekable();
            for &index in &sample.legal {
                let mut probability = 0.0;
                while let Some((_, p)) = targets.next_if(|(i, _)| *i == index) {
                    probability += p;
                }
                batch.legal.push(index);
                batch.target.push(probability);
            }
            batch.legal_offsets.push(batch.legal.len() as u32);
        }
        batch
    }
}

/// The sample seen through a symmetry of the board.
pub(super) fn transform(sample: &mut Sample, shape: Shape, symmetry: &Symmetry) {
    sample.packed = sample.packed.transformed(shape, symmetry);
    for index in &mut sample.legal {
        *index = symmetry.index(shape, *index);
    }
    sample.legal.sort_unstable();
    for (index, _) in &mut sample.target {
        *index = symmetry.index(shape, *index);
    }
    sample.target.sort_unstable_by_key(|(index, _)| *index);
}
