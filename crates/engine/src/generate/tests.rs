use games::Move;
use shakmaty::{Position, Role};

use super::Part;
use crate::board::Board;
use crate::moves::Parts;
use crate::testing::{FENS, board, random_positions};

#[test]
fn the_generated_moves_are_those_of_the_rules() {
    random_positions(12, |game, expected| {
        let board = Board::from(game.position());
        let mut moves = Vec::new();
        board.legal_moves(|m| moves.push(m));
        moves.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(moves, expected, "{game:?}");
        assert_eq!(board.has_legal_move(), !expected.is_empty());
    });
}

#[test]
fn the_noisy_moves_take_something_or_make_a_queen() {
    random_positions(4, |game, all| {
        let board = Board::from(game.position());
        let (mut noisy, mut quiet) = (Vec::new(), Vec::new());
        board.generate(Part::Noisy, &mut |m| noisy.push(m));
        board.generate(Part::Quiet, &mut |m| quiet.push(m));
        assert_eq!(noisy.len() + quiet.len(), all.len());
        for (m, is_noisy) in noisy.iter().map(|m| (m, true)).chain(quiet.iter().map(|m| (m, false))) {
            let takes = game.position().board().role_at(m.to()).is_some() || board.is_en_passant(*m);
            assert_eq!(takes || m.promotion() == Some(Role::Queen), is_noisy, "{m:?} in {game:?}");
            assert_eq!(board.is_noisy(*m), is_noisy);
        }
    });
}

/// Every code is asked, as the table can hold any: those of no move, of other promotions and of moves that leave the
/// king in check too.
#[test]
fn exactly_the_generated_moves_are_legal() {
    let mut boards: Vec<Board> = FENS.iter().map(|fen| board(fen)).collect();
    let mut count = 0;
    random_positions(2, |game, _| {
        count += 1;
        if count % 40 == 0 || (game.is_check() && count % 5 == 0) {
            boards.push(Board::from(game.position()));
        }
    });
    for board in boards {
        let mut legal = Vec::new();
        board.legal_moves(|m| legal.push(m));
        for m in (0..=u16::MAX).map(Move) {
            assert_eq!(board.is_legal(m), legal.contains(&m), "{m:?} in {board:?}");
        }
    }
}
