//! Iterative deepening at the root: windows, several lines, and what an unfinished iteration is worth.

use games::{Chess, Line, Move};

use super::{Aborted, Path, Report, Search, margins};
use crate::board::Board;
use crate::history::place;
use crate::moves::NONE;
use crate::picker::{Picker, Ranks};
use crate::score::{DRAW, INFINITE, MAX_PLY, is_mate, mated_in};
use crate::table::{Bound, Entry};

/// Depth from which the window is narrow...
const NARROW_FROM: i32 = 4;
/// ...half its width in centipawns at first...
const HALF_WINDOW: i32 = 16;
/// ...and the width from which it is taken away.
const WIDEST: i32 = 600;

/// The position to search, with what led to it.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(super) board: Board,
    /// The keys of the positions before it since the last irreversible move.
    pub(super) before: Vec<u64>,
    moves: Vec<Move>,
    /// Whether some legal moves are not searched.
    restricted: bool,
}

impl Root {
    /// Where a game stands. Only the moves in `only` are searched, if there are any.
    pub(crate) fn new(line: &Line<Chess>, only: &[Move]) -> Self {
        let mut board = Board::from(line.start().position());
        let mut before = Vec::new();
        for m in line.moves() {
            before.push(board.key());
            board = board.after(*m);
            if board.halfmoves() == 0 {
                before.clear();
            }
        }
        let mut legal = Vec::new();
        board.legal_moves(|m| legal.push(m));
        let moves: Vec<Move> = legal.iter().copied().filter(|m| only.is_empty() || only.contains(m)).collect();
        Root { restricted: moves.len() < legal.len(), board, before, moves }
    }

    pub(crate) fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// The score of a root without a legal move.
    pub(crate) fn final_score(&self) -> i32 {
        if self.board.is_check() { mated_in(0) } else { DRAW }
    }
}

/// A move at the root and what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RootMove {
    pub(crate) m: Move,
    /// In the view of the root's side to move; [`INFINITE`] below zero if the latest iteration did not find it better
    /// than another.
    pub(crate) score: i32,
    pub(crate) bound: Bound,
    /// The principal variation; begins with the move.
    pub(crate) line: Vec<Move>,
    /// Its score in the iteration before.
    last: i32,
    /// Nodes below it in the latest iteration.
    pub(crate) nodes: u64,
    /// The deepest ply when its score was found.
    pub(crate) deepest: usize,
}

/// A completed iteration.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) depth: i32,
    pub(crate) best: Move,
    pub(crate) score: i32,
    /// Share of the iteration's nodes that went below the best move, in percent.
    pub(crate) effort: u64,
    pub(crate) moves: usize,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The root's moves, the best first.
    pub(crate) moves: Vec<RootMove>,
    /// Iterations completed.
    pub(crate) depth: i32,
    pub(crate) nodes: u64,
}

impl Search<'_> {
    /// Searches deeper and deeper, to at most `depth` plies, until the monitor ends it. `lines` moves get a score of
    /// their own.
    ///
    /// The answer is that of the last complete iteration, with one exception: a move that the unfinished one has
    /// searched to its end and found better than all before it, the best of the last iteration among them.
    pub(crate) fn run(&mut self, root: &Root, depth: i32, lines: usize) -> Found {
        self.keys.clone_from(&root.before);
        (self.before_root, self.nodes, self.look_at) = (root.before.len(), 0, 0);
        self.memory.stack.clear();
        let mut found = Found { moves: self.first_order(root), depth: 0, nodes: 0 };
        let lines = lines.clamp(1, root.moves.len().max(1));
        for depth in 1..=depth.clamp(1, MAX_PLY as i32 - 1) {
            let mut moves = found.moves.clone();
            let mut better = None;
            if self.iterate(root, &mut moves, depth, lines, &mut better) == Err(Aborted) {
                #[cfg(test)]
                if self.falls_for(super::traps::Trap::UnfinishedIterationCounts) {
                    moves.sort_by_key(|m| -m.score);
                    found.moves = moves;
                    break;
                }
                if let Some(better) = better.filter(|_| lines == 1) {
                    self.promote(&mut found, better, depth);
                }
                break;
            }
            (found.moves, found.depth) = (moves, depth);
            let (best, all) = (&found.moves[0], found.moves.iter().map(|m| m.nodes).sum::<u64>());
            let progress = Progress {
                depth,
                best: best.m,
                score: best.score,
                effort: best.nodes * 100 / all.max(1),
                moves: found.moves.len(),
            };
            if !self.monitor.goes_on(&progress) {
                break;
            }
        }
        found.nodes = self.nodes;
        found
    }

    /// Puts a move of an unfinished iteration first.
    fn promote(&mut self, found: &mut Found, better: RootMove, depth: i32) {
        if let Some(at) = found.moves.iter().position(|m| m.m == better.m) {
            found.moves[..=at].rotate_right(1);
            found.moves[0] = better;
            self.monitor.tell(&Report { depth, rank: 0, found: &found.moves[0], nodes: self.nodes, is_answer: true });
        }
    }

    /// The moves in the order in which any node would try them.
    pub(super) fn first_order(&mut self, root: &Root) -> Vec<RootMove> {
        let board = &root.board;
        let entry = self.probe(board, 0);
        let table_move = entry.map(|e| e.m).filter(|m| board.is_legal(*m)).unwrap_or(NONE);
        let history = &self.memory.history;
        let policy = self.policy.map(|policy| (policy, &mut self.memory.thoughts));
        let mut ranks = Ranks { features: &self.features, history, before: [None; 2], policy };
        let mut picker = Picker::all(table_move, [NONE; 2], &self.memory.stack);
        let mut moves = Vec::new();
        while let Some(m) = picker.next(board, &mut self.memory.stack, &mut ranks) {
            if root.moves.contains(&m) {
                let line = vec![m];
                moves.push(RootMove {
                    m,
                    score: -INFINITE,
                    bound: Bound::Upper,
                    line,
                    last: -INFINITE,
                    nodes: 0,
                    deepest: 0,
                });
            }
        }
        picker.finish(&mut self.memory.stack);
        moves
    }

    /// One iteration: as many lines as asked for, each without the first moves of the ones before.
    fn iterate(
        &mut self,
        root: &Root,
        moves: &mut [RootMove],
        depth: i32,
        lines: usize,
        better: &mut Option<RootMove>,
    ) -> Result<(), Aborted> {
        self.deepest = 0;
        moves.iter_mut().for_each(|m| (m.nodes, m.last) = (0, m.score));
        for rank in 0..lines {
            self.narrow(root, &mut moves[rank..], depth, rank, better)?;
            // A later line can turn out better than one before.
            moves[..=rank].sort_by_key(|m| -m.score);
        }
        for (rank, found) in moves[..lines].iter().enumerate() {
            self.monitor.tell(&Report { depth, rank, found, nodes: self.nodes, is_answer: false });
        }
        Ok(())
    }

    /// Searches with a window around the last score, and with a wider one as long as the score lies outside.
    fn narrow(
        &mut self,
        root: &Root,
        moves: &mut [RootMove],
        depth: i32,
        rank: usize,
        better: &mut Option<RootMove>,
    ) -> Result<(), Aborted> {
        let last = moves[0].last;
        let (mut alpha, mut beta, mut width) = (-INFINITE, INFINITE, HALF_WINDOW);
        if self.features.aspiration && depth >= NARROW_FROM && !is_mate(last) {
            (alpha, beta) = (last - width, last + width);
        }
        loop {
            let score = self.search_root(root, moves, (alpha, beta), depth, rank, better)?;
            moves.sort_by_key(|m| -m.score);
            if score <= alpha {
                *better = None;
                (beta, alpha) = ((alpha + beta) / 2, (score - width).max(-INFINITE));
            } else if score >= beta {
                beta = (score + width).min(INFINITE);
            } else {
                return Ok(());
            }
            if rank == 0 {
                self.monitor.tell(&Report { depth, rank, found: &moves[0], nodes: self.nodes, is_answer: false });
            }
            width *= 2;
            if width > WIDEST || is_mate(score) {
                (alpha, beta) = (-INFINITE, INFINITE);
            }
        }
    }

    /// The root itself: like any node, but its moves keep their scores and lines, and no rule or table ends it.
    pub(super) fn search_root(
        &mut self,
        root: &Root,
        moves: &mut [RootMove],
        (floor, beta): (i32, i32),
        depth: i32,
        rank: usize,
        better: &mut Option<RootMove>,
    ) -> Result<i32, Aborted> {
        let board = &root.board;
        self.keys.truncate(self.before_root);
        self.keys.push(board.key());
        let evaluation = (!board.is_check()).then(|| self.evaluate(board));
        self.memory.frames[0].evaluation = evaluation;
        let (mut alpha, mut best, mut best_move) = (floor, -INFINITE, NONE);
        for (i, entry) in moves.iter_mut().enumerate() {
            let (m, before, count) = (entry.m, self.nodes, i as i32 + 1);
            self.memory.frames[0].place = Some(place(board, m));
            let next = board.after(m);
            let extension = i32::from(self.features.check_extension && next.is_check());
            let (path, new_depth) = (Path { extended: extension, ..Path::default() }, depth - 1 + extension);
            let mut score = None;
            if self.features.principal_variation && i > 0 {
                let mut first = new_depth;
                if self.features.late_move_reductions && depth >= 3 && count > 3 && !board.is_noisy(m) {
                    let reduction = margins::reduction(depth, count)
                        + margins::adjustment(true, true, next.is_check(), board.is_check(), 0);
                    first = (new_depth - (reduction / 1024).max(0)).clamp(1, new_depth);
                }
                let mut tried = -self.search(&next, -alpha - 1, -alpha, first, 1, path)?;
                if tried > alpha && first < new_depth {
                    tried = -self.search(&next, -alpha - 1, -alpha, new_depth, 1, path)?;
                }
                score = Some(tried).filter(|s| *s <= alpha);
            }
            let score = match score {
                Some(score) => score,
                None => -self.search(&next, -beta, -alpha, new_depth, 1, path)?,
            };
            entry.nodes += self.nodes - before;
            // Only the first move and those that beat all before them have a score; the others are somewhere below.
            entry.score = -INFINITE;
            if i == 0 || score > alpha {
                (entry.score, entry.bound, entry.deepest) = (score, Bound::of(score, floor, beta), self.deepest);
                entry.line.clear();
                entry.line.push(m);
                entry.line.extend_from_slice(&self.memory.lines[1]);
            }
            if i == 0 && score <= floor {
                *better = None;
            }
            if score > best {
                best = score;
                if score > alpha {
                    (alpha, best_move) = (score, m);
                    // The first move is no better than it was, unless it is the better one, searched again.
                    let again = better.as_ref().is_some_and(|better| better.m == m);
                    if i > 0 || depth == 1 || again {
                        *better = Some(entry.clone());
                    }
                    if score >= beta {
                        break;
                    }
                }
            }
        }
        // A search of some of the moves says nothing of the position.
        if rank == 0 && !root.restricted {
            #[cfg(test)]
            let floor = if self.falls_for(super::traps::Trap::FailLowIsExact) { best - 1 } else { floor };
            #[cfg(test)]
            let beta = if self.falls_for(super::traps::Trap::FailHighIsExact) { best + 1 } else { beta };
            let bound = Bound::of(best, floor, beta);
            self.store(board, 0, Entry { m: best_move, score: best, bound, depth, evaluation });
        }
        Ok(best)
    }
}
