//! Castling rights.

use shakmaty::zobrist::{Zobrist64, ZobristValue};
use shakmaty::{Castles, CastlingSide, Color, Square};

/// Which castlings king and rook may still make, as far as they have not moved: a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rights(u8);

const WHITE_KING_SIDE: u8 = 1;
const WHITE_QUEEN_SIDE: u8 = 2;
const BLACK_KING_SIDE: u8 = 4;
const BLACK_QUEEN_SIDE: u8 = 8;

const SIDES: [(u8, Color, CastlingSide); 4] = [
    (WHITE_KING_SIDE, Color::White, CastlingSide::KingSide),
    (WHITE_QUEEN_SIDE, Color::White, CastlingSide::QueenSide),
    (BLACK_KING_SIDE, Color::Black, CastlingSide::KingSide),
    (BLACK_QUEEN_SIDE, Color::Black, CastlingSide::QueenSide),
];

/// What a move from or to a square leaves.
static KEPT: [u8; 64] = {
    let mut kept = [0b1111; 64];
    let corners: [(Square, u8); 6] = [
        (Square::H1, WHITE_KING_SIDE),
        (Square::A1, WHITE_QUEEN_SIDE),
        (Square::H8, BLACK_KING_SIDE),
        (Square::A8, BLACK_QUEEN_SIDE),
        (Square::E1, WHITE_KING_SIDE | WHITE_QUEEN_SIDE),
        (Square::E8, BLACK_KING_SIDE | BLACK_QUEEN_SIDE),
    ];
    let mut i = 0;
    while i < corners.len() {
        kept[corners[i].0 as usize] &= !corners[i].1;
        i += 1;
    }
    kept
};

impl Rights {
    pub(super) const NONE: Rights = Rights(0);

    pub(super) fn of(castles: &Castles) -> Self {
        let held = SIDES.iter().filter(|(_, color, side)| castles.has(*color, *side));
        Rights(held.fold(0, |rights, (bit, ..)| rights | bit))
    }

    #[inline]
    pub(super) fn has(self, color: Color, side: CastlingSide) -> bool {
        let bit = match (color, side) {
            (Color::White, CastlingSide::KingSide) => WHITE_KING_SIDE,
            (Color::White, CastlingSide::QueenSide) => WHITE_QUEEN_SIDE,
            (Color::Black, CastlingSide::KingSide) => BLACK_KING_SIDE,
            (Color::Black, CastlingSide::QueenSide) => BLACK_QUEEN_SIDE,
        };
        self.0 & bit != 0
    }

    /// Drops those that a move between two squares ends. Gives the key of what was dropped.
    #[inline]
    pub(super) fn leave(&mut self, from: Square, to: Square) -> u64 {
        let left = self.0 & KEPT[from as usize] & KEPT[to as usize];
        if left == self.0 {
            return 0;
        }
        let dropped = Rights(self.0 ^ left);
        self.0 = left;
        dropped.key()
    }

    /// Their part of the Zobrist key.
    pub(super) fn key(self) -> u64 {
        let held = SIDES.iter().filter(|(bit, ..)| self.0 & bit != 0);
        held.fold(0, |key, (_, color, side)| key ^ Zobrist64::zobrist_for_castling_right(*color, *side).0)
    }
}
