//! The lab: matches between any two players, and what each feature of an engine is worth.
//!
//! A match is a stage of its own: a folder with a stamp, journaled games, and a report. A table of features is a list of
//! matches of an engine against itself without a feature.

mod config;
mod contest;
mod features;
mod player;

pub use config::{FeatureRow, FeatureRules, FeaturesConfig, MatchConfig, MatchRules, PlayerConfig, Setting};
pub use contest::contest;
pub use features::{Feature, FeatureTable, features};
