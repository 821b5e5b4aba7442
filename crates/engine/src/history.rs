//! How moves did before, to order them: quiet moves by their squares and by what was played before them, captures by
//! what they take.

use games::Move;
use shakmaty::{Color, Role};

use crate::board::Board;
use crate::moves::Parts;

/// Values stay within this: a bonus moves a value by less the nearer it is.
pub(crate) const LIMIT: i32 = 16_384;
/// A role and the square that it goes to.
const PLACES: usize = 6 * 64;

/// The role that a move moves and where to: an index into the tables.
#[inline]
pub(crate) fn place(board: &Board, m: Move) -> usize {
    let role = board.role(m.from()).unwrap_or(Role::Pawn);
    (role as usize - 1) << 6 | m.to() as usize
}

/// What a cutoff at a depth adds, and takes from the moves that were tried before it.
pub(crate) fn bonus(depth: i32) -> i32 {
    (160 * depth - 80).min(1800)
}

#[inline]
fn nudge(value: &mut i16, bonus: i32) {
    let old = i32::from(*value);
    *value = (old + bonus - old * bonus.abs() / LIMIT) as i16;
}

/// The values of all moves.
pub(crate) struct History {
    /// By color, from and to.
    quiet: Box<[i16]>,
    /// By the place of a move before, and the place.
    continuation: Box<[i16]>,
    /// By place and the role that is taken; the last for promotions that take nothing.
    noisy: Box<[i16]>,
}

impl History {
    pub(crate) fn new() -> Self {
        let zeros = |n: usize| vec![0; n].into_boxed_slice();
        History { quiet: zeros(2 << 12), continuation: zeros(PLACES * PLACES), noisy: zeros(PLACES * 6) }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        for table in [&mut self.quiet, &mut self.continuation, &mut self.noisy] {
            table.fill(0);
        }
    }

    fn quiet_index(color: Color, m: Move) -> usize {
        (color as usize) << 12 | m.squares()
    }

    fn noisy_index(board: &Board, m: Move) -> usize {
        place(board, m) * 6 + board.captured(m).map_or(5, |role| role as usize - 1)
    }

    /// How a quiet move did.
    #[inline]
    pub(crate) fn quiet(&self, color: Color, m: Move) -> i32 {
        i32::from(self.quiet[History::quiet_index(color, m)])
    }

    /// How a move to a place did after one to another.
    #[inline]
    pub(crate) fn after(&self, before: usize, place: usize) -> i32 {
        i32::from(self.continuation[before * PLACES + place])
    }

    /// How a capture or promotion did.
    #[inline]
    pub(crate) fn noisy(&self, board: &Board, m: Move) -> i32 {
        i32::from(self.noisy[History::noisy_index(board, m)])
    }

    pub(crate) fn learn_quiet(&mut self, color: Color, m: Move, bonus: i32) {
        nudge(&mut self.quiet[History::quiet_index(color, m)], bonus);
    }

    pub(crate) fn learn_after(&mut self, before: usize, place: usize, bonus: i32) {
        nudge(&mut self.continuation[before * PLACES + place], bonus);
    }

    pub(crate) fn learn_noisy(&mut self, board: &Board, m: Move, bonus: i32) {
        nudge(&mut self.noisy[History::noisy_index(board, m)], bonus);
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game};
    use shakmaty::Color;

    use super::{History, LIMIT, bonus, place};
    use crate::board::Board;

    #[test]
    fn values_rise_and_fall_within_the_limit() {
        let game = Chess::start();
        let board = Board::from(game.position());
        let (e4, d4) = (game.parse_move("e2e4").unwrap(), game.parse_move("d2d4").unwrap());
        let mut history = History::new();
        for _ in 0..1000 {
            history.learn_quiet(Color::White, e4, bonus(12));
            history.learn_quiet(Color::White, d4, -bonus(12));
            history.learn_after(3, place(&board, e4), bonus(12));
            history.learn_noisy(&board, e4, -bonus(12));
        }
        assert!((LIMIT * 9 / 10..=LIMIT).contains(&history.quiet(Color::White, e4)));
        assert!((-LIMIT..=-LIMIT * 9 / 10).contains(&history.quiet(Color::White, d4)));
        assert_eq!((history.quiet(Color::Black, e4), history.after(4, place(&board, e4))), (0, 0));
        assert!(history.after(3, place(&board, e4)) > 0 && history.noisy(&board, e4) < 0);
        history.clear();
        assert_eq!((history.quiet(Color::White, e4), history.after(3, place(&board, e4))), (0, 0));
    }
}
