//! Alpha-beta search of one thread.
//!
//! An aborted search has no score: it is an error that leaves every node at once, so that none of them can store what
//! it does not know. A node that stores a score has seen all its moves, or one that was good enough.

use games::Move;

use crate::board::Board;
use crate::evaluate::{PawnCache, evaluate};
use crate::features::Features;
use crate::history::History;
use crate::picker::Ranked;
use crate::policy::{Policy, Thoughts};
use crate::score::{DRAW, FIFTY_MOVES, MAX_PLY, holds_at};
use crate::table::{Entry, Table};

mod clock_key;
mod cuts;
mod learn;
mod margins;
mod node;
mod quiescence;
mod root;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod traps;

pub(crate) use root::{Found, Progress, Root, RootMove};

/// The search was told to end; what it was looking at is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Aborted;

/// What a search asks while it goes on, and whom it tells.
pub(crate) trait Monitor {
    /// Called when so many nodes were searched as the last call asked for; says at how many to call again, or to end.
    fn look(&mut self, nodes: u64) -> Result<u64, Aborted>;
    /// A line has a new score.
    fn tell(&mut self, report: &Report<'_>);
    /// An iteration is complete. Whether there shall be another.
    fn goes_on(&mut self, progress: &Progress) -> bool;
}

/// A line of the analysis.
pub(crate) struct Report<'a> {
    pub(crate) depth: i32,
    /// Its rank among the lines, 0 the best.
    pub(crate) rank: usize,
    pub(crate) found: &'a RootMove,
    /// Nodes of this thread.
    pub(crate) nodes: u64,
    /// Whether this move is the answer, so that it is told whatever is known of it.
    pub(crate) is_answer: bool,
}

/// What the threads of a search have in common.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) features: Features,
    pub(crate) table: &'a Table,
    /// The network that has an opinion of quiet moves.
    pub(crate) policy: Option<&'a Policy>,
}

/// What a thread keeps from one search to the next.
pub(crate) struct Memory {
    history: History,
    pawns: PawnCache,
    thoughts: Thoughts,
    frames: Box<[Frame]>,
    stack: Vec<Ranked>,
    lines: Box<[Vec<Move>]>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory {
            history: History::new(),
            pawns: PawnCache::new(),
            thoughts: Thoughts::default(),
            frames: vec![Frame::default(); MAX_PLY + 3].into(),
            stack: Vec::with_capacity(8192),
            lines: (0..MAX_PLY + 2).map(|_| Vec::with_capacity(MAX_PLY)).collect(),
        }
    }

    /// Forgets what was learnt in a game.
    pub(crate) fn clear(&mut self) {
        self.history.clear();
        self.thoughts.clear();
        self.frames.fill(Frame::default());
    }
}

/// What a ply of the current line knows.
#[derive(Clone, Copy, Default)]
struct Frame {
    /// Quiet moves that refuted others at this ply.
    killers: [Move; 2],
    /// The static evaluation; none in check.
    evaluation: Option<i32>,
    /// The place of the move that is searched; none for a null move.
    place: Option<usize>,
}

/// What a node inherits.
#[derive(Clone, Copy, Default)]
struct Path {
    /// Somewhere above there is a null move: what follows is no game that can be reached, so that it knows neither
    /// repetition nor fifty moves.
    below_null: bool,
    /// The move before was a null move.
    passed: bool,
    /// Plies that were added above.
    extended: i32,
}

/// The search of one thread.
pub(crate) struct Search<'a> {
    features: Features,
    table: &'a Table,
    policy: Option<&'a Policy>,
    memory: &'a mut Memory,
    monitor: &'a mut dyn Monitor,
    /// The keys of the positions since the last irreversible move, then those of the line that is searched.
    keys: Vec<u64>,
    /// How many of them lie before the root.
    before_root: usize,
    nodes: u64,
    look_at: u64,
    /// The deepest ply of this iteration.
    deepest: usize,
    #[cfg(test)]
    rig: traps::Rig,
}

impl<'a> Search<'a> {
    pub(crate) fn new(setup: Setup<'a>, memory: &'a mut Memory, monitor: &'a mut dyn Monitor) -> Self {
        Search {
            features: setup.features,
            table: setup.table,
            policy: setup.policy,
            memory,
            monitor,
            keys: Vec::new(),
            before_root: 0,
            nodes: 0,
            look_at: 0,
            deepest: 0,
            #[cfg(test)]
            rig: traps::Rig::default(),
        }
    }

    /// Enters a node: counts it, and puts its key where its ply has it, whatever deeper or earlier lines left there.
    /// Gives the score of a node that is drawn by a rule, before anything else is asked of it.
    #[inline]
    fn enter(&mut self, board: &Board, ply: usize, path: Path) -> Result<Option<i32>, Aborted> {
        if self.nodes >= self.look_at {
            self.look_at = self.monitor.look(self.nodes)?;
        }
        self.nodes += 1;
        self.deepest = self.deepest.max(ply);
        self.memory.lines[ply].clear();
        let above = self.before_root + ply;
        #[cfg(test)]
        let above = if self.falls_for(traps::Trap::PathNotTruncated) { self.keys.len() } else { above };
        self.keys.truncate(above);
        self.keys.push(board.key());
        Ok(self.is_drawn(board, ply, path).then_some(DRAW))
    }

    /// Insufficient material, fifty moves without mate, or a repetition: of a position of the line, or the second one
    /// of a position before the root.
    fn is_drawn(&self, board: &Board, ply: usize, path: Path) -> bool {
        if board.is_insufficient_material() {
            return true;
        }
        #[cfg(test)]
        let path = Path { below_null: path.below_null && !self.falls_for(traps::Trap::DrawsBelowNull), ..path };
        if path.below_null {
            return false;
        }
        let clock = board.halfmoves();
        if clock >= FIFTY_MOVES && (!board.is_check() || board.has_legal_move()) {
            return true;
        }
        if clock < 4 {
            return false;
        }
        let here = self.keys.len() - 1;
        let mut seen = 0;
        for back in (4..=here.min(clock as usize)).step_by(2) {
            if self.keys[here - back] == board.key() {
                seen += 1;
                if back <= ply || seen == 2 {
                    return true;
                }
            }
        }
        false
    }

    fn evaluate(&mut self, board: &Board) -> i32 {
        evaluate(board, &self.features, &mut self.memory.pawns)
    }

    /// The static evaluation of a node, from the table where it is there; none in check.
    fn evaluation(&mut self, board: &Board, check: bool, entry: Option<Entry>) -> Option<i32> {
        if check {
            return None;
        }
        Some(entry.and_then(|e| e.evaluation).unwrap_or_else(|| self.evaluate(board)))
    }

    /// What the table knows of a position. A mate that the fifty-move rule forestalls here has no depth, so that it
    /// decides nothing.
    fn probe(&self, board: &Board, ply: usize) -> Option<Entry> {
        if !self.features.table {
            return None;
        }
        let entry = self.table.probe(clock_key::key(board), ply)?;
        let holds = holds_at(entry.score, ply, board.halfmoves());
        #[cfg(test)]
        let holds = holds || self.falls_for(traps::Trap::MateBeyondFiftyMoves);
        Some(if holds { entry } else { Entry { depth: -1, ..entry } })
    }

    fn store(&mut self, board: &Board, ply: usize, entry: Entry) {
        #[cfg(test)]
        self.rig.stored.push((board.clone(), ply, entry));
        if self.features.table {
            self.table.store(clock_key::key(board), ply, entry);
        }
    }
}
