//! The pawns around each king, and the pieces that come near it.

use shakmaty::{Bitboard, Color, File, Role, attacks};

use super::attacks::{Attacks, PIECES};
use super::pawns::ahead;
use crate::board::Board;
use crate::weights::{Count, DANGER, SHELTER, SHELTER_BESIDE, STORM, STORM_BESIDE, STORM_STOPPED};

/// What a check by a piece weighs that cannot be taken.
const CHECKS: [usize; 4] = [7, 4, 8, 6];
/// What a square beside the king weighs that only it protects.
const WEAK: usize = 2;
/// How much weight makes a step of the danger, and the highest.
const STEP: usize = 3;
const HIGHEST: usize = 19;

/// Counts the terms of a side's king and of its attack on the other.
pub(super) fn count<C: Count>(board: &Board, us: Color, own: &Attacks, other: &Attacks, sum: &mut C) {
    shelter(board, us, sum);
    sum.add(DANGER + danger(board, us, own, other), 1);
}

/// The pawns before a king.
fn shelter<C: Count>(board: &Board, us: Color, sum: &mut C) {
    let king = board.king(us);
    let rank = Bitboard::from_rank(king.rank());
    let front = board.by_role(Role::Pawn) & (rank | ahead(us, rank));
    // The rank of the pawn nearest to the king's, 0 if there is none.
    let nearest = |pawns: Bitboard| {
        let square = if us.is_white() { pawns.first() } else { pawns.last() };
        square.map_or(0, |square| us.relative_rank(square.rank()).to_usize())
    };
    // A king at the edge has three files before it too.
    let middle = u32::from(king.file()).clamp(1, 6);
    for file in middle - 1..=middle + 1 {
        let file = File::new(file);
        let pawns = front & Bitboard::from_file(file);
        let (own, other) = (nearest(pawns & board.by_color(us)), nearest(pawns & board.by_color(!us)));
        let (shelter, storm) = if file == king.file() { (SHELTER, STORM) } else { (SHELTER_BESIDE, STORM_BESIDE) };
        sum.add(shelter + own, 1);
        let stopped = own > 0 && other == own + 1;
        sum.add(if stopped { STORM_STOPPED } else { storm } + other, 1);
    }
}

/// The step of the danger that a side is to the other king.
fn danger(board: &Board, us: Color, own: &Attacks, other: &Attacks) -> usize {
    let king = board.king(!us);
    let mut weight = own.hits;
    // Squares from which a check could not be answered by taking the piece.
    let safe = !board.by_color(us) & (!other.all | (own.twice & !other.twice & other.by(Role::King)));
    let occupied = board.occupied();
    let (diagonal, straight) = (attacks::bishop_attacks(king, occupied), attacks::rook_attacks(king, occupied));
    let lines = [attacks::knight_attacks(king), diagonal, straight, diagonal | straight];
    for (i, role) in PIECES.into_iter().enumerate() {
        if (lines[i] & own.by(role) & safe).any() {
            weight += CHECKS[i];
        }
    }
    weight += WEAK * (other.by(Role::King) & own.all & !other.twice).count();
    if board.of(us, Role::Queen).is_empty() {
        weight /= 2;
    }
    (weight / STEP).min(HIGHEST)
}
