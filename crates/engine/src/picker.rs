//! The order in which a node tries its moves, generated part by part: most nodes are cut after the first few.

use games::Move;
use shakmaty::Role;

use crate::board::Board;
use crate::exchange::value;
use crate::features::Features;
use crate::generate::Part;
use crate::history::{History, place};
use crate::moves::{NONE, Parts};
use crate::policy::{Policy, Thoughts};

/// What a logit of the policy is worth beside a history value: probabilities of 1 : e differ by so much.
const LOGIT: f32 = 1024.0;
/// Logits beyond this are no more than this.
const MOST_LOGIT: f32 = 16.0;

/// A generated move and its rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    m: Move,
    rank: i32,
}

/// What ranks moves.
pub(crate) struct Ranks<'a> {
    pub(crate) features: &'a Features,
    pub(crate) history: &'a History,
    /// The places of the moves one and two plies before; none after a null move.
    pub(crate) before: [Option<usize>; 2],
    /// A network that is asked about quiet moves, and what it thought before.
    pub(crate) policy: Option<(&'a Policy, &'a mut Thoughts)>,
}

impl Ranks<'_> {
    /// The most valuable victim first, by the least valuable piece.
    fn noisy(&self, board: &Board, m: Move) -> i32 {
        let victim = board.captured(m).map_or(0, value);
        let promoted =
            m.promotion().map_or(0, |role| value(role) - 2 * value(Role::Queen) * i32::from(role != Role::Queen));
        let attacker = board.role(m.from()).map_or(0, |role| role as i32);
        let past = if self.features.history { self.history.noisy(board, m) / 16 } else { 0 };
        16 * (victim + promoted) - attacker + past
    }

    /// How a quiet move did before, here and after the moves before it.
    pub(crate) fn quiet(&self, board: &Board, m: Move) -> i32 {
        let mut rank = 0;
        if self.features.history {
            rank += self.history.quiet(board.turn(), m);
        }
        if self.features.continuation {
            let place = place(board, m);
            rank += self.before.iter().flatten().map(|before| self.history.after(*before, place)).sum::<i32>();
        }
        rank
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Table,
    GenerateNoisy,
    Noisy,
    Killers,
    GenerateQuiet,
    Quiet,
    Losing,
    Done,
}

/// The moves of one node. They lie in a stack that all nodes of a line share; a node leaves it as it found it.
pub(crate) struct Picker {
    stage: Stage,
    table: Move,
    killers: [Move; 2],
    /// How many killers were tried.
    tried: usize,
    /// Where the node's moves begin in the stack, and the next one.
    start: usize,
    next: usize,
    /// Noisy moves at the beginning that lose material and were put off.
    losing: usize,
    noisy_only: bool,
    /// Whether losing captures are left out, and not only put off.
    winning_only: bool,
    /// Whether quiet moves are still wanted.
    quiets: bool,
}

impl Picker {
    /// All legal moves: the table's, captures that do not lose, killers, quiet moves, losing captures.
    pub(crate) fn all(table: Move, killers: [Move; 2], stack: &[Ranked]) -> Self {
        Picker {
            stage: Stage::Table,
            table,
            killers,
            tried: 0,
            start: stack.len(),
            next: stack.len(),
            losing: 0,
            noisy_only: false,
            winning_only: false,
            quiets: true,
        }
    }

    /// Captures and promotions to a queen; with `winning`, only those that do not lose material on their square.
    pub(crate) fn noisy(table: Move, winning: bool, stack: &[Ranked]) -> Self {
        Picker { noisy_only: true, winning_only: winning, ..Picker::all(table, [NONE; 2], stack) }
    }

    /// Leaves out the quiet moves that are still to come.
    pub(crate) fn skip_quiets(&mut self) {
        self.quiets = false;
    }

    /// Leaves the stack as it was found.
    pub(crate) fn finish(&self, stack: &mut Vec<Ranked>) {
        stack.truncate(self.start);
    }

    /// The next move.
    pub(crate) fn next(&mut self, board: &Board, stack: &mut Vec<Ranked>, ranks: &mut Ranks<'_>) -> Option<Move> {
        loop {
            match self.stage {
                Stage::Table => {
                    self.stage = Stage::GenerateNoisy;
                    if self.table != NONE {
                        return Some(self.table);
                    }
                }
                Stage::GenerateNoisy => {
                    board.generate(Part::Noisy, &mut |m| stack.push(Ranked { m, rank: ranks.noisy(board, m) }));
                    self.stage = Stage::Noisy;
                }
                Stage::Noisy => {
                    while let Some(m) = self.best(stack) {
                        if m == self.table {
                            continue;
                        }
                        let weighed = ranks.features.exchange_order || self.winning_only;
                        if weighed && !board.wins_exchange(m, 0) {
                            stack.swap(self.start + self.losing, self.next - 1);
                            self.losing += 1;
                            continue;
                        }
                        return Some(m);
                    }
                    self.stage = Stage::Killers;
                    if self.noisy_only {
                        (self.stage, self.next) = (Stage::Losing, self.start);
                    }
                }
                Stage::Killers => {
                    while self.quiets && self.tried < 2 {
                        let m = self.killers[self.tried];
                        self.tried += 1;
                        if m != NONE && m != self.table && !board.is_noisy(m) && board.is_legal(m) {
                            return Some(m);
                        }
                    }
                    self.stage = Stage::GenerateQuiet;
                }
                Stage::GenerateQuiet => {
                    if self.quiets {
                        board.generate(Part::Quiet, &mut |m| stack.push(Ranked { m, rank: ranks.quiet(board, m) }));
                        if let Some((policy, thoughts)) = &mut ranks.policy {
                            let thought = thoughts.of(policy, board);
                            for ranked in &mut stack[self.next..] {
                                let logit = policy.logit_of(thought, ranked.m).clamp(-MOST_LOGIT, MOST_LOGIT);
                                ranked.rank += (logit * LOGIT) as i32;
                            }
                        }
                    }
                    self.stage = Stage::Quiet;
                }
                Stage::Quiet => {
                    while self.quiets {
                        let Some(m) = self.best(stack) else { break };
                        if m != self.table && !self.killers.contains(&m) {
                            return Some(m);
                        }
                    }
                    (self.stage, self.next) = (Stage::Losing, self.start);
                }
                Stage::Losing => {
                    if !self.winning_only && self.losing > 0 {
                        self.losing -= 1;
                        self.next += 1;
                        return Some(stack[self.next - 1].m);
                    }
                    self.stage = Stage::Done;
                }
                Stage::Done => return None,
            }
        }
    }

    /// Takes the best of the moves from the cursor on.
    fn best(&mut self, stack: &mut [Ranked]) -> Option<Move> {
        let left = &mut stack[self.next..];
        let first = left.first()?.rank;
        let mut best = (0, first);
        for (i, ranked) in left.iter().enumerate().skip(1) {
            if ranked.rank > best.1 {
                best = (i, ranked.rank);
            }
        }
        left.swap(0, best.0);
        self.next += 1;
        Some(left[0].m)
    }
}

#[cfg(test)]
mod tests {
    use games::{Game, Move, Rng};

    use super::{Picker, Ranked, Ranks};
    use crate::board::Board;
    use crate::features::Features;
    use crate::history::History;
    use crate::moves::NONE;
    use crate::testing::random_positions;

    fn picked(board: &Board, mut picker: Picker, stack: &mut Vec<Ranked>, features: &Features) -> Vec<Move> {
        let mut history = History::new();
        board.legal_moves(|m| history.learn_quiet(board.turn(), m, i32::from(m.0 % 2000) - 1000));
        let mut ranks = Ranks { features, history: &history, before: [Some(5), None], policy: None };
        let mut moves = Vec::new();
        while let Some(m) = picker.next(board, stack, &mut ranks) {
            moves.push(m);
            // A child's moves come and go above.
            let child = Picker::all(NONE, [NONE; 2], stack);
            stack.push(Ranked { m, rank: 0 });
            child.finish(stack);
        }
        picker.finish(stack);
        moves
    }

    fn sorted(moves: &[Move]) -> Vec<Move> {
        let mut moves = moves.to_vec();
        moves.sort_unstable();
        moves
    }

    #[test]
    fn every_legal_move_comes_once_whatever_the_table_and_the_killers_say() {
        let mut rng = Rng::new(3);
        let mut stack = vec![Ranked { m: NONE, rank: 7 }];
        for features in [Features::default(), Features::none()] {
            random_positions(2, |game, legal| {
                let board = Board::from(game.position());
                let any =
                    |rng: &mut Rng| [NONE, Move(rng.next_u64() as u16), legal[rng.below(legal.len())]][rng.below(3)];
                let table = [NONE, legal[rng.below(legal.len())]][rng.below(2)];
                let killers = [any(&mut rng), any(&mut rng)];
                let killers = if killers[0] == killers[1] { [killers[0], NONE] } else { killers };
                let moves = picked(&board, Picker::all(table, killers, &stack), &mut stack, &features);
                assert_eq!(sorted(&moves), sorted(legal), "{}", game.fen());
                assert!(table == NONE || moves[0] == table);
                let noisy: Vec<Move> = legal.iter().copied().filter(|m| board.is_noisy(*m)).collect();
                let moves = picked(&board, Picker::noisy(NONE, false, &stack), &mut stack, &features);
                assert_eq!(sorted(&moves), sorted(&noisy));
                let winning: Vec<Move> = noisy.iter().copied().filter(|m| board.wins_exchange(*m, 0)).collect();
                let moves = picked(&board, Picker::noisy(NONE, true, &stack), &mut stack, &features);
                assert_eq!(sorted(&moves), sorted(&winning));
                assert_eq!(stack.len(), 1);
            });
        }
    }

    #[test]
    fn losing_captures_come_last_and_quiet_moves_can_be_left_out() {
        let features = Features::default();
        random_positions(1, |game, legal| {
            let (board, mut stack) = (Board::from(game.position()), Vec::new());
            let moves = picked(&board, Picker::all(NONE, [NONE; 2], &stack), &mut stack, &features);
            let class = |m: &Move| match (board.is_noisy(*m), board.wins_exchange(*m, 0)) {
                (true, true) => 0,
                (false, _) => 1,
                (true, false) => 2,
            };
            assert!(moves.is_sorted_by_key(class), "{}", game.fen());
            let mut picker = Picker::all(NONE, [legal[0], NONE], &stack);
            picker.skip_quiets();
            let rest = picked(&board, picker, &mut stack, &features);
            assert_eq!(rest, moves.into_iter().filter(|m| board.is_noisy(*m)).collect::<Vec<_>>());
        });
    }
}
