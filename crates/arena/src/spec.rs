//! What a match is.

use std::time::Duration;

use dataset::OnBad;
use serde_json::{Value, json};

use crate::{Adjudication, ArenaError, OpeningSource, SprtSpec, TimeControl};

/// The settings of a match.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchSpec {
    /// What the match is called in the PGN, the report and the shards, such as `eval` or `gate`.
    pub label: String,
    /// Games, two an opening; even. A larger number extends a match.
    pub games: u64,
    /// Games at a time, each with its own two players; results do not depend on it.
    pub concurrency: usize,
    /// Games still going on at this ply end without a result. The opening's plies count.
    pub max_plies: u32,
    /// Of this and of a game's number, everything random in the game is a function.
    pub seed: u64,
    /// Where the openings come from.
    pub openings: OpeningSource,
    /// What is done about games of a book that cannot be played.
    pub on_bad: OnBad,
    /// When games end before their rules say so.
    pub adjudication: Adjudication,
    /// Ends the match as soon as the test is decided.
    pub sprt: Option<SprtSpec>,
    /// Clocks of A and B; a side without one takes the time that its own limit gives it.
    pub clocks: [Option<TimeControl>; 2],
    /// By how much a side may overstep its clock.
    pub margin: Duration,
    /// Remarks without which the numbers would mislead; they stand in the report.
    pub notes: Vec<String>,
    /// The `generation` column of the records: the network's iteration, or 0.
    pub generation: u32,
}

impl MatchSpec {
    /// A match of `games` games from the built-in openings, one at a time, with a cap of 400 plies.
    pub fn new(label: &str, games: u64, seed: u64) -> Self {
        MatchSpec {
            label: label.to_owned(),
            games,
            concurrency: 1,
            max_plies: 400,
            seed,
            openings: OpeningSource::Builtin {},
            on_bad: OnBad::Skip,
            adjudication: Adjudication::default(),
            sprt: None,
            clocks: [None; 2],
            margin: Duration::ZERO,
            notes: Vec::new(),
            generation: 0,
        }
    }

    /// Refuses settings that no match can follow.
    pub(crate) fn check(&self) -> Result<(), ArenaError> {
        let refuse = |field, reason: String| Err(ArenaError::Spec { field, reason });
        if self.games == 0 || !self.games.is_multiple_of(2) {
            return refuse("games", format!("must be even and above 0, two games an opening; got {}", self.games));
        }
        if self.concurrency == 0 {
            return refuse("concurrency", "must be above 0".to_owned());
        }
        if self.max_plies == 0 || self.max_plies > u32::from(u16::MAX) {
            return refuse("max_plies", format!("must be in 1..=65535, got {}", self.max_plies));
        }
        if let Some(fault) = self.adjudication.fault() {
            return refuse("adjudication", fault);
        }
        match self.sprt.and_then(|sprt| sprt.fault()) {
            Some(fault) => refuse("sprt", fault),
            None => Ok(()),
        }
    }

    /// What determines the content of each game, the players apart.
    pub(crate) fn settings(&self, game: &str) -> Value {
        json!({
            "game": game,
            "label": self.label,
            "max_plies": self.max_plies,
            "seed": self.seed,
            "openings": self.openings,
            "adjudication": self.adjudication,
            // Absent from the stamps of older matches, which had none.
            "clocks": self.clocks.iter().any(Option::is_some).then_some(self.clocks),
            "generation": self.generation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_field() {
        assert!(MatchSpec::new("m", 10, 1).check().is_ok());
        let field = |spec: MatchSpec| match spec.check() {
            Err(ArenaError::Spec { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(MatchSpec::new("m", 11, 1)), "games");
        assert_eq!(field(MatchSpec { concurrency: 0, ..MatchSpec::new("m", 10, 1) }), "concurrency");
        assert_eq!(field(MatchSpec { max_plies: 0, ..MatchSpec::new("m", 10, 1) }), "max_plies");
    }
}
