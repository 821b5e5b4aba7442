//! How games end. "Not over" is a case of its own and can never be read as a draw.

use serde::{Deserialize, Serialize};

/// A side. White moves first in every game.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// The side that moves first.
    White,
    /// The side that moves second.
    Black,
}

impl Color {
    /// The opponent.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Color::White => Color::Black,
            Color::Black => Color::White,
        }
    }
}

/// Who won.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GameResult {
    /// White won.
    WhiteWins,
    /// Nobody won.
    Draw,
    /// Black won.
    BlackWins,
}

impl GameResult {
    /// The result in which `color` wins.
    pub const fn win(color: Color) -> Self {
        match color {
            Color::White => GameResult::WhiteWins,
            Color::Black => GameResult::BlackWins,
        }
    }

    /// The `result` column: 1, 0, -1 from White's view.
    pub const fn white(self) -> i8 {
        match self {
            GameResult::WhiteWins => 1,
            GameResult::Draw => 0,
            GameResult::BlackWins => -1,
        }
    }

    /// The inverse of [`GameResult::white`]; `None` for any other number.
    pub const fn from_white(value: i8) -> Option<Self> {
        match value {
            1 => Some(GameResult::WhiteWins),
            0 => Some(GameResult::Draw),
            -1 => Some(GameResult::BlackWins),
            _ => None,
        }
    }

    /// Points for `color`: 1, 0.5 or 0.
    pub fn points(self, color: Color) -> f64 {
        let white = f64::from(self.white() + 1) / 2.0;
        if color == Color::White { white } else { 1.0 - white }
    }

    /// The PGN result tag.
    pub const fn pgn(self) -> &'static str {
        match self {
            GameResult::WhiteWins => "1-0",
            GameResult::Draw => "1/2-1/2",
            GameResult::BlackWins => "0-1",
        }
    }
}

macro_rules! terminations {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a game ended: the `termination` column.
        ///
        /// # Stability
        /// The texts are a file format.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Termination { $($(#[$doc])* $name,)* }

        impl Termination {
            /// The text in the `termination` column.
            pub const fn as_str(self) -> &'static str {
                match self { $(Termination::$name => $text,)* }
            }

            /// Reads the text of the `termination` column.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Termination::$name),)* _ => None }
            }
        }
    };
}

terminations! {
    /// Mate.
    Checkmate = "checkmate",
    /// The side to move has no legal move and is not in check.
    Stalemate = "stalemate",
    /// Neither side can ever mate.
    InsufficientMaterial = "insufficient_material",
    /// The position stands for the third time.
    Threefold = "threefold",
    /// A hundred half-moves without capture or pawn move.
    FiftyMoves = "fifty_moves",
    /// A line was completed (Connect 4, tic-tac-toe).
    Line = "line",
    /// The board is full without a line (Connect 4, tic-tac-toe).
    BoardFull = "board_full",
    /// A player gave up.
    Resignation = "resignation",
    /// Scores decided the game before the rules did.
    Adjudication = "adjudication",
    /// A player overstepped its time.
    Time = "time",
    /// A player answered with an illegal move.
    IllegalMove = "illegal_move",
    /// An engine lived but did not answer.
    Stall = "stall",
    /// An engine died.
    Disconnect = "disconnect",
    /// The ply cap: the game has no result.
    MaxPlies = "max_plies",
}

/// Whether a game is over, by its rules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The game goes on.
    Ongoing,
    /// The game is over.
    Decided {
        /// Who won.
        result: GameResult,
        /// Why it ended.
        reason: Termination,
    },
}
