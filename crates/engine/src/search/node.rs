//! A node: its moves in order, each searched as deep and as wide as it deserves.

use games::Move;

use super::cuts::estimate;
use super::learn::Tried;
use super::{Aborted, Path, Search, margins};
use crate::board::Board;
use crate::history::place;
use crate::moves::NONE;
use crate::picker::{Picker, Ranks};
use crate::score::{DRAW, INFINITE, MATES, MAX_PLY, is_mate, mate_in, mated_in};
use crate::table::{Bound, Entry};

impl Search<'_> {
    /// The value of a position within a window, in the view of its side to move; at or below `alpha`, or at or above
    /// `beta`, it is only a bound.
    pub(super) fn search(
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
        let evaluation = self.evaluation(board, check, entry);
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
            let policy = policy.map(|policy| (policy, &mut self.memory.thoughts));
            let mut ranks = Ranks { features: &self.features, history: &self.memory.history, before, policy };
            picker.next(board, &mut self.memory.stack, &mut ranks)
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
    pub(super) fn is_improving(&self, evaluation: Option<i32>, ply: usize) -> bool {
        let before = ply.checked_sub(2).and_then(|p| self.memory.frames[p].evaluation);
        matches!((evaluation, before), (Some(now), Some(before)) if now > before)
    }

    /// The places of the moves that led to a ply.
    pub(super) fn places_before(&self, ply: usize) -> [Option<usize>; 2] {
        [1, 2].map(|back| ply.checked_sub(back).and_then(|p| self.memory.frames[p].place))
    }

    /// Puts a move before the line of its reply.
    pub(super) fn take_line(&mut self, ply: usize, m: Move) {
        let (upper, lower) = self.memory.lines.split_at_mut(ply + 1);
        upper[ply].clear();
        upper[ply].push(m);
        upper[ply].extend_from_slice(&lower[0]);
    }
}
