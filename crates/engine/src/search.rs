//! Alpha-beta search of one thread.
//!
//! An aborted search has no score: it is an error that leaves every node at once, so that none of them can store what
//! it does not know. A node that stores a score has seen all its moves, or one that was good enough.

use games::Move;

use crate::board::Board;
use crate::evaluate::{PawnCache, evaluate};
use crate::features::Features;
use crate::history::{self, History, place};
use crate::moves::NONE;
use crate::picker::{Picker, Ranked, Ranks};
use crate::policy::Policy;
use crate::score::{DRAW, FIFTY_MOVES, INFINITE, MATES, MAX_PLY, holds_at, is_mate, mate_in, mated_in};
use crate::table::{Bound, Entry, Table};

mod clock_key;
mod margins;
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
    frames: Box<[Frame]>,
    stack: Vec<Ranked>,
    lines: Box<[Vec<Move>]>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Memory {
            history: History::new(),
            pawns: PawnCache::new(),
            frames: vec![Frame::default(); MAX_PLY + 3].into(),
            stack: Vec::with_capacity(8192),
            lines: (0..MAX_PLY + 2).map(|_| Vec::with_capacity(MAX_PLY)).collect(),
        }
    }

    /// Forgets what was learnt in a game.
    pub(crate) fn clear(&mut self) {
        self.history.clear();
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

    /// The value of a position within a window, in the view of its side to move; at or below `alpha`, or at or above
    /// `beta`, it is only a bound.
    fn search(
        &mut self,
        board: &Board,
        mut alpha: i32,
        mut beta: i32,
        mut depth: i32,
        ply: usize,
        path: Path,
    ) -> Result<i32, Aborted> {
        let drawn = self.enter(board, ply, path);
        #[cfg(test)]
        let drawn = self.rig.misjudge(drawn, depth);
        if let Some(score) = drawn? {
            return Ok(score);
        }
        if depth <= 0 {
            return self.quiesce(board, alpha, beta, ply, path);
        }
        if ply >= MAX_PLY {
            return Ok(self.evaluate(board));
        }
        // No line is better than the shortest mate from here, nor worse than being mated here.
        (alpha, beta) = (alpha.max(mated_in(ply)), beta.min(mate_in(ply + 1)));
        if alpha >= beta {
            return Ok(alpha);
        }
        let wide = beta - alpha > 1;
        let entry = self.probe(board, ply);
        #[cfg(test)]
        let entry = self.rig.fitting(entry, depth);
        if let Some(entry) = entry.filter(|e| !wide && e.depth >= depth)
            && entry.bound.decides(entry.score, alpha, beta)
        {
            return Ok(entry.score);
        }
        let table_move = entry.map_or(NONE, |e| e.m);
        let table_move = if board.is_legal(table_move) { table_move } else { NONE };

        let check = board.is_check();
        let evaluation = match entry.and_then(|e| e.evaluation) {
            _ if check => None,
            Some(known) => Some(known),
            None => Some(self.evaluate(board)),
        };
        self.memory.frames[ply].evaluation = evaluation;
        let improving = self.is_improving(evaluation, ply);
        if let Some(evaluation) = evaluation.filter(|_| !wide && !is_mate(beta)) {
            let estimate = entry.map_or(evaluation, |e| estimate(evaluation, &e));
            if let Some(score) = self.cut_early(board, (alpha, beta), depth, ply, path, estimate, improving)? {
                return Ok(score);
            }
        }
        if self.features.internal_reduction
            && self.features.table
            && depth >= margins::REDUCED_FROM
            && table_move == NONE
        {
            depth -= 1;
        }

        let before = self.places_before(ply);
        let killers = if self.features.killers { self.memory.frames[ply].killers } else { [NONE; 2] };
        self.memory.frames[ply + 2].killers = [NONE; 2];
        let mut picker = Picker::all(table_move, killers, &self.memory.stack);
        let policy = self.policy.filter(|_| depth >= margins::POLICY_FROM);
        let (mut best, mut best_move, floor) = (-INFINITE, NONE, alpha);
        let (mut count, mut quiets, mut noisy) = (0, Tried::default(), Tried::default());
        while let Some(m) = {
            let ranks = Ranks { features: &self.features, history: &self.memory.history, before, policy };
            picker.next(board, &mut self.memory.stack, &ranks)
        } {
            let is_noisy = board.is_noisy(m);
            let mut reduction = margins::reduction(depth, count + 1);
            if best > -MATES && board.has_pieces(board.turn()) {
                let left = (depth - 1 - reduction / 1024).max(0);
                // Where a mate is looked for, estimates say nothing.
                if !is_noisy && !is_mate(alpha) {
                    if self.features.late_move_pruning && count >= margins::late_moves(depth, improving) {
                        picker.skip_quiets();
                        continue;
                    }
                    let hopeless = |e: i32| e + margins::futility(left) <= alpha;
                    if self.features.futility && left <= margins::FUTILE_DEPTH && evaluation.is_some_and(hopeless) {
                        picker.skip_quiets();
                        continue;
                    }
                }
                if self.features.exchange_pruning
                    && depth <= margins::EXCHANGE_DEPTH
                    && !board.wins_exchange(m, margins::exchange(is_noisy, depth, left))
                {
                    continue;
                }
            }
            count += 1;
            self.memory.frames[ply].place = Some(place(board, m));
            let next = board.after(m);
            let extension =
                i32::from(self.features.check_extension && next.is_check() && path.extended < margins::MOST_EXTENSIONS);
            let path = Path { below_null: path.below_null, passed: false, extended: path.extended + extension };
            let new_depth = depth - 1 + extension;

            let mut score = None;
            if self.features.principal_variation && count > 1 {
                let mut first = new_depth;
                if self.features.late_move_reductions && depth >= 3 && count > 2 + i32::from(wide) && !is_noisy {
                    let ranks = Ranks { features: &self.features, history: &self.memory.history, before, policy: None };
                    let past = ranks.quiet(board, m);
                    reduction += margins::adjustment(wide, improving, next.is_check(), check, past);
                    first = (new_depth - (reduction / 1024).max(0)).clamp(1, new_depth.max(1));
                }
                let mut tried = -self.search(&next, -alpha - 1, -alpha, first, ply + 1, path)?;
                if tried > alpha && first < new_depth {
                    tried = -self.search(&next, -alpha - 1, -alpha, new_depth, ply + 1, path)?;
                }
                score = Some(tried).filter(|s| *s <= alpha || *s >= beta || !wide);
            }
            let score = match score {
                Some(score) => score,
                None => -self.search(&next, -beta, -alpha, new_depth, ply + 1, path)?,
            };

            if score > best {
                best = score;
                if score > alpha {
                    (alpha, best_move) = (score, m);
                    if wide {
                        self.take_line(ply, m);
                    }
                    if score >= beta {
                        self.learn(board, m, depth, ply, before, &quiets, &noisy);
                        break;
                    }
                }
            }
            if is_noisy { noisy.push(m) } else { quiets.push(m) }
        }
        picker.finish(&mut self.memory.stack);
        if count == 0 {
            return Ok(if check { mated_in(ply) } else { DRAW });
        }
        let bound = Bound::of(best, floor, beta);
        self.store(board, ply, Entry { m: best_move, score: best, bound, depth, evaluation });
        Ok(best)
    }

    /// Whether the mover stands better than at its move before.
    fn is_improving(&self, evaluation: Option<i32>, ply: usize) -> bool {
        let before = ply.checked_sub(2).and_then(|p| self.memory.frames[p].evaluation);
        matches!((evaluation, before), (Some(now), Some(before)) if now > before)
    }

    /// The places of the moves that led to a ply.
    fn places_before(&self, ply: usize) -> [Option<usize>; 2] {
        [1, 2].map(|back| ply.checked_sub(back).and_then(|p| self.memory.frames[p].place))
    }

    /// The cuts before any move is searched, for a node that is not in check and only has to be above or below a
    /// window of one point.
    #[expect(clippy::too_many_arguments, reason = "a node's state")]
    fn cut_early(
        &mut self,
        board: &Board,
        (alpha, beta): (i32, i32),
        depth: i32,
        ply: usize,
        path: Path,
        estimate: i32,
        improving: bool,
    ) -> Result<Option<i32>, Aborted> {
        if self.features.reverse_futility
            && depth <= margins::REVERSE_DEPTH
            && estimate - margins::reverse(depth, improving) >= beta
            && !is_mate(estimate)
        {
            return Ok(Some(estimate));
        }
        if self.features.razoring && depth <= margins::RAZOR_DEPTH && estimate + margins::razor(depth) <= alpha {
            let score = self.quiesce(board, alpha, beta, ply, path)?;
            if score <= alpha {
                return Ok(Some(score));
            }
        }
        if self.features.null_move
            && depth >= margins::NULL_FROM
            && !path.passed
            && estimate >= beta
            && board.has_pieces(board.turn())
        {
            self.memory.frames[ply].place = None;
            let below = Path { below_null: true, passed: true, ..path };
            let less = depth - margins::null_reduction(depth, estimate - beta);
            let next = board.after_pass();
            #[cfg(test)]
            let next = if self.falls_for(traps::Trap::NullKeepsKey) { next.with_key_of(board) } else { next };
            let score = -self.search(&next, -beta, 1 - beta, less, ply + 1, below)?;
            if score >= beta {
                // A mate by a side that moves twice is none.
                return Ok(Some(if score > MATES { beta } else { score }));
            }
        }
        Ok(None)
    }

    /// Puts a move before the line of its reply.
    fn take_line(&mut self, ply: usize, m: Move) {
        let (upper, lower) = self.memory.lines.split_at_mut(ply + 1);
        upper[ply].clear();
        upper[ply].push(m);
        upper[ply].extend_from_slice(&lower[0]);
    }

    /// Remembers the move that refuted the one before, and what was tried before it in vain.
    #[expect(clippy::too_many_arguments, reason = "a node's state")]
    fn learn(
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

/// The evaluation, or the table's score where that says more.
fn estimate(evaluation: i32, entry: &Entry) -> i32 {
    let says_more = match entry.bound {
        Bound::Exact => true,
        Bound::Lower => entry.score > evaluation,
        Bound::Upper => entry.score < evaluation,
    };
    if says_more && !is_mate(entry.score) { entry.score } else { evaluation }
}

/// Moves that were searched without a cutoff; the first of them, which are enough to learn from.
#[derive(Default)]
struct Tried {
    moves: [Move; 32],
    len: usize,
}

impl Tried {
    fn push(&mut self, m: Move) {
        if self.len < self.moves.len() {
            self.moves[self.len] = m;
            self.len += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = Move> + '_ {
        self.moves[..self.len].iter().copied()
    }
}
