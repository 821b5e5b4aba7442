//! Search: Monte Carlo tree search over any [`games::Game`], the evaluators it asks, the inference service between
//! many searches and few networks, and the players that matches and self-play are made of.
//!
//! * [`Search`] is one game's tree. It is step-wise: [`Search::gather`] hands out the positions that it wants
//!   evaluated and [`Search::apply`] takes the answers, so that one thread drives many games in joint batches.
//! * [`Evaluator`] answers [`Request`]s: [`UniformEvaluator`] without a network, [`NetworkEvaluator`] with one, and
//!   [`Client`], which asks a [`Service`] that other threads ask too. [`drive`] and [`Driver`] work with all three.
//!   On a CPU [`run_workers`] gives each core searches and an evaluator of its own; the service is for devices and for
//!   workers with few searches.
//! * [`Player`] is what a match needs: [`NetworkPlayer`], [`PolicyPlayer`], [`RandomPlayer`], [`ReferencePlayer`],
//!   [`EnginePlayer`].
//!
//! A search depends on its root, its configuration, its seed and the answers, never on how its requests were batched
//! with others': the same game comes out of one thread and of a hundred.
//!
//! ```
//! use games::{Chess, Game, Rng};
//! use search::{Search, SearchConfig, UniformEvaluator, drive};
//! let root = Chess::from_fen("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1").unwrap();
//! let config = SearchConfig { simulations: 200, ..SearchConfig::default() };
//! let mut searches = [Search::new(config, root, Rng::new(1))];
//! drive(&mut searches, &mut UniformEvaluator).unwrap();
//! let report = searches[0].root_report().unwrap();
//! assert_eq!(searches[0].root().move_text(report.best), "g5g7");
//! ```
#![forbid(unsafe_code)]

mod analysis;
mod cache;
mod client;
mod config;
mod drive;
mod error;
mod evaluator;
mod network;
mod player;
mod players;
mod priors;
mod proof;
mod queue;
mod report;
mod select;
mod service;
mod tree;
mod tree_search;
mod workers;

#[cfg(test)]
mod testing;

pub use analysis::RankedMove;
pub use client::Client;
pub use config::{PlayoutCap, SearchConfig, ServiceConfig};
pub use drive::{Driver, drive};
pub use error::{PlayerError, SearchError};
pub use evaluator::{Evaluator, Request, UniformEvaluator};
pub use network::{EvaluatorStats, NetworkEvaluator};
pub use player::{Choice, Player};
pub use players::{EnginePlayer, NetworkPlayer, PolicyPlayer, RandomPlayer, ReferencePlayer, Temperature};
pub use priors::{legal_softmax, normalise};
pub use proof::Proof;
pub use report::RootReport;
pub use service::{Service, ServiceStats};
pub use tree_search::Search;
pub use uci::Clocks;
pub use workers::run_workers;
