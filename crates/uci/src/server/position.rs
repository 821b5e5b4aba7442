//! The game so far of an engine, as `position` commands tell it.

use games::{Chess, Game, Line};

/// The start position before the first `position` and after `ucinewgame`, then what the last one said. After one that is
/// refused there is none: the program that sent it plays another game than the one before it.
pub struct Position {
    line: Line<Chess>,
    missing: bool,
}

impl Default for Position {
    fn default() -> Self {
        Position { line: Line::new(Chess::start()), missing: false }
    }
}

impl Position {
    /// What a `go` is told where [`Position::is_missing`].
    pub const MISSING: &str = "error: go: there is no position, the last one was refused";

    /// Follows a `position` command.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn set(&mut self, fen: Option<&str>, moves: &[String]) -> Result<(), String> {
        match read(fen, moves) {
            Ok(line) => {
                *self = Position { line, missing: false };
                Ok(())
            }
            Err(why) => Err(self.refuse(&why)),
        }
    }

    /// Leaves no position, because one came that cannot be followed. Gives the words that say so.
    pub fn refuse(&mut self, why: &str) -> String {
        *self = Position { missing: true, ..Position::default() };
        format!("error: position: {why}; there is no position now")
    }

    /// Whether there is nothing to search.
    pub fn is_missing(&self) -> bool {
        self.missing
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
            assert!(why.contains(name) && why.contains("there is no position now"), "{why}");
            assert!(position.is_missing() && position.line().moves().is_empty(), "nothing of the old game is left");
            assert_eq!(set(&mut position, None, "e2e4"), Ok(1));
            assert!(!position.is_missing());
        }
    }

    #[test]
    fn before_the_first_game_there_is_the_start_position() {
        let mut position = Position::default();
        assert!(!position.is_missing() && position.line().state().fen() == Chess::start().fen());
        let why = position.refuse("expected `startpos` or `fen`, got nothing");
        assert!(position.is_missing() && why.starts_with("error: position: expected `startpos`"), "{why}");
    }
}
