//! Which games are for training and which for validation: by a hash of the game, never by position.

use games::Rng;
use serde::{Deserialize, Serialize};

use crate::DatasetError;

/// Part of the split's hash, so that it correlates with nothing else that a game's id decides.
const SALT: u64 = 0x7370_6C69_7400_0001;

/// A part of the split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Games to learn from.
    Train,
    /// Games that are held out.
    Validation,
    /// All games.
    #[default]
    All,
}

/// Chooses games by a hash of dataset and id. The same game is on the same side in every run, whatever the seed.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Split {
    /// The fraction of games that is held out, 0 to less than 1.
    pub holdout: f64,
    /// The part that is read.
    pub part: Part,
}

impl Split {
    /// Whether a game of the named dataset belongs to this part.
    pub fn contains(&self, dataset: &str, game_id: u64) -> bool {
        let held_out = || Rng::from_parts(&[SALT, Rng::part(dataset), game_id]).unit() < self.holdout;
        match self.part {
            Part::All => true,
            Part::Train => !held_out(),
            Part::Validation => held_out(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), DatasetError> {
        if (0.0..1.0).contains(&self.holdout) {
            return Ok(());
        }
        let reason = format!("{} is not a fraction of games, expected 0 to less than 1", self.holdout);
        Err(DatasetError::Setting { field: "holdout", reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_game_is_on_one_side_and_sources_do_not_correlate() {
        let train = Split { holdout: 0.1, part: Part::Train };
        let validation = Split { part: Part::Validation, ..train };
        let held = |name: &str| (0..20_000).filter(|id| validation.contains(name, *id)).collect::<Vec<u64>>();
        let (a, b) = (held("corpus"), held("selfplay"));
        assert!((1_800..2_200).contains(&a.len()), "{}", a.len());
        assert!((0..20_000).all(|id| train.contains("corpus", id) != validation.contains("corpus", id)));
        let both = a.iter().filter(|id| b.contains(id)).count();
        assert!((130..270).contains(&both), "{both} of about 200");
        assert!(Split { holdout: 1.0, part: Part::All }.validate().is_err());
    }
}
