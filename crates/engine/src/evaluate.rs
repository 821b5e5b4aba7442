//! The static evaluation, in whole centipawns: the same on every machine, and exactly opposite for the position with
//! colors exchanged.

use shakmaty::{Bitboard, Color, Rank, Role, attacks};

use crate::board::Board;
use crate::features::Features;
use crate::generate::forward;
use crate::score::MOST_EVALUATION;
use crate::taper::{Taper, t};
use crate::weights::{
    ATTACKERS, BISHOP_PAIR, DANGER_LIMIT, DANGER_PART, KING_FILE_HALF_OPEN, KING_FILE_OPEN, MOBILITY, PASSER_KINGS,
    ROOK_HALF_OPEN, ROOK_OPEN, SHIELD_FAR, SHIELD_NEAR, TEMPO,
};

mod endings;
mod pawns;

pub(crate) use pawns::PawnCache;
use pawns::{Pawns, file_of, span};

/// The evaluation in the view of the side to move.
pub(crate) fn evaluate(board: &Board, features: &Features, cache: &mut PawnCache) -> i32 {
    let mut sum = board.placed();
    if features.pawn_structure {
        let pawns = cache.get(board);
        sum += pawns.structure;
        sum += passers(board, &pawns, Color::White) - passers(board, &pawns, Color::Black);
    }
    sum += pieces(board, features, Color::White) - pieces(board, features, Color::Black);
    let mut white = sum.at(board.phase());
    if features.draw_scaling {
        white = white * endings::share(board, white) / endings::WHOLE;
    }
    let mover = if board.turn().is_white() { white } else { -white };
    (mover + TEMPO).clamp(-MOST_EVALUATION, MOST_EVALUATION)
}

/// What the kings make of passed pawns: in the endgame they decide which get through.
fn passers(board: &Board, pawns: &Pawns, us: Color) -> Taper {
    let mut sum = Taper::ZERO;
    for square in pawns.passed & board.by_color(us) {
        let Some(ahead) = square.offset(forward(us)) else { continue };
        let advance = us.relative_rank(square.rank()) as i32;
        let distance = |color| board.king(color).distance(ahead) as i32;
        sum += PASSER_KINGS * ((2 * distance(!us) - distance(us)) * advance);
    }
    sum
}

/// What the pieces of one side are worth by where they stand to pawns, lines and the other king.
fn pieces(board: &Board, features: &Features, us: Color) -> Taper {
    let (own, other) = (board.of(us, Role::Pawn), board.of(!us, Role::Pawn));
    let mut sum = Taper::ZERO;
    if features.bishop_pair && board.of(us, Role::Bishop).more_than_one() {
        sum += BISHOP_PAIR;
    }
    if features.rook_files {
        for rook in board.of(us, Role::Rook) {
            sum += on_file(file_of(rook), own, other, ROOK_OPEN, ROOK_HALF_OPEN);
        }
    }
    if features.king_safety {
        let king = board.king(us);
        let before = attacks::king_attacks(king) & Bitboard::from_rank(king.rank()).shift(forward(us));
        sum +=
            SHIELD_NEAR * (before & own).count() as i32 + SHIELD_FAR * (before.shift(forward(us)) & own).count() as i32;
        sum += on_file(file_of(king), own, other, KING_FILE_OPEN, KING_FILE_HALF_OPEN);
    }
    if features.mobility || features.king_safety {
        sum += activity(board, features, us);
    }
    sum
}

/// `open` for a file without pawns, `half` for one without own pawns.
fn on_file(file: Bitboard, own: Bitboard, other: Bitboard, open: Taper, half: Taper) -> Taper {
    match ((file & own).is_empty(), (file & other).is_empty()) {
        (true, true) => open,
        (true, false) => half,
        _ => Taper::ZERO,
    }
}

/// The squares that the pieces of one side reach, and those of them around the other king.
fn activity(board: &Board, features: &Features, us: Color) -> Taper {
    let king = board.king(!us);
    let zone = attacks::king_attacks(king) | king;
    let (occupied, own) = (board.occupied(), board.of(us, Role::Pawn));
    // A square does not count if a pawn takes there, or if an own pawn that cannot move or the king stands on it.
    let unmoved = Bitboard::from_rank(us.relative_rank(Rank::Second));
    let stuck = own & (occupied.shift(-forward(us)) | unmoved);
    let free = !(span(!us, board.of(!us, Role::Pawn)) | stuck | board.of(us, Role::King));
    // Sliders see through the queen that they support.
    let seen = occupied ^ board.of(us, Role::Queen);
    let mut sum = Taper::ZERO;
    let (mut attackers, mut weight) = (0, 0);
    for (i, role) in [Role::Knight, Role::Bishop, Role::Rook, Role::Queen].into_iter().enumerate() {
        for square in board.of(us, role) {
            let reached = match role {
                Role::Knight => attacks::knight_attacks(square),
                Role::Bishop => attacks::bishop_attacks(square, seen),
                Role::Rook => attacks::rook_attacks(square, seen),
                _ => attacks::queen_attacks(square, occupied),
            };
            if features.mobility {
                let (step, usual) = MOBILITY[i];
                sum += step * ((reached & free).count() as i32 - usual);
            }
            let near = (reached & zone).count() as i32;
            attackers += i32::from(near > 0);
            weight += ATTACKERS[i] * near;
        }
    }
    // One attacker alone, or several without a queen, do not mate.
    if features.king_safety && attackers >= 2 && board.of(us, Role::Queen).any() {
        sum += t((weight * weight / DANGER_PART).min(DANGER_LIMIT), 0);
    }
    sum
}

#[cfg(test)]
mod tests;
