//! Samples as the arrays that a network takes.

use games::{Shape, Symmetry};

use crate::sample::Sample;

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
    /// Lays samples out, each seen through the symmetry of the board that `symmetry` gives for it.
    pub(super) fn new<'s>(
        shape: Shape,
        samples: &[Sample<'_>],
        mut symmetry: impl FnMut() -> Option<&'s Symmetry>,
    ) -> Batch {
        let rows = samples.len();
        let entries = samples.iter().map(|s| s.legal().len()).sum();
        let mut batch = Batch {
            rows,
            planes: Vec::with_capacity(rows * shape.inputs()),
            legal_offsets: Vec::with_capacity(rows + 1),
            legal: Vec::with_capacity(entries),
            target: vec![0.0; entries],
            value: samples.iter().map(|s| s.head.value.unwrap_or(0.0)).collect(),
            value_weight: samples.iter().map(|s| f32::from(u8::from(s.head.value.is_some()))).collect(),
        };
        for sample in samples {
            let (start, legal) = (batch.legal.len(), sample.legal());
            batch.legal_offsets.push(start as u32);
            batch.legal.extend_from_slice(legal);
            for (index, probability) in sample.target() {
                batch.target[start + legal.partition_point(|l| *l < index)] += probability;
            }
        }
        batch.legal_offsets.push(entries as u32);
        for (row, sample) in samples.iter().enumerate() {
            let mut packed = sample.head.packed;
            if let Some(symmetry) = symmetry() {
                packed = packed.transformed(shape, symmetry);
                batch.transform(shape, row, symmetry);
            }
            packed.append_channels_last(shape, &mut batch.planes);
        }
        batch
    }

    /// Moves a row's policy entries with the board, and orders them again.
    fn transform(&mut self, shape: Shape, row: usize, symmetry: &Symmetry) {
        let entries = self.legal_offsets[row] as usize..self.legal_offsets[row + 1] as usize;
        let (legal, target) = (&mut self.legal[entries.clone()], &mut self.target[entries]);
        let image = |(index, p): (&u16, &f32)| (symmetry.index(shape, *index), *p);
        let mut moved: Vec<(u16, f32)> = legal.iter().zip(&*target).map(image).collect();
        moved.sort_unstable_by_key(|(index, _)| *index);
        for ((legal, target), entry) in legal.iter_mut().zip(target).zip(moved) {
            (*legal, *target) = entry;
        }
    }
}
