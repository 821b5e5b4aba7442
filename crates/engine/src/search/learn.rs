//! What a cutoff teaches about moves.

use games::Move;

use super::Search;
use crate::board::Board;
use crate::history::{self, place};

impl Search<'_> {
    /// Remembers the move that refuted the one before, and what was tried before it in vain.
    #[expect(clippy::too_many_arguments, reason = "a node's state")]
    pub(super) fn learn(
        &mut self,
        board: &Board,
        m: Move,
        depth: i32,
        ply: usize,
        before: [Option<usize>; 2],
        quiets: &Tried,
        noisy: &Tried,
    ) {
        let memory = &mut *self.memory;
        let bonus = history::bonus(depth);
        if board.is_noisy(m) {
            memory.history.learn_noisy(board, m, bonus);
        } else {
            let killers = &mut memory.frames[ply].killers;
            if killers[0] != m {
                *killers = [m, killers[0]];
            }
            let learnt = std::iter::once((m, bonus)).chain(quiets.iter().map(|m| (m, -bonus)));
            for (m, bonus) in learnt {
                memory.history.learn_quiet(board.turn(), m, bonus);
                for earlier in before.into_iter().flatten() {
                    memory.history.learn_after(earlier, place(board, m), bonus);
                }
            }
        }
        for m in noisy.iter() {
            memory.history.learn_noisy(board, m, -bonus);
        }
    }
}

/// Moves that were searched without a cutoff; the first of them, which are enough to learn from.
#[derive(Default)]
pub(super) struct Tried {
    moves: [Move; 32],
    len: usize,
}

impl Tried {
    pub(super) fn push(&mut self, m: Move) {
        if self.len < self.moves.len() {
            self.moves[self.len] = m;
            self.len += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = Move> + '_ {
        self.moves[..self.len].iter().copied()
    }
}
