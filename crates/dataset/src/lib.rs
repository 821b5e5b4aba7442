//! Games as data: one row a game, in Parquet shards that are whole or not there, read by Polars and replayed into
//! training samples.
//!
//! Writers fill [`GameRecord`]s, keep finished ones in a [`Journal`] and put a [`write_shard`] when a range of game
//! ids is complete. Readers open a [`Dataset`] (the listing of sidecars is the manifest), query it, or let a
//! [`Loader`] make shuffled batches of it. [`stats`] describes a dataset, and [`book`] reads openings and PGN files.
#![forbid(unsafe_code)]

pub mod book;
mod dataset;
mod encode;
mod error;
mod frame;
mod journal;
mod loader;
mod opening;
mod query;
mod record;
mod sample;
mod schema;
mod shard;
mod split;
mod stats;
#[cfg(test)]
mod testing;

pub use book::{Book, Opening, PgnGame, read_book, read_openings};
pub use dataset::{Dataset, ShardInfo};
pub use error::{DatasetError, OnBad};
pub use journal::Journal;
pub use loader::{Augment, Batch, Loader, LoaderCounts, LoaderSpec, Source, Sources};
pub use opening::opening_name;
pub use record::{GameRecord, Visits};
pub use sample::{PolicyTarget, TargetSpec};
pub use schema::{SCHEMA_VERSION, schema};
pub use shard::{Meta, Sidecar, finished_shards, shard_name, sidecar_name, write_shard, write_shard_as};
pub use split::{Part, Split};
pub use stats::{Calibration, Count, Length, Results, StatsReport, stats};
