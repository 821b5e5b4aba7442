//! The UCI engine: a trained network as a player for chess programs, tournament managers and people.
//!
//! [`serve`] speaks the protocol on any pair of streams ([`uci::server`]). A thread reads the input and parses it; the
//! rest happens on the caller's thread, which looks at what was read between two batches of the search, so that `stop` is answered
//! within one batch and no state is shared.
//!
//! A command that changes something (`position`, `go`, `setoption`, `ucinewgame`) while a search runs ends that search
//! first, as `stop` does. So every `go` is answered by exactly one `bestmove`.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod info;
mod network;
mod options;
mod task;
mod think;
mod time;

#[cfg(test)]
mod tests;

pub use engine::{DEFAULT_NETWORK, serve};
pub use error::{LoadError, PlayError};
