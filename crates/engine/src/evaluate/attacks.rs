//! The squares that each side attacks.

use shakmaty::{Bitboard, Color, Rank, Role, attacks};

use super::pawns::span;
use crate::board::Board;
use crate::features::Features;
use crate::generate::forward;
use crate::weights::{Count, MOBILITY};

/// The roles between pawn and king, in the order of the terms that have one of each.
pub(super) const PIECES: [Role; 4] = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen];
/// What the attack of a piece on a square beside the other king weighs.
const HITS: [usize; 4] = [2, 2, 3, 4];

/// What one side attacks.
pub(super) struct Attacks {
    /// By each role, pawns first.
    pub(super) by: [Bitboard; 6],
    pub(super) all: Bitboard,
    /// Squares that are attacked more than once.
    pub(super) twice: Bitboard,
    /// The weight of the attacks on squares beside the other king.
    pub(super) hits: usize,
}

impl Attacks {
    /// Looks at all pieces of a side, and counts what their reach is worth.
    pub(super) fn new<C: Count>(board: &Board, us: Color, features: &Features, sum: &mut C) -> Self {
        let nothing = Bitboard::EMPTY;
        let mut own = Attacks { by: [nothing; 6], all: nothing, twice: nothing, hits: 0 };
        let pawns = board.of(us, Role::Pawn);
        own.add(Role::Pawn, span(us, pawns));
        own.add(Role::King, attacks::king_attacks(board.king(us)));
        // A square does not count if a pawn takes there, or if an own pawn that cannot move or the king stands on it.
        let occupied = board.occupied();
        let unmoved = Bitboard::from_rank(us.relative_rank(Rank::Second));
        let stuck = pawns & (occupied.shift(-forward(us)) | unmoved);
        let free = !(span(!us, board.of(!us, Role::Pawn)) | stuck | board.of(us, Role::King));
        let ring = attacks::king_attacks(board.king(!us));
        // Bishops and rooks see through the queen that they support.
        let seen = occupied ^ board.of(us, Role::Queen);
        for (i, role) in PIECES.into_iter().enumerate() {
            for square in board.of(us, role) {
                let reached = match role {
                    Role::Knight => attacks::knight_attacks(square),
                    Role::Bishop => attacks::bishop_attacks(square, seen),
                    Role::Rook => attacks::rook_attacks(square, seen),
                    _ => attacks::queen_attacks(square, occupied),
                };
                own.add(role, reached);
                own.hits += HITS[i] * (reached & ring).count();
                if features.mobility {
                    sum.add(MOBILITY[i].0 + (reached & free).count(), 1);
                }
            }
        }
        own
    }

    #[inline]
    fn add(&mut self, role: Role, reached: Bitboard) {
        self.twice |= self.all & reached;
        self.all |= reached;
        self.by[role as usize - 1] |= reached;
    }

    #[inline]
    pub(super) fn by(&self, role: Role) -> Bitboard {
        self.by[role as usize - 1]
    }
}
