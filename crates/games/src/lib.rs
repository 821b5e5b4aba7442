//! The games that Tabiya plays, behind one [`Game`] trait: chess, Connect 4 and tic-tac-toe.
//!
//! This crate knows rules and encodings, and no files. A game state carries what its rules need of the past
//! (chess: the position hashes since the last irreversible move), so that a state alone decides its outcome.
//!
//! ```
//! use games::{Chess, Game, Outcome};
//! let mut game = Chess::start();
//! let m = game.parse_move("e2e4").unwrap();
//! game.try_play(m).unwrap();
//! assert_eq!(game.outcome(), Outcome::Ongoing);
//! ```
#![forbid(unsafe_code)]

mod chess;
mod connect4;
mod game;
mod line;
mod move_index;
mod outcome;
mod packed;
mod policy_chess;
mod reference;
mod rng;
mod score;
mod tictactoe;
mod value;

pub use chess::{Chess, Promotion};
pub use connect4::Connect4;
pub use game::{Game, GameError, Image, Move, Shape, Symmetry};
pub use line::Line;
pub use move_index::{MoveShape, REACHABLE_INDICES, decode_index, encode_index, is_reachable};
pub use outcome::{Color, GameResult, Outcome, Termination};
pub use packed::{MAX_BIT_PLANES, MAX_SCALAR_PLANES, Packed};
pub use policy_chess::PolicyChess;
pub use reference::{Minimax, Reference, Solver};
pub use rng::Rng;
pub use score::Score;
pub use tictactoe::TicTacToe;
pub use value::{MoverValue, WhiteValue};
