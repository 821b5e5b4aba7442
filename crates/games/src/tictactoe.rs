//! Tic-tac-toe.

use crate::{
    Color, Game, GameError, GameResult, Move, Outcome, Packed, Reference, Shape, Solver, Symmetry, Termination,
};

/// A tic-tac-toe position. A [`Move`] is the cell, `row * 3 + column` with row 0 at the bottom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TicTacToe {
    /// Marks of the side to move, then of the other.
    marks: [u16; 2],
}

const LINES: [u16; 8] = [0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124];

fn has_line(marks: u16) -> bool {
    LINES.iter().any(|l| marks & l == *l)
}

impl Game for TicTacToe {
    const NAME: &'static str = "tictactoe";
    const SHAPE: Shape = Shape { bit_planes: 3, scalar_planes: 0, height: 3, width: 3, policy_planes: 1 };

    fn start() -> Self {
        TicTacToe::default()
    }

    /// Rows from the top, `x` for White (who moves first), `o` for Black, digits for empty cells, then who is to move.
    fn from_fen(text: &str) -> Result<Self, GameError> {
        let (white, black, turn) = parse_rows("tictactoe", text, 3, 3)?;
        let marks = if turn == Color::White { [white as u16, black as u16] } else { [black as u16, white as u16] };
        if has_line(marks[0]) {
            let reason = "the side to move has already won".to_owned();
            return Err(GameError::Position { game: "tictactoe", text: text.to_owned(), reason });
        }
        Ok(TicTacToe { marks })
    }

    fn fen(&self) -> String {
        let [mover, other] = self.marks.map(u64::from);
        let (white, black) = if self.turn() == Color::White { (mover, other) } else { (other, mover) };
        format_rows(white, black, self.turn(), 3, 3)
    }

    fn turn(&self) -> Color {
        if (self.marks[0] | self.marks[1]).count_ones().is_multiple_of(2) { Color::White } else { Color::Black }
    }

    fn generate(&self, moves: &mut Vec<Move>) -> Outcome {
        moves.clear();
        if has_line(self.marks[1]) {
            return Outcome::Decided { result: GameResult::win(self.turn().other()), reason: Termination::Line };
        }
        let filled = self.marks[0] | self.marks[1];
        moves.extend((0..9).filter(|c| filled >> c & 1 == 0).map(Move));
        if moves.is_empty() {
            return Outcome::Decided { result: GameResult::Draw, reason: Termination::BoardFull };
        }
        Outcome::Ongoing
    }

    fn play(&mut self, m: Move) {
        self.marks = [self.marks[1], self.marks[0] | 1 << m.0];
    }

    fn index(&self, m: Move) -> u16 {
        m.0
    }

    fn pack(&self) -> Packed {
        let mut packed = Packed::default();
        packed.bits[..3].copy_from_slice(&[u64::from(self.marks[0]), u64::from(self.marks[1]), 0o777]);
        packed
    }

    fn move_text(&self, m: Move) -> String {
        (m.0 + 1).to_string()
    }

    fn parse_move(&self, text: &str) -> Result<Move, GameError> {
        parse_number(self, text)
    }

    fn symmetries() -> Vec<Symmetry> {
        Symmetry::of_square(3)
    }

    fn reference() -> Option<Box<dyn Reference<Self>>> {
        Some(Box::new(Solver::default()))
    }
}

/// Reads rows from the top and the side to move; shared by the two board games.
pub(crate) fn parse_rows(
    game: &'static str,
    text: &str,
    height: usize,
    width: usize,
) -> Result<(u64, u64, Color), GameError> {
    let error = |reason: &str| GameError::Position { game, text: text.to_owned(), reason: reason.to_owned() };
    let (rows, turn) = text.trim().split_once(' ').ok_or_else(|| error("expected rows, a space and `x` or `o`"))?;
    let (mut white, mut black) = (0u64, 0u64);
    let rows: Vec<&str> = rows.split('/').collect();
    if rows.len() != height {
        return Err(error("wrong number of rows"));
    }
    for (i, row) in rows.iter().enumerate() {
        let mut column = 0;
        for c in row.chars() {
            let bit = 1u64 << ((height - 1 - i) * width + column.min(width - 1));
            match c {
                'x' if column < width => white |= bit,
                'o' if column < width => black |= bit,
                '1'..='9' => column += c as usize - '1' as usize,
                _ => return Err(error("a row may hold `x`, `o` and digits, and no more cells than the board")),
            }
            column += 1;
        }
        if column != width {
            return Err(error("a row has the wrong length"));
        }
    }
    let turn = match turn {
        "x" => Color::White,
        "o" => Color::Black,
        _ => return Err(error("the side to move must be `x` or `o`")),
    };
    if white.count_ones() != black.count_ones() + u32::from(turn == Color::Black) {
        return Err(error("the numbers of stones do not fit the side to move"));
    }
    Ok((white, black, turn))
}

/// Writes what [`parse_rows`] reads.
pub(crate) fn format_rows(white: u64, black: u64, turn: Color, height: usize, width: usize) -> String {
    let mut text = String::new();
    for row in (0..height).rev() {
        let mut empty = 0;
        for square in row * width..(row + 1) * width {
            let stone = if white >> square & 1 == 1 { 'x' } else { 'o' };
            if (white | black) >> square & 1 == 0 {
                empty += 1;
                continue;
            }
            if empty > 0 {
                text.push_str(&empty.to_string());
                empty = 0;
            }
            text.push(stone);
        }
        if empty > 0 {
            text.push_str(&empty.to_string());
        }
        text.push(if row > 0 { '/' } else { ' ' });
    }
    text.push(if turn == Color::White { 'x' } else { 'o' });
    text
}

/// Reads a move written as a number from 1.
pub(crate) fn parse_number<G: Game>(game: &G, text: &str) -> Result<Move, GameError> {
    let m = text.trim().parse::<u16>().ok().and_then(|n| n.checked_sub(1)).map(Move);
    m.filter(|m| game.legal_moves().contains(m))
        .ok_or_else(|| GameError::IllegalMove { text: text.to_owned(), fen: game.fen() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_symmetries_are_distinct_and_keep_lines() {
        let all = TicTacToe::symmetries();
        assert_eq!(all[0], Symmetry::identity(9));
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
            for line in LINES {
                let image = (0..9).filter(|s| line >> s & 1 == 1).fold(0u16, |m, s| m | 1 << a.map[s]);
                assert!(LINES.contains(&image));
            }
        }
    }

    #[test]
    fn text_round_trips_over_every_position() {
        let mut open = vec![TicTacToe::start()];
        let mut seen = std::collections::HashSet::new();
        while let Some(game) = open.pop() {
            if !seen.insert(game) {
                continue;
            }
            assert_eq!(TicTacToe::from_fen(&game.fen()).unwrap(), game);
            for m in game.legal_moves() {
                let mut next = game;
                next.play(m);
                open.push(next);
            }
        }
        assert_eq!(seen.len(), 5478, "the number of legal positions is known");
    }
}
