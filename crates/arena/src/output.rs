//! The files of a match folder.
//!
//! `match.json` says which match the folder holds, and `games.journal` holds its finished games in the order in which
//! they finished; `times.jsonl` keeps what the records have no column for. The rest is made of these two: `games.pgn`,
//! `report.json` and `report.txt` now and then, so that a match that is stopped or killed leaves them too, and shards in
//! `games/` when the match is over.

use std::path::Path;

use dataset::{GameRecord, Meta, write_shard};
use games::Game;
use pipeline::{Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pgn::pgn;
use crate::timing::TimeLog;
use crate::{ArenaError, MatchReport, MatchSpec};

/// The journal's file name.
pub(crate) const JOURNAL: &str = "games.journal";
/// The file of thinking times.
pub(crate) const TIMES: &str = "times.jsonl";
/// The games for other programs.
pub(crate) const PGN: &str = "games.pgn";
/// The report for people.
pub(crate) const REPORT: &str = "report.txt";
const STAMP: &str = "match.json";
/// The folder of the shards, apart from the other files so that it reads as a dataset.
const SHARDS: &str = "games";
const GAMES_A_SHARD: usize = 1000;

/// Which match a folder holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct MatchStamp {
    /// What determines the content of each game, the players apart.
    pub(crate) settings: Value,
    /// Players A and B.
    pub(crate) players: [String; 2],
    /// Wall time of play so far.
    pub(crate) seconds: f64,
}

impl MatchStamp {
    /// The stamp of a folder, if it has one.
    pub(crate) fn read(store: &Store) -> Result<Option<Self>, ArenaError> {
        let bytes = match store.get(STAMP) {
            Ok(bytes) => bytes,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(json_error(store, STAMP))
    }

    pub(crate) fn write(&self, store: &Store) -> Result<(), ArenaError> {
        put_json(store, STAMP, self)
    }

    /// Refuses to go on with games of other settings, or of other players where those are known.
    pub(crate) fn check(
        &self,
        folder: &Path,
        settings: &Value,
        players: Option<&[String; 2]>,
    ) -> Result<(), ArenaError> {
        let other = |what: String| Err(ArenaError::OtherMatch { folder: folder.to_owned(), what });
        if let Some(fields) = settings.as_object() {
            for (field, new) in fields {
                let old = self.settings.get(field).unwrap_or(&Value::Null);
                if old != new {
                    return other(format!("played with `{field}` {old} where it now is {new}"));
                }
            }
        }
        match players {
            Some(players) if *players != self.players => {
                let ([a, b], [new_a, new_b]) = (&self.players, players);
                other(format!("played by `{a}` and `{b}` where it now is `{new_a}` and `{new_b}`"))
            }
            _ => Ok(()),
        }
    }
}

fn json_error(store: &Store, path: &str) -> impl FnOnce(serde_json::Error) -> ArenaError {
    let path = store.describe(path);
    move |source| ArenaError::Json { path, source }
}

fn put_json(store: &Store, path: &str, value: &impl Serialize) -> Result<(), ArenaError> {
    let mut text = serde_json::to_string_pretty(value).map_err(json_error(store, path))?;
    text.push('\n');
    Ok(store.put(path, text.as_bytes())?)
}

/// Writes what people read: the games as PGN and the report.
pub(crate) fn write_report<G: Game>(
    store: &Store,
    spec: &MatchSpec,
    records: &[GameRecord],
    times: &TimeLog,
    report: &MatchReport,
) -> Result<(), ArenaError> {
    store.put(PGN, pgn::<G>(records, spec, times)?.as_bytes())?;
    store.put(REPORT, report.to_string().as_bytes())?;
    put_json(store, "report.json", report)
}

/// Writes the shards of the finished games; the same games give the same files.
pub(crate) fn write_shards(
    store: &Store,
    spec: &MatchSpec,
    stamp: &MatchStamp,
    records: &[GameRecord],
) -> Result<(), ArenaError> {
    let meta = Meta {
        dataset: spec.label.clone(),
        settings: serde_json::json!({ "match": stamp.settings, "players": stamp.players }),
        seed: spec.seed,
        engine: None,
        // An engine at reduced strength or under a time limit is not, and a match cannot tell.
        reproducible: false,
    };
    let shards = store.child(SHARDS);
    let chunks = records.chunks(GAMES_A_SHARD);
    let count = chunks.len() as u32;
    for (shard, records) in (0..).zip(chunks) {
        write_shard(&shards, shard, records, &meta)?;
    }
    remove_shards_from(&shards, count)
}

/// A test that ended the match early may leave fewer shards than an earlier run did.
fn remove_shards_from(shards: &Store, count: u32) -> Result<(), ArenaError> {
    let mut stale: Vec<String> = shards
        .list("")?
        .into_iter()
        .filter(|entry| shard_number(&entry.path).is_some_and(|n| n >= count))
        .map(|entry| entry.path)
        .collect();
    // A shard counts by its sidecar, which goes first.
    stale.sort_by_key(|path| !path.ends_with(".json"));
    for path in stale {
        shards.delete(&path)?;
    }
    Ok(())
}

fn shard_number(path: &str) -> Option<u32> {
    let (name, extension) = path.strip_prefix("shard-")?.rsplit_once('.')?;
    matches!(extension, "json" | "parquet").then(|| name.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_names() {
        assert_eq!(shard_number("shard-00012.parquet"), Some(12));
        assert_eq!(shard_number("shard-00003.json"), Some(3));
        assert_eq!(shard_number("shard-00003.tmp"), None);
        assert_eq!(shard_number("report.json"), None);
    }

    #[test]
    fn another_match_is_named() {
        let folder = Path::new("m");
        let settings = MatchSpec::new("m", 2, 1).settings("chess");
        let players = ["a".to_owned(), "b".to_owned()];
        let stamp = MatchStamp { settings: settings.clone(), players: players.clone(), seconds: 0.0 };
        stamp.check(folder, &settings, Some(&players)).unwrap();
        let other = MatchSpec::new("m", 2, 2).settings("chess");
        let message = stamp.check(folder, &other, None).unwrap_err().to_string();
        assert!(message.contains("`seed` 1 where it now is 2"), "{message}");
        let message = stamp.check(folder, &settings, Some(&["a".to_owned(), "c".to_owned()])).unwrap_err().to_string();
        assert!(message.contains("`c`"), "{message}");
    }
}
