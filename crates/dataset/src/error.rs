//! One error for all that can go wrong with data: it names the file, the game or the field, and what was expected.

use std::path::PathBuf;

/// Why data could not be written, read or understood.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] pipeline::StoreError),
    /// Parquet data could not be written, or its footer not be read.
    #[error("{what}: {source}")]
    Parquet {
        /// The file.
        what: String,
        /// What the Parquet library said.
        source: parquet::errors::ParquetError,
    },
    /// A query or a read through Polars failed.
    #[error("{what}: {source}")]
    Query {
        /// The files or the predicate.
        what: String,
        /// What Polars said.
        source: polars::error::PolarsError,
    },
    /// A record contradicts the schema.
    #[error("game {game_id}: {field}: {reason}")]
    Record {
        /// The game.
        game_id: u64,
        /// The column.
        field: &'static str,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// A record belongs to another game than the reader.
    #[error(
        "game {game_id} is a game of {found}, not of {wanted}: choose data of one game, or filter with game = '{wanted}'"
    )]
    OtherGame {
        /// The game's id.
        game_id: u64,
        /// The game of the reader.
        wanted: &'static str,
        /// The game in the record.
        found: String,
    },
    /// A move or position of a record is not legal.
    #[error("game {game_id}, ply {ply}: {source}")]
    Illegal {
        /// The game.
        game_id: u64,
        /// The ply, from 0.
        ply: usize,
        /// What is not legal.
        source: games::GameError,
    },
    /// A shard is not what its sidecar says, or a file is not a shard.
    #[error("{}: {reason}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what can be done.
        reason: String,
    },
    /// There is nothing to read.
    #[error("{what} hold no finished shard (a shard counts once its sidecar shard-NNNNN.json is written)")]
    Empty {
        /// The folders.
        what: String,
    },
    /// A setting has a value that cannot be.
    #[error("{field}: {reason}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// What was expected.
        reason: String,
    },
    /// A line of an opening book or PGN file.
    #[error("{}:{line}: {reason}", path.display())]
    Book {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The thread that reads ahead is gone.
    #[error("the thread that reads {what} died; its own message is above")]
    Reader {
        /// What it read.
        what: String,
    },
}

impl DatasetError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| DatasetError::Io { path, source }
    }

    pub(crate) fn parquet(what: impl Into<String>) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let what = what.into();
        move |source| DatasetError::Parquet { what, source }
    }

    pub(crate) fn query(what: impl Into<String>) -> impl FnOnce(polars::error::PolarsError) -> Self {
        let what = what.into();
        move |source| DatasetError::Query { what, source }
    }
}

/// What to do about a bad, half-written or stray file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBad {
    /// Leave it out with a warning that names it.
    #[default]
    Skip,
    /// Fail with an error that names it.
    Stop,
}
