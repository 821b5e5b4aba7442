//! What a stored move says about the board.

use games::{Move, Promotion};
use shakmaty::{Role, Square};

/// No move: a1a1 is none.
pub(crate) const NONE: Move = Move(0);

/// The parts of a stored move.
pub(crate) trait Parts: Copy {
    /// Where it begins.
    fn from(self) -> Square;
    /// Where it ends; the king's square for castling.
    fn to(self) -> Square;
    /// What a pawn becomes.
    fn promotion(self) -> Option<Role>;
    /// `from * 64 + to`, as history tables are indexed.
    fn squares(self) -> usize;
}

impl Parts for Move {
    #[inline]
    fn from(self) -> Square {
        Square::new(u32::from(self.0 & 63))
    }

    #[inline]
    fn to(self) -> Square {
        Square::new(u32::from(self.0 >> 6 & 63))
    }

    #[inline]
    fn promotion(self) -> Option<Role> {
        if self.0 < 1 << 12 { None } else { Promotion::role(self) }
    }

    #[inline]
    fn squares(self) -> usize {
        usize::from(self.0 & 63) << 6 | usize::from(self.0 >> 6 & 63)
    }
}

/// A move between two squares.
#[inline]
pub(crate) fn plain(from: Square, to: Square) -> Move {
    Move(u16::from(from) | u16::from(to) << 6)
}

/// A pawn's move to the last rank.
#[inline]
pub(crate) fn promoting(from: Square, to: Square, role: Role) -> Move {
    // Knight 1 .. queen 4, one less than shakmaty's numbers.
    Move(plain(from, to).0 | (role as u16 - 1) << 12)
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game};
    use shakmaty::{Role, Square};

    use super::{NONE, Parts, plain, promoting};

    #[test]
    fn moves_are_those_of_the_datasets() {
        let game = Chess::from_fen("3r3k/2P5/8/8/8/8/8/K7 w - - 0 1").unwrap();
        for (text, role) in
            [("c7d8n", Role::Knight), ("c7d8b", Role::Bishop), ("c7d8r", Role::Rook), ("c7d8q", Role::Queen)]
        {
            let m = game.parse_move(text).unwrap();
            assert_eq!(m, promoting(Square::C7, Square::D8, role), "{text}");
            assert_eq!((m.from(), m.to(), m.promotion()), (Square::C7, Square::D8, Some(role)), "{text}");
        }
        let step = game.parse_move("a1b2").unwrap();
        assert_eq!((step, step.promotion()), (plain(Square::A1, Square::B2), None));
        assert_eq!(step.squares(), 9);
        assert!(game.legal_moves().iter().all(|m| *m != NONE));
    }
}
