//! Why a match cannot go on.

use std::path::PathBuf;

use crate::OpeningError;

/// Why a match ended without a report. Finished games stay in its journal.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// A setting that no match can follow.
    #[error("match setting `{field}` {reason}")]
    Spec {
        /// The setting.
        field: &'static str,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// The openings.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The opening is not legal in this game.
    #[error(transparent)]
    Game(#[from] games::GameError),
    /// The folder holds games of another match.
    #[error("{}: holds games of another match, {what}: move the folder aside or give the match its old settings", folder.display())]
    OtherMatch {
        /// The match folder.
        folder: PathBuf,
        /// What differs.
        what: String,
    },
    /// A player cannot be made, or failed in a way that would repeat in every game.
    #[error("player {player} failed{}", game.map(|g| format!(" in game {g}")).unwrap_or_default())]
    Player {
        /// `A` or `B`, and the name if it is known.
        player: String,
        /// The game in hand.
        game: Option<u64>,
        /// What it said.
        #[source]
        source: Box<search::PlayerError>,
    },
    /// A thread died.
    #[error("a match worker died: {message}")]
    Worker {
        /// Its last words.
        message: String,
    },
    /// Journal, shards or book.
    #[error(transparent)]
    Dataset(#[from] dataset::DatasetError),
    /// The match folder.
    #[error(transparent)]
    Store(#[from] pipeline::StoreError),
    /// A file of the match folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A report or a stamp of this match cannot be written or read as JSON.
    #[error("{path}: not the JSON of a match: {source}")]
    Json {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A stop was requested; the next run continues.
    #[error(transparent)]
    Interrupted(#[from] pipeline::Interrupted),
}
