//! Pawns among themselves, remembered by the part of the key that stands for them.

use shakmaty::{Bitboard, Color, Role, Square, attacks};

use crate::board::Board;
use crate::generate::forward;
use crate::taper::Taper;
use crate::weights::{BACKWARD, Count, DOUBLED, ISOLATED, PASSED, PHALANX, PROTECTED};

/// Structures that are remembered. A power of two.
const REMEMBERED: usize = 1 << 14;

const FILE_A: u64 = 0x0101_0101_0101_0101;
const FILE_H: u64 = FILE_A << 7;

/// The file of a square.
#[inline]
pub(super) fn file_of(square: Square) -> Bitboard {
    Bitboard::from_file(square.file())
}

/// The squares that pawns attack.
#[inline]
pub(super) fn span(color: Color, pawns: Bitboard) -> Bitboard {
    let (west, east) = (Bitboard(pawns.0 & !FILE_A), Bitboard(pawns.0 & !FILE_H));
    if color.is_white() { west.shift(7) | east.shift(9) } else { west.shift(-9) | east.shift(-7) }
}

/// All squares ahead of some, in a side's direction.
#[inline]
pub(super) fn ahead(color: Color, squares: Bitboard) -> Bitboard {
    let step = forward(color);
    let mut filled = squares.shift(step);
    filled |= filled.shift(step);
    filled |= filled.shift(2 * step);
    filled | filled.shift(4 * step)
}

/// A file and its neighbours.
#[inline]
fn beside(file: Bitboard) -> Bitboard {
    Bitboard((file.0 & !FILE_A) >> 1 | (file.0 & !FILE_H) << 1)
}

/// What is known of a pawn structure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pawns {
    key: u64,
    /// In White's view.
    pub(crate) structure: Taper,
    /// Passed pawns of both sides.
    pub(crate) passed: Bitboard,
}

impl Pawns {
    fn new(board: &Board) -> Self {
        let (mut white, mut black) = (Taper::ZERO, Taper::ZERO);
        let passed = count(board, Color::White, &mut white) | count(board, Color::Black, &mut black);
        Pawns { key: board.pawn_key(), structure: white - black, passed }
    }
}

/// Counts the terms of one side's structure, and gives its passed pawns.
pub(super) fn count<C: Count>(board: &Board, us: Color, sum: &mut C) -> Bitboard {
    let (own, other) = (board.of(us, Role::Pawn), board.of(!us, Role::Pawn));
    // Where a pawn has one of the other side before it, or meets one's attack on its way.
    let attacked = span(!us, other);
    let held = ahead(!us, other | attacked) | attacked;
    let mut passed = Bitboard::EMPTY;
    for square in own {
        let bit = Bitboard::from_square(square);
        let (beside_it, rank) = (beside(bit), us.relative_rank(square.rank()).to_usize());
        let neighbours = beside(file_of(square)) & own;
        let doubled = (ahead(us, bit) & own).any();
        if doubled {
            sum.add(DOUBLED, 1);
        }
        let protected = (attacks::pawn_attacks(!us, square) & own).any();
        if protected {
            sum.add(PROTECTED + rank, 1);
        }
        if (beside_it & own).any() {
            sum.add(PHALANX + rank, 1);
        } else if neighbours.is_empty() {
            sum.add(ISOLATED, 1);
        } else if !protected
            && (neighbours & ahead(!us, beside_it)).is_empty()
            && (bit.shift(forward(us)) & attacked).any()
        {
            sum.add(BACKWARD, 1);
        }
        if !doubled && !held.contains(square) {
            sum.add(PASSED + rank, 1);
            passed |= bit;
        }
    }
    passed
}

/// Pawn structures that were met before.
pub(crate) struct PawnCache {
    known: Box<[Pawns]>,
}

impl PawnCache {
    pub(crate) fn new() -> Self {
        // No pawns have the key 0 and nothing to say.
        let nothing = Pawns { key: 0, structure: Taper::ZERO, passed: Bitboard::EMPTY };
        PawnCache { known: vec![nothing; REMEMBERED].into() }
    }

    #[inline]
    pub(crate) fn get(&mut self, board: &Board) -> Pawns {
        let place = &mut self.known[board.pawn_key() as usize % REMEMBERED];
        if place.key != board.pawn_key() {
            *place = Pawns::new(board);
        }
        *place
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::{Bitboard, Color, Role, Square, attacks};

    use super::{PawnCache, Pawns, ahead, beside, file_of, span};
    use crate::board::Board;
    use crate::taper::Taper;
    use crate::testing::{board, random_positions};
    use crate::weights::{BACKWARD, DOUBLED, ISOLATED, PASSED, PHALANX, PROTECTED, VALUES};

    #[test]
    fn spans_are_those_of_single_pawns() {
        random_positions(1, |game, _| {
            let board = Board::from(game.position());
            for color in [Color::White, Color::Black] {
                let pawns = board.of(color, Role::Pawn);
                let each = pawns.into_iter().fold(Bitboard::EMPTY, |all, s| all | attacks::pawn_attacks(color, s));
                assert_eq!(span(color, pawns), each);
            }
        });
        let e4 = Bitboard::from_square(Square::E4);
        assert_eq!(
            ahead(Color::White, e4).into_iter().collect::<Vec<_>>(),
            [Square::E5, Square::E6, Square::E7, Square::E8]
        );
        assert_eq!(ahead(Color::Black, e4).into_iter().collect::<Vec<_>>(), [Square::E1, Square::E2, Square::E3]);
        assert_eq!(beside(file_of(Square::A1)), file_of(Square::B1));
        assert_eq!(beside(file_of(Square::E1)), file_of(Square::D1) | file_of(Square::F1));
    }

    #[test]
    fn structures() {
        let of = |fen: &str| Pawns::new(&board(fen));
        let squares = |list: &[Square]| list.iter().copied().collect::<Bitboard>();
        let (isolated, doubled) = (VALUES[ISOLATED], VALUES[DOUBLED]);
        let (passed, protected) = (|rank: usize| VALUES[PASSED + rank], |rank: usize| VALUES[PROTECTED + rank]);
        let lone = of("4k3/8/8/4P3/8/8/8/4K3 w - - 0 1");
        assert_eq!((lone.structure, lone.passed), (isolated + passed(4), squares(&[Square::E5])));
        let held = of("4k3/3p4/8/4P3/8/8/8/4K3 w - - 0 1");
        assert_eq!((held.structure, held.passed), (Taper::ZERO, Bitboard::EMPTY), "each stops the other");
        let beyond = of("4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1");
        assert_eq!(beyond.passed, squares(&[Square::D5, Square::E5]));
        assert_eq!(beyond.structure, passed(4) - passed(3));
        let twins = of("4k3/8/8/4P3/4P3/8/8/4K3 w - - 0 1");
        assert_eq!((twins.structure, twins.passed), (isolated * 2 + doubled + passed(4), squares(&[Square::E5])));
        let backward = of("4k3/8/8/2p1p3/4P3/3P4/8/4K3 w - - 0 1");
        assert_eq!(backward.structure, VALUES[BACKWARD] + protected(3) - isolated * 2);
        assert_eq!(backward.passed, Bitboard::EMPTY);
        let beside = of("4k3/4p3/3p4/8/8/8/PP6/4K3 w - - 0 1");
        let white = (VALUES[PHALANX + 1] + passed(1)) * 2;
        assert_eq!(beside.structure, white - protected(2) - passed(2) - passed(1));
    }

    #[test]
    fn what_is_remembered_is_what_is_computed() {
        let mut cache = PawnCache::new();
        random_positions(2, |game, _| {
            let board = Board::from(game.position());
            assert_eq!(cache.get(&board), Pawns::new(&board));
        });
    }
}
