//! What is in a dataset: results, openings, lengths, how games end, how well scores predict results, duplicates.
//!
//! The tables are Polars queries on the streaming engine. What needs the rules or the order of plies (calibration,
//! distinct positions) is counted in one more pass, shard by shard. Memory does not grow with the data.

mod distinct;
mod queries;
mod replayed;
mod text;

use serde::Serialize;

pub use distinct::Count;

use crate::{Dataset, DatasetError};

/// Games by their results.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Results {
    /// What the row is about: a player, an opening, a way to end.
    pub name: String,
    /// Games in all.
    pub games: u64,
    /// Games won (by the player; by White where no player is meant).
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// Games without a result.
    pub none: u64,
}

impl Results {
    /// Points per decided game: a win 1, a draw 0.5; `None` without a decided game.
    pub fn score(&self) -> Option<f64> {
        let decided = self.wins + self.draws + self.losses;
        (decided > 0).then(|| (self.wins as f64 + self.draws as f64 / 2.0) / decided as f64)
    }
}

/// Games by length.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Length {
    /// From this many plies ...
    pub from: u64,
    /// ... to this many, inclusive.
    pub to: u64,
    /// Games.
    pub games: u64,
}

/// Positions by score, with how their games ended.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Calibration {
    /// Scores from this, in centipawns of the mover; -30000 and below holds "mated in n".
    pub from: i32,
    /// To below this; the last bucket holds "mate in n".
    pub to: i32,
    /// Positions of games with a result.
    pub positions: u64,
    /// Their mean result in the mover's view, -1..1.
    pub mean_result: f64,
}

/// All that [`stats`] finds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StatsReport {
    /// Games.
    pub games: u64,
    /// Plies of all games.
    pub positions: u64,
    /// Plies that players chose (all but the openings).
    pub played_positions: u64,
    /// Size of the files.
    pub bytes: u64,
    /// Bytes a position.
    pub bytes_per_position: f64,
    /// All games, in White's view.
    pub results: Results,
    /// By player, each from his own view; the most games first.
    pub players: Vec<Results>,
    /// By opening, in White's view; the most games first.
    pub openings: Vec<Results>,
    /// By the way they ended, in White's view; the most games first.
    pub terminations: Vec<Results>,
    /// Lengths in steps of 20 plies.
    pub lengths: Vec<Length>,
    /// Score against result.
    pub calibration: Vec<Calibration>,
    /// Different games (start and moves).
    pub distinct_games: Count,
    /// Different positions before a move that a player chose (all but the move clocks). Covers the games whose rules
    /// are known.
    pub distinct_positions: Count,
    /// The positions among which `distinct_positions` were counted.
    pub counted_positions: u64,
    /// Games that could not be replayed.
    pub bad_games: u64,
}

/// Looks at all games of a dataset.
///
/// # Errors
/// [`DatasetError::Empty`] without shards; errors of reading.
pub fn stats(dataset: &Dataset) -> Result<StatsReport, DatasetError> {
    let tables = queries::run(dataset)?;
    let pass = replayed::pass(dataset)?;
    let (positions, bytes) = (dataset.positions(), dataset.bytes());
    Ok(StatsReport {
        games: dataset.games(),
        positions,
        played_positions: pass.played_positions,
        bytes,
        bytes_per_position: if positions == 0 { 0.0 } else { bytes as f64 / positions as f64 },
        results: tables.results,
        players: tables.players,
        openings: tables.openings,
        terminations: tables.terminations,
        lengths: tables.lengths,
        calibration: pass.calibration,
        distinct_games: pass.distinct_games,
        distinct_positions: pass.distinct_positions,
        counted_positions: pass.counted_positions,
        bad_games: pass.bad_games,
    })
}

#[cfg(test)]
mod tests;
