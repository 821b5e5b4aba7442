//! The static evaluation, in whole centipawns: the same on every machine, and exactly opposite for the position with
//! colors exchanged.

use shakmaty::{Bitboard, Color, Role};

use crate::board::Board;
use crate::features::Features;
use crate::score::MOST_EVALUATION;
use crate::taper::Taper;
use crate::weights::{Count, TEMPO, VALUES};

mod attacks;
mod endings;
mod king;
mod passers;
mod pawns;
mod pieces;

use attacks::Attacks;
pub(crate) use pawns::PawnCache;

/// The evaluation in the view of the side to move.
pub(crate) fn evaluate(board: &Board, features: &Features, cache: &mut PawnCache) -> i32 {
    let (mut sum, mut passed) = (board.placed(), Bitboard::EMPTY);
    if features.pawn_structure {
        let pawns = cache.get(board);
        (sum, passed) = (sum + pawns.structure, pawns.passed);
    }
    let (mut white, mut black) = (Taper::ZERO, Taper::ZERO);
    count(board, features, passed, &mut white, &mut black);
    sum += white - black + VALUES[TEMPO] * if board.turn().is_white() { 1 } else { -1 };
    let mut white = sum.at(board.phase());
    if features.draw_scaling {
        white = white * endings::share(board, white) / endings::WHOLE;
    }
    let mover = if board.turn().is_white() { white } else { -white };
    mover.clamp(-MOST_EVALUATION, MOST_EVALUATION)
}

/// Counts all terms of both sides but those that a board or the pawn cache keeps, and the tempo. `passed` are the
/// passed pawns to look at.
fn count<C: Count>(board: &Board, features: &Features, passed: Bitboard, white: &mut C, black: &mut C) {
    let whites = Attacks::new(board, Color::White, features, white);
    let blacks = Attacks::new(board, Color::Black, features, black);
    for (us, own, other, sum) in [(Color::White, &whites, &blacks, white), (Color::Black, &blacks, &whites, black)] {
        pieces::count(board, features, us, own, other, sum);
        if features.king_safety {
            king::count(board, us, own, other, sum);
        }
        passers::count(board, us, passed & board.by_color(us), other, sum);
    }
}

/// Counts every term of both sides; whether all of the evaluation counts.
pub(crate) fn count_all<C: Count>(board: &Board, features: &Features, white: &mut C, black: &mut C) -> bool {
    for (us, sum) in [(Color::White, &mut *white), (Color::Black, &mut *black)] {
        for role in Role::ALL {
            for square in board.of(us, role) {
                sum.add(crate::weights::place(us, role, square), 1);
            }
        }
        if board.turn() == us {
            sum.add(TEMPO, 1);
        }
    }
    let passed = pawns::count(board, Color::White, white) | pawns::count(board, Color::Black, black);
    count(board, features, passed, white, black);
    // Whoever is ahead.
    [-1, 1].into_iter().all(|view| endings::share(board, view) == endings::WHOLE)
}

#[cfg(test)]
mod tests;
