//! What the network thought of positions lately: each iteration comes back to the nodes of the one before.

use super::{Policy, Thought};
use crate::board::Board;

/// Thoughts that are kept, about a MiB.
pub(super) const SLOTS: usize = 1 << 12;

/// The thoughts of one network. A slot holds the last position that fell into it.
#[derive(Default)]
pub(crate) struct Thoughts {
    /// None before the first question, so that an engine without a policy pays nothing.
    slots: Vec<Option<(u64, Thought)>>,
}

impl Thoughts {
    /// Forgets all, as has to be done before another network is asked.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }

    /// What `policy` makes of a position, from memory where it is there.
    pub(crate) fn of(&mut self, policy: &Policy, board: &Board) -> &Thought {
        self.slots.resize_with(SLOTS, || None);
        let key = board.key();
        let slot = &mut self.slots[key as usize % SLOTS];
        if slot.as_ref().is_some_and(|(known, _)| *known != key) {
            *slot = None;
        }
        &slot.get_or_insert_with(|| (key, policy.consider_board(board))).1
    }
}
