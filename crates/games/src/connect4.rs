//! Connect 4: 7 columns, 6 rows, four in a line wins.

use crate::{
    Color, Game, GameError, GameResult, Minimax, Move, Outcome, Packed, Reference, Shape, Symmetry, Termination,
};

const WIDTH: usize = 7;
const HEIGHT: usize = 6;
/// All cells, bit `row * 7 + column`, row 0 at the bottom.
const BOARD: u64 = (1 << (WIDTH * HEIGHT)) - 1;

/// A Connect 4 position. A [`Move`] is the column, 0 to 6 from the left; its policy index is the cell it fills.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Connect4 {
    /// Stones of the side to move, then of the other.
    stones: [u64; 2],
}

impl Connect4 {
    fn filled(&self) -> u64 {
        self.stones[0] | self.stones[1]
    }

    /// The lowest empty cell of a column.
    fn landing(&self, column: usize) -> Option<usize> {
        (0..HEIGHT).map(|row| row * WIDTH + column).find(|cell| self.filled() >> cell & 1 == 0)
    }

    /// The stones of the side to move and of the other, bit `row * 7 + column`.
    pub fn stones(&self) -> [u64; 2] {
        self.stones
    }
}

/// Cells that can start a line in each direction, so that a shifted line does not wrap round the board's edge.
fn has_line(stones: u64) -> bool {
    const LEFT_4: u64 = repeat_rows(0b000_1111);
    const RIGHT_4: u64 = repeat_rows(0b111_1000);
    let line =
        |step: u32, starts: u64| stones & stones >> step & stones >> (2 * step) & stones >> (3 * step) & starts != 0;
    line(1, LEFT_4) || line(7, BOARD) || line(8, LEFT_4) || line(6, RIGHT_4)
}

const fn repeat_rows(row: u64) -> u64 {
    let (mut bits, mut i) = (0, 0);
    while i < HEIGHT {
        bits |= row << (i * WIDTH);
        i += 1;
    }
    bits
}

/// Every line of four, for evaluations: 69 masks.
pub(crate) fn lines() -> Vec<u64> {
    let mut lines = Vec::new();
    for row in 0..HEIGHT as i32 {
        for column in 0..WIDTH as i32 {
            for (dr, dc) in [(0, 1), (1, 0), (1, 1), (1, -1)] {
                let (end_row, end_column) = (row + 3 * dr, column + 3 * dc);
                if (0..HEIGHT as i32).contains(&end_row) && (0..WIDTH as i32).contains(&end_column) {
                    lines.push((0..4).fold(0, |mask, i| mask | 1 << ((row + i * dr) * WIDTH as i32 + column + i * dc)));
                }
            }
        }
    }
    lines
}

impl Game for Connect4 {
    const NAME: &'static str = "connect4";
    const SHAPE: Shape = Shape { bit_planes: 3, scalar_planes: 0, height: HEIGHT, width: WIDTH, policy_planes: 1 };

    fn start() -> Self {
        Connect4::default()
    }

    /// Rows from the top, `x` for White (who moves first), `o` for Black, digits for empty cells, then `x` or `o` to move.
    fn from_fen(text: &str) -> Result<Self, GameError> {
        let (white, black, turn) = crate::tictactoe::parse_rows("connect4", text, HEIGHT, WIDTH)?;
        let error =
            |reason: &str| GameError::Position { game: "connect4", text: text.to_owned(), reason: reason.to_owned() };
        let filled = white | black;
        let supported = filled << WIDTH | 0b111_1111;
        if filled & !supported != 0 {
            return Err(error("a stone hangs in the air"));
        }
        let stones = if turn == Color::White { [white, black] } else { [black, white] };
        if has_line(stones[0]) {
            return Err(error("the side to move has already won"));
        }
        Ok(Connect4 { stones })
    }

    fn fen(&self) -> String {
        let (white, black) = if self.turn() == Color::White {
            (self.stones[0], self.stones[1])
        } else {
            (self.stones[1], self.stones[0])
        };
        crate::tictactoe::format_rows(white, black, self.turn(), HEIGHT, WIDTH)
    }

    fn turn(&self) -> Color {
        if self.filled().count_ones().is_multiple_of(2) { Color::White } else { Color::Black }
    }

    fn generate(&self, moves: &mut Vec<Move>) -> Outcome {
        moves.clear();
        if has_line(self.stones[1]) {
            return Outcome::Decided { result: GameResult::win(self.turn().other()), reason: Termination::Line };
        }
        moves.extend((0..WIDTH).filter(|c| self.landing(*c).is_some()).map(|c| Move(c as u16)));
        if moves.is_empty() {
            return Outcome::Decided { result: GameResult::Draw, reason: Termination::BoardFull };
        }
        moves.sort_unstable_by_key(|m| self.index(*m));
        Outcome::Ongoing
    }

    fn play(&mut self, m: Move) {
        if let Some(cell) = self.landing(usize::from(m.0)) {
            self.stones = [self.stones[1], self.stones[0] | 1 << cell];
        }
    }

    fn index(&self, m: Move) -> u16 {
        self.landing(usize::from(m.0)).unwrap_or(0) as u16
    }

    fn pack(&self) -> Packed {
        let mut packed = Packed::default();
        packed.bits[..3].copy_from_slice(&[self.stones[0], self.stones[1], BOARD]);
        packed
    }

    fn move_text(&self, m: Move) -> String {
        (m.0 + 1).to_string()
    }

    fn parse_move(&self, text: &str) -> Result<Move, GameError> {
        crate::tictactoe::parse_number(self, text)
    }

    fn symmetries() -> Vec<Symmetry> {
        let squares = WIDTH * HEIGHT;
        let mirror = (0..squares).map(|s| (s / WIDTH * WIDTH + WIDTH - 1 - s % WIDTH) as u8).collect();
        vec![Symmetry::identity(squares), Symmetry { map: mirror }]
    }

    fn reference() -> Option<Box<dyn Reference<Self>>> {
        Some(Box::new(Minimax::new(8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn there_are_69_lines_and_each_wins() {
        let lines = lines();
        assert_eq!(lines.len(), 69);
        assert!(lines.iter().all(|l| has_line(*l)));
        // Three of four never win, and a line does not wrap from one row to the next.
        assert!(lines.iter().all(|l| !has_line(l & (l - 1))));
        assert!(!has_line(0b1111 << 5));
        let mut rng = Rng::new(3);
        for _ in 0..20_000 {
            let stones = rng.next_u64() & rng.next_u64() & BOARD;
            assert_eq!(has_line(stones), lines.iter().any(|l| stones & l == *l), "{stones:b}");
        }
    }

    #[test]
    fn games_end_and_text_round_trips() {
        let mut rng = Rng::new(1);
        for _ in 0..300 {
            let mut game = Connect4::start();
            while game.outcome() == Outcome::Ongoing {
                assert_eq!(Connect4::from_fen(&game.fen()).unwrap(), game);
                let moves = game.legal_moves();
                game.try_play(moves[rng.below(moves.len())]).unwrap();
            }
        }
        assert!(Connect4::from_fen("7/7/7/7/x6/7 o").is_err());
    }
}
