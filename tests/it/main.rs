//! The executables, run as a user runs them: over real folders, with the fake engine and with the real one.
//!
//! `cargo test --workspace` builds the fake engine that these tests need.

mod auto;
mod bad_input;
mod chain;
mod chess_cases;
mod kills;
mod lab;
mod networks;
mod outside;
mod policy;
mod publish;
mod real_engine;
mod recipes;
mod relabel;
mod results;
mod run_dir;
mod shards;
mod small_games;
mod soft;
mod uci_player;
mod unreadable;
