//! The players: by search, by raw policy, at random, of known strength, and chess engines.

mod engine;
mod network;
mod policy;
mod simple;

pub use engine::EnginePlayer;
pub use network::{NetworkPlayer, Temperature};
pub use policy::PolicyPlayer;
pub use simple::{RandomPlayer, ReferencePlayer};
