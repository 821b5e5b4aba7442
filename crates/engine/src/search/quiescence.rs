//! The search beyond the nominal depth: captures and promotions until the position is quiet, and every answer to a
//! check.

use shakmaty::Role;

use super::cuts::estimate;
use super::{Aborted, Path, Search, margins};
use crate::board::Board;
use crate::exchange::value;
use crate::history::place;
use crate::moves::{NONE, Parts};
use crate::picker::{Picker, Ranks};
use crate::score::{INFINITE, MAX_PLY, mated_in};
use crate::table::{Bound, Entry};

impl Search<'_> {
    /// The value of a position that was entered already and is not drawn by a rule.
    pub(super) fn quiesce(
        &mut self,
        board: &Board,
        mut alpha: i32,
        beta: i32,
        ply: usize,
        path: Path,
    ) -> Result<i32, Aborted> {
        if ply >= MAX_PLY || !self.features.quiescence {
            return Ok(self.evaluate(board));
        }
        let (floor, wide) = (alpha, beta - alpha > 1);
        let entry = self.probe(board, ply);
        #[cfg(test)]
        let entry = self.rig.fitting(entry, 0);
        if let Some(entry) = entry.filter(|e| !wide && e.depth >= 0)
            && entry.bound.decides(entry.score, alpha, beta)
        {
            return Ok(entry.score);
        }
        let check = board.is_check();
        let evaluation = self.evaluation(board, check, entry);
        // The mover need not take anything, unless it is in check.
        let stand = evaluation.map(|e| entry.map_or(e, |entry| estimate(e, &entry)));
        let mut best = stand.unwrap_or(-INFINITE);
        if best >= beta {
            return Ok(best);
        }
        alpha = alpha.max(best);

        let table_move = entry.map_or(NONE, |e| e.m);
        let usable = board.is_legal(table_move) && (check || board.is_noisy(table_move));
        let table_move = if usable { table_move } else { NONE };
        let mut picker = if check {
            Picker::all(table_move, [NONE; 2], &self.memory.stack)
        } else {
            Picker::noisy(table_move, self.features.exchange_pruning, &self.memory.stack)
        };
        let before = self.places_before(ply);
        let mut best_move = NONE;
        while let Some(m) = {
            let mut ranks = Ranks { features: &self.features, history: &self.memory.history, before, policy: None };
            picker.next(board, &mut self.memory.stack, &mut ranks)
        } {
            if let Some(stand) = stand {
                if m.promotion().is_some_and(|role| role != Role::Queen) {
                    continue;
                }
                let gain = board.captured(m).map_or(0, value) + margins::DELTA;
                if self.features.delta_pruning && m.promotion().is_none() && stand + gain <= alpha {
                    best = best.max(stand + gain);
                    continue;
                }
            }
            self.memory.frames[ply].place = Some(place(board, m));
            let next = board.after(m);
            let score = match self.enter(&next, ply + 1, path)? {
                Some(drawn) => -drawn,
                None => -self.quiesce(&next, -beta, -alpha, ply + 1, path)?,
            };
            if score > best {
                best = score;
                if score > alpha {
                    (alpha, best_move) = (score, m);
                    if wide {
                        self.take_line(ply, m);
                    }
                    if score >= beta {
                        break;
                    }
                }
            }
        }
        picker.finish(&mut self.memory.stack);
        if best == -INFINITE {
            return Ok(mated_in(ply));
        }
        let bound = Bound::of(best, floor, beta);
        self.store(board, ply, Entry { m: best_move, score: best, bound, depth: 0, evaluation });
        Ok(best)
    }
}
