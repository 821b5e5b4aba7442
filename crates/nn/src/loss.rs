//! Batches and losses: cross-entropy over the legal moves only, and the value's error.
//!
//! All sums go through log-sum-exp, so that no logit, however large, makes a NaN; a probability of 0 in the target
//! leaves its term out instead of multiplying it (0 times infinity). A batch whose logits are themselves not finite
//! gives a loss that is not finite, which the trainer refuses.

mod policy;
mod value;

pub(crate) use policy::{PolicySums, policy_loss, policy_row, policy_sums};
pub(crate) use value::{ValueSums, value_gradient, value_loss, value_row, value_sums, wdl_softmax};

use games::Shape;

use crate::NnError;

/// A batch of samples, borrowed. All of it is from the mover's point of view.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    /// Samples.
    pub rows: usize,
    /// Inputs `[rows, squares, planes]`, channel-last.
    pub planes: &'a [f32],
    /// Where each row's legal moves start in `legal`; `rows + 1` numbers.
    pub legal_offsets: &'a [u32],
    /// Policy indices of the legal moves.
    pub legal: &'a [u16],
    /// Target probability of each legal move; a row that sums to 0 has no policy target.
    pub target: &'a [f32],
    /// Value targets, -1..1.
    pub value: &'a [f32],
    /// Weight of each value target; 0 for none.
    pub value_weight: &'a [f32],
}

impl BatchView<'_> {
    /// Refuses a batch whose parts do not fit each other or a network for `shape`.
    ///
    /// # Errors
    /// [`NnError::Batch`] says what does not fit.
    pub fn check(&self, shape: Shape) -> Result<(), NnError> {
        let error = |reason: String| Err(NnError::Batch(reason));
        if self.rows == 0 {
            return error("no rows".to_owned());
        }
        let lengths = [
            ("planes", self.planes.len(), self.rows * shape.inputs()),
            ("legal_offsets", self.legal_offsets.len(), self.rows + 1),
            ("target", self.target.len(), self.legal.len()),
            ("value", self.value.len(), self.rows),
            ("value_weight", self.value_weight.len(), self.rows),
        ];
        if let Some((name, found, expected)) = lengths.iter().find(|(_, found, expected)| found != expected) {
            return error(format!("`{name}` has {found} entries, expected {expected}"));
        }
        let ends = (self.legal_offsets[0], self.legal_offsets[self.rows] as usize);
        if ends != (0, self.legal.len()) || !self.legal_offsets.is_sorted() {
            return error("`legal_offsets` does not rise from 0 to the number of legal moves".to_owned());
        }
        if let Some(index) = self.legal.iter().find(|i| usize::from(**i) >= shape.actions()) {
            return error(format!("policy index {index} is beyond the {} actions", shape.actions()));
        }
        if let Some(t) = self.target.iter().find(|t| !(0.0..=1.001).contains(*t)) {
            return error(format!("target {t} is no probability"));
        }
        let values = self.value.iter().zip(self.value_weight);
        for (row, (value, weight)) in values.enumerate() {
            if !weight.is_finite() || *weight < 0.0 || (*weight > 0.0 && !(-1.001..=1.001).contains(value)) {
                return error(format!("row {row} has the value {value} with weight {weight}, expected -1..1 and >= 0"));
            }
        }
        Ok(())
    }

    /// The place of a row in `legal` and `target`.
    pub(crate) fn span(&self, row: usize) -> std::ops::Range<usize> {
        self.legal_offsets[row] as usize..self.legal_offsets[row + 1] as usize
    }
}
