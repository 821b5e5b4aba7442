//! Matches: openings, paired games, adjudication, Elo and SPRT, PGN and Parquet output.
//!
//! A match is a batch of games between two [`search::Player`]s. Opening `i` is played twice, in games `2i` and
//! `2i + 1`, with colours swapped, and the pair is the unit of every statistic. Finished games are journaled, so a
//! killed match resumes, and a game depends on the match's seed and on its own number alone, so neither the number of
//! threads nor a kill changes it.
//!
//! ```
//! use arena::{Elo, Pentanomial, Scores, Wdl};
//! let elo = Scores::from(Wdl { wins: 880, draws: 1863, losses: 759 }).elo();
//! assert_eq!(elo.to_string(), "+12.0 ± 7.9 (95 %: +4.1 to +19.9)");
//! assert!(matches!(Scores::from(Pentanomial([10, 0, 0, 0, 0])).elo(), Elo::Below { .. }));
//! ```
#![forbid(unsafe_code)]

mod adjudicate;
mod builtin;
mod clock;
mod elo;
mod error;
mod openings;
mod output;
mod pgn;
mod play;
mod report;
mod round;
mod spec;
mod sprt;
mod timing;

pub use adjudicate::{Adjudication, Adjudicator, DrawRule, ResignRule};
pub use clock::TimeControl;
pub use elo::{Elo, NormalizedElo, Pentanomial, Scores, Wdl};
pub use error::ArenaError;
pub use openings::{Opening, OpeningError, OpeningSource, openings, random_openings};
pub use play::{Factory, play_match};
pub use report::MatchReport;
pub use spec::MatchSpec;
pub use sprt::{EloModel, SprtReport, SprtSpec, Verdict};
pub use timing::Thinking;
