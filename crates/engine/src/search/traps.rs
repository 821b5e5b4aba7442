//! Mistakes that alpha-beta engines are known for. Each can be put back, to show that a test notices it.

use super::{Aborted, Entry, Search};
use crate::board::Board;

/// A mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trap {
    /// A node that was left because the time was over has the score 0, and those above it store what follows from it.
    AbortedIsScored,
    /// The best move of an iteration that was not finished is played.
    UnfinishedIterationCounts,
    /// A window's lower end is stored as the score.
    FailLowIsExact,
    /// A window's upper end is stored as the score.
    FailHighIsExact,
    /// A null move leaves the key as it is.
    NullKeepsKey,
    /// Quiescence comes before the draw rules.
    QuiescenceBeforeDraws,
    /// Repetitions and fifty moves are counted below a null move.
    DrawsBelowNull,
    /// Keys of other lines stay on the path.
    PathNotTruncated,
    /// A mate from the table counts though the fifty-move rule comes first.
    MateBeyondFiftyMoves,
}

/// What a test does to a search, and what it sees of it.
#[derive(Default)]
pub(super) struct Rig {
    pub(super) trap: Option<Trap>,
    /// Only entries of the depth that is asked for are used, so that a table cannot make a search see farther.
    pub(super) equal_depths: bool,
    /// Everything that was stored, with its position and ply.
    pub(super) stored: Vec<(Board, usize, Entry)>,
}

impl Rig {
    pub(super) fn fitting(&self, entry: Option<Entry>, depth: i32) -> Option<Entry> {
        entry.filter(|e| !self.equal_depths || e.depth == depth)
    }

    pub(super) fn misjudge(&self, drawn: Result<Option<i32>, Aborted>, depth: i32) -> Result<Option<i32>, Aborted> {
        match (self.trap, drawn) {
            (Some(Trap::AbortedIsScored), Err(Aborted)) => Ok(Some(0)),
            (Some(Trap::QuiescenceBeforeDraws), Ok(Some(_))) if depth <= 0 => Ok(None),
            _ => drawn,
        }
    }
}

impl Search<'_> {
    pub(super) fn falls_for(&self, trap: Trap) -> bool {
        self.rig.trap == Some(trap)
    }
}
