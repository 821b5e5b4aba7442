//! The game so far of an engine, as `position` commands tell it.

use games::{Chess, Game, Line};

/// The start position before the first `position`, then what the last legal one said. As long as only illegal ones have
/// come there is no position, and the start position is not it.
pub struct Position {
    line: Line<Chess>,
    told: Told,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Wrong,
    Legal,
}

impl Default for Position {
    fn default() -> Self {
        Position { line: Line::new(Chess::start()), told: Told::Nothing }
    }
}

impl Position {
    /// What a `go` is told where [`Position::is_missing`].
    pub const MISSING: &str = "go: there is no position, the one that came is not legal";

    /// Follows a `position` command.
    ///
    /// # Errors
    /// What is wrong and what is searched now, in words.
    pub fn set(&mut self, fen: Option<&str>, moves: &[String]) -> Result<(), String> {
        match read(fen, moves) {
            Ok(line) => {
                *self = Position { line, told: Told::Legal };
                Ok(())
            }
            Err(why) if self.told == Told::Legal => Err(format!("position: {why}; the position before it stays")),
            Err(why) => {
                self.told = Told::Wrong;
                Err(format!("position: {why}; there is none before it"))
            }
        }
    }

    /// Whether there is nothing to search.
    pub fn is_missing(&self) -> bool {
        self.told == Told::Wrong
    }

    /// The game so far, and the position to search.
    pub fn line(&self) -> &Line<Chess> {
        &self.line
    }
}

fn read(fen: Option<&str>, moves: &[String]) -> Result<Line<Chess>, String> {
    let start = match fen {
        None => Chess::start(),
        Some(fen) => Chess::from_fen(fen).map_err(|e| e.to_string())?,
    };
    let mut line = Line::new(start);
    for text in moves {
        let m = line.state().parse_move(text).map_err(|e| e.to_string())?;
        line.play(m);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use games::{Chess, Game};

    use super::Position;

    fn set(position: &mut Position, fen: Option<&str>, moves: &str) -> Result<usize, String> {
        position.set(fen, &moves.split_whitespace().map(str::to_owned).collect::<Vec<_>>())?;
        Ok(position.line().moves().len())
    }

    #[test]
    fn a_game_is_followed_or_refused_by_name() {
        let mut position = Position::default();
        assert_eq!(set(&mut position, None, "e2e4 e7e5"), Ok(2));
        for (fen, moves, name) in
            [(Some("4k3/8/8/8/8/8/8/8 w - - 0 1"), "", "4k3/8"), (None, "e2e4 e7e6 e4e6", "`e4e6`")]
        {
            let why = set(&mut position, fen, moves).unwrap_err();
            assert!(why.contains(name) && why.contains("the position before it stays"), "{why}");
            assert!(!position.is_missing() && position.line().moves().len() == 2);
        }
    }

    #[test]
    fn before_the_first_legal_game_a_wrong_one_leaves_none() {
        let mut position = Position::default();
        assert!(!position.is_missing() && position.line().state().fen() == Chess::start().fen());
        let why = set(&mut position, Some("8/8/8/8/8/8/8/8 w - - 0 1"), "").unwrap_err();
        assert!(position.is_missing() && why.contains("there is none before it"), "{why}");
        assert_eq!(set(&mut position, None, ""), Ok(0));
        assert!(!position.is_missing());
    }
}
