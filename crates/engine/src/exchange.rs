//! What a capture wins or loses if both sides go on taking on its square, the least valuable piece first.

use games::Move;
use shakmaty::{Bitboard, Role, Square, attacks};

use crate::board::Board;
use crate::moves::Parts;
use crate::weights::EXCHANGE;

/// Roles from the least valuable on.
const ASCENDING: [Role; 6] = [Role::Pawn, Role::Knight, Role::Bishop, Role::Rook, Role::Queen, Role::King];

/// The value of a role in an exchange, in centipawns.
#[inline]
pub(crate) fn value(role: Role) -> i32 {
    EXCHANGE[role as usize - 1]
}

impl Board {
    /// Whether the mover has at least `threshold` centipawns more after the move and the best captures on its square,
    /// where either side may stop. Pins and promotions after the first move are not looked at.
    pub(crate) fn wins_exchange(&self, m: Move, threshold: i32) -> bool {
        let Some(moved) = self.role(m.from()) else { return false };
        let promoted = m.promotion().unwrap_or(moved);
        let won = self.captured(m).map_or(0, value) + value(promoted) - value(moved);
        // What is left above the threshold, for the side that has just moved: first if nothing is taken back...
        let mut balance = won - threshold;
        if balance < 0 {
            return false;
        }
        // ...and then if the piece is lost for nothing.
        balance -= value(promoted);
        if balance >= 0 {
            return true;
        }
        let (us, to) = (self.turn(), m.to());
        let mut occupied = (self.occupied() ^ Bitboard::from_square(m.from())) | Bitboard::from_square(to);
        if self.is_en_passant(m) {
            occupied ^= Bitboard::from_square(to.xor(Square::A2));
        }
        let mut attackers = self.attackers(to, occupied) & occupied;
        let mut side = !us;
        while let Some((role, from)) = self.least(attackers & self.by_color(side)) {
            occupied ^= Bitboard::from_square(from);
            attackers = (attackers | self.behind(role, to, occupied)) & occupied;
            side = !side;
            balance = -balance - 1 - value(role);
            if balance >= 0 {
                // A king cannot take what is protected, so its side has to stop.
                if role == Role::King && (attackers & self.by_color(side)).any() {
                    side = !side;
                }
                break;
            }
        }
        // The side that cannot or need not go on has lost.
        side != us
    }

    fn least(&self, pieces: Bitboard) -> Option<(Role, Square)> {
        if pieces.is_empty() {
            return None;
        }
        ASCENDING.into_iter().find_map(|role| (pieces & self.by_role(role)).first().map(|square| (role, square)))
    }

    /// Sliders that look at a square through the place that a piece of a role has left.
    #[inline]
    fn behind(&self, role: Role, to: Square, occupied: Bitboard) -> Bitboard {
        let mut found = Bitboard::EMPTY;
        if matches!(role, Role::Pawn | Role::Bishop | Role::Queen) {
            found |= attacks::bishop_attacks(to, occupied) & (self.by_role(Role::Bishop) | self.by_role(Role::Queen));
        }
        if matches!(role, Role::Rook | Role::Queen) {
            found |= attacks::rook_attacks(to, occupied) & (self.by_role(Role::Rook) | self.by_role(Role::Queen));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game, Move};
    use shakmaty::{Bitboard, Color, Role, Square};

    use super::{ASCENDING, value};
    use crate::board::Board;
    use crate::moves::Parts;
    use crate::testing::random_positions;

    /// The gain of the side to take on `to`, or 0 if it had better not: all the attackers counted anew at each step.
    fn gain(board: &Board, to: Square, on_it: Role, side: Color, occupied: Bitboard) -> i32 {
        let attackers = |side| board.attackers(to, occupied) & board.by_color(side) & occupied;
        let own = attackers(side);
        let Some((role, from)) =
            ASCENDING.into_iter().find_map(|r| (own & board.by_role(r)).first().map(|square| (r, square)))
        else {
            return 0;
        };
        let left = occupied ^ Bitboard::from_square(from);
        if role == Role::King && (board.attackers(to, left) & board.by_color(!side) & left).any() {
            return 0;
        }
        (value(on_it) - gain(board, to, role, !side, left)).max(0)
    }

    fn exchange(board: &Board, m: Move) -> i32 {
        let (moved, to) = (board.role(m.from()).unwrap(), m.to());
        let promoted = m.promotion().unwrap_or(moved);
        let mut occupied = (board.occupied() ^ Bitboard::from_square(m.from())) | Bitboard::from_square(to);
        if board.is_en_passant(m) {
            occupied ^= Bitboard::from_square(Square::from_coords(to.file(), m.from().rank()));
        }
        let won = board.captured(m).map_or(0, value) + value(promoted) - value(moved);
        won - gain(board, to, promoted, !board.turn(), occupied)
    }

    #[test]
    fn exchanges_are_those_of_a_search_on_one_square() {
        let mut compared = 0;
        random_positions(6, |game, moves| {
            let board = Board::from(game.position());
            for m in moves {
                let exact = exchange(&board, *m);
                for threshold in [exact - 1, exact, exact + 1, -100, 0, 1, 300] {
                    let what = format!("{} in {}, {exact}, at least {threshold}", game.move_text(*m), game.fen());
                    assert_eq!(board.wins_exchange(*m, threshold), exact >= threshold, "{what}");
                }
                compared += usize::from(exact != 0);
            }
        });
        assert!(compared > 10_000, "{compared}");
    }

    #[test]
    fn known_exchanges() {
        for (fen, text, expected) in [
            ("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5", 100),
            ("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1", "d3e5", -220),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", 100),
            ("3r3k/2P5/8/8/8/8/8/K7 w - - 0 1", "c7d8q", 500 + 850),
            ("3r2rk/2P5/8/8/8/8/8/K7 w - - 0 1", "c7d8q", 500 + 850 - 950),
            ("4k3/8/8/3p4/8/8/8/3QK3 w - - 0 1", "d1d5", 100),
            ("4k3/8/4p3/3p4/8/8/8/3QK3 w - - 0 1", "d1d5", 100 - 950),
            ("8/8/8/3pk3/8/8/8/3RK3 w - - 0 1", "d1d5", 100 - 500),
            ("8/8/8/3pk3/8/8/3R4/3RK3 w - - 0 1", "d2d5", 100),
            ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", 0),
        ] {
            let game = Chess::from_fen(fen).unwrap();
            let board = Board::from(game.position());
            let m = game.parse_move(text).unwrap();
            assert!(board.wins_exchange(m, expected) && !board.wins_exchange(m, expected + 1), "{fen} {text}");
        }
    }
}
