//! The `[results]` table of a profile.

use serde::{Deserialize, Serialize};
use uci::Limit;

use crate::profile::SettingError;

/// The experiments that `results` makes beside what the run has measured. An empty list or 0 leaves one out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResultsConfig {
    /// Simulations a move at which the final network meets the opponent; 0 plays the raw policy.
    pub simulations: Vec<u32>,
    /// Networks are trained on one in so many of the corpus' games, in one pass; 1 is all of them.
    pub shares: Vec<u64>,
    /// Simulations a move of these networks, and of the match before and after refinement.
    pub fixed_simulations: u32,
    /// Games of each match against the opponent, two an opening.
    pub games: u32,
    /// The opponent's `UCI_Elo`, 0 for full strength; that of `[eval]` if absent.
    pub elo: Option<u32>,
    /// The opponent's limit a move; that of `[eval]` if absent.
    pub limit: Option<Limit>,
    /// Games of the refined network against the one that refinement began with, two an opening.
    pub refined_games: u32,
}

impl Default for ResultsConfig {
    fn default() -> Self {
        ResultsConfig {
            simulations: vec![0, 50, 100, 200, 400, 800, 1600],
            shares: vec![32, 8, 2, 1],
            fixed_simulations: 200,
            games: 100,
            elo: None,
            limit: None,
            refined_games: 400,
        }
    }
}

impl ResultsConfig {
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let refuse = |key: &str, value: String, reason: &str| Err(SettingError::new(key, value, reason));
        if self.shares.contains(&0) {
            let reason = "one in so many games: expected 1 for all of them, 2 for half";
            return refuse("results.shares", format!("{:?}", self.shares), reason);
        }
        if self.games == 0 && !(self.simulations.is_empty() && self.shares.is_empty()) {
            return refuse("results.games", "0".to_owned(), "a match has at least two games");
        }
        Ok(())
    }
}
