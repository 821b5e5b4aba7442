//! Pieces by where they stand to pawns, files and the other side's pieces.

use shakmaty::{Bitboard, Color, Rank, Role};

use super::attacks::{Attacks, PIECES};
use super::pawns::{ahead, file_of, span};
use crate::board::Board;
use crate::features::Features;
use crate::generate::forward;
use crate::weights::{
    BISHOP_AWAY, BISHOP_OUTPOST, BISHOP_PAIR, BISHOP_PAWNS, CONTESTED, Count, KNIGHT_AWAY, KNIGHT_OUTPOST, LOOSE_PAWN,
    LOOSE_PIECE, MINOR_THREAT, PAWN_THREAT, PUSH_THREAT, ROOK_HALF_OPEN, ROOK_OPEN, ROOK_THREAT,
};

/// The fourth to the sixth rank of Black and of White.
const BEYOND: [Bitboard; 2] = [Bitboard(0xFF_FFFF << 16), Bitboard(0xFF_FFFF << 24)];

/// Counts the terms of a side's pieces.
pub(super) fn count<C: Count>(
    board: &Board,
    features: &Features,
    us: Color,
    own: &Attacks,
    other: &Attacks,
    sum: &mut C,
) {
    if features.bishop_pair && board.of(us, Role::Bishop).more_than_one() {
        sum.add(BISHOP_PAIR, 1);
    }
    if features.rook_files {
        rooks(board, us, sum);
    }
    if features.minor_pieces {
        minor_pieces(board, us, own, sum);
    }
    if features.threats {
        threats(board, us, own, other, sum);
    }
}

fn rooks<C: Count>(board: &Board, us: Color, sum: &mut C) {
    for rook in board.of(us, Role::Rook) {
        let pawns = board.by_role(Role::Pawn) & file_of(rook);
        if pawns.is_empty() {
            sum.add(ROOK_OPEN, 1);
        } else if (pawns & board.by_color(us)).is_empty() {
            sum.add(ROOK_HALF_OPEN, 1);
        }
    }
}

fn minor_pieces<C: Count>(board: &Board, us: Color, own: &Attacks, sum: &mut C) {
    let driven = span(!us, board.of(!us, Role::Pawn));
    let safe = BEYOND[us as usize] & own.by(Role::Pawn) & !(driven | ahead(!us, driven));
    let (knights, bishops, pawns) = (board.of(us, Role::Knight), board.of(us, Role::Bishop), board.of(us, Role::Pawn));
    sum.add(KNIGHT_OUTPOST, (knights & safe).count() as i32);
    sum.add(BISHOP_OUTPOST, (bishops & safe).count() as i32);
    let on = |color: Bitboard| ((bishops & color).count() * (pawns & color).count()) as i32;
    let king = board.king(us);
    let away = |pieces: Bitboard| pieces.into_iter().map(|square| king.distance(square) as i32).sum();
    sum.add(KNIGHT_AWAY, away(knights));
    sum.add(BISHOP_AWAY, away(bishops));
    sum.add(BISHOP_PAWNS, on(Bitboard::LIGHT_SQUARES) + on(Bitboard::DARK_SQUARES));
}

/// Pieces of the other side that are under attack, or will be after a pawn's step.
fn threats<C: Count>(board: &Board, us: Color, own: &Attacks, other: &Attacks, sum: &mut C) {
    let (by_pawn, by_rook) = (own.by(Role::Pawn), own.by(Role::Rook));
    let by_minor = own.by(Role::Knight) | own.by(Role::Bishop);
    for (i, role) in PIECES.into_iter().enumerate() {
        let targets = board.of(!us, role);
        sum.add(PAWN_THREAT + i, (targets & by_pawn).count() as i32);
        sum.add(MINOR_THREAT + i, (targets & by_minor & !by_pawn).count() as i32);
        sum.add(ROOK_THREAT + i, (targets & by_rook & !by_pawn & !by_minor).count() as i32);
    }
    let pawns = board.by_role(Role::Pawn);
    let loose = board.by_color(!us) & own.all & !other.all;
    sum.add(LOOSE_PAWN, (loose & pawns).count() as i32);
    sum.add(LOOSE_PIECE, (loose & !pawns & !board.by_role(Role::King)).count() as i32);

    let held = other.by(Role::Pawn) | (other.twice & !own.twice);
    sum.add(CONTESTED, (own.all & other.all & !held).count() as i32);

    let (free, step) = (!board.occupied(), forward(us));
    let third = Bitboard::from_rank(us.relative_rank(Rank::Third));
    let once = (pawns & board.by_color(us)).shift(step) & free;
    let stepped = once | ((once & third).shift(step) & free);
    let safe = stepped & !other.by(Role::Pawn) & (own.all | !other.all);
    let targets = board.by_color(!us) & !pawns & !by_pawn;
    sum.add(PUSH_THREAT, (span(us, safe) & targets).count() as i32);
}
