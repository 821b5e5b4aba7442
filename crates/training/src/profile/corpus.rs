//! The `corpus` stage.

use serde::{Deserialize, Serialize};
use uci::Limit;

/// The `corpus` stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorpusConfig {
    /// Games in all. A larger number extends an existing corpus.
    pub games: u64,
    /// Games a shard.
    pub games_per_shard: u64,
    /// The teacher's limit a move.
    pub limit: Limit,
    /// Engine processes; 0 is one per core.
    pub workers: usize,
    /// Random plies before the teacher plays: a number, or a range of which each game draws.
    pub random_plies: Plies,
    /// Opening book (EPD, FEN lines or PGN, also .zst); none if empty. Random plies follow the opening.
    pub book: String,
    /// Deliberate mistakes; the shares must not exceed 1 together.
    pub mistakes: Vec<Mistakes>,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// The teacher shows several lines a move, and these become the policy's target where `pretrain.policy = "visits"`;
    /// only its best move is kept if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<SoftTargets>,
    /// Wins are given when scores agree; off if absent.
    pub adjudicate: Option<Adjudicate>,
    /// Largest accepted fraction of games that are copies of another.
    pub max_duplicates: f64,
}

impl Default for CorpusConfig {
    fn default() -> Self {
        CorpusConfig {
            games: 1000,
            games_per_shard: 400,
            limit: Limit::Nodes(1500),
            workers: 0,
            random_plies: Plies::Exactly(4),
            book: String::new(),
            mistakes: Vec::new(),
            max_plies: 400,
            soft: None,
            adjudicate: None,
            max_duplicates: 0.05,
        }
    }
}

/// A share of the games in which a share of the plies are deliberate mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistakes {
    /// Fraction of the games.
    pub share: f64,
    /// Probability that a ply of such a game is a random legal move.
    pub rate: f64,
}

/// How the lines of a teacher become a distribution over moves: weights `exp(e / temperature)`, with `e` in 0..1 the
/// expected score of the line by the logistic of 400 centipawns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftTargets {
    /// Lines that the teacher shows, its UCI option `MultiPV`. Within the same nodes each is searched less deeply.
    pub multipv: u32,
    /// In units of expected score: 0.05 gives a move that loses 5 % more a weight of 1/e.
    pub temperature: f32,
}

/// When a game is decided before its rules say so.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjudicate {
    /// Centipawns that both sides agree on.
    pub score: i32,
    /// Plies in a row.
    pub plies: u32,
}

/// A number of plies, or a range of which each game draws its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Plies {
    /// Always this many.
    Exactly(u32),
    /// Uniform, both ends included.
    Between([u32; 2]),
}

impl Plies {
    /// Least and most.
    pub fn range(self) -> (u32, u32) {
        match self {
            Plies::Exactly(n) => (n, n),
            Plies::Between([low, high]) => (low, high),
        }
    }
}
