//! `tabiya-ab`: a chess engine by alpha-beta search and an evaluation of hand-written terms.
//!
//! [`serve`] speaks UCI on any pair of streams. The main thread searches; about every half millisecond it looks at what
//! was read and at the clock, so that no state is shared with the reader. Further threads fill the same transposition
//! table until the main one is done.
//!
//! A command that changes something (`position`, `go`, `setoption`, `ucinewgame`) while a search runs ends that search
//! first, as `stop` does. So every `go` is answered by exactly one `bestmove`.
#![forbid(unsafe_code)]

mod bench;
mod board;
mod engine;
mod error;
mod evaluate;
mod exchange;
mod features;
mod generate;
mod history;
mod moves;
mod options;
mod perft;
mod picker;
pub mod policy;
mod score;
mod search;
mod table;
mod taper;
mod time;
pub mod tune;
mod watch;
mod weights;

#[cfg(test)]
mod testing;

pub use bench::{BENCH_DEPTH, BenchReport, bench, bench_policy};
pub use engine::serve;
pub use error::EngineError;
pub use perft::perft;
