//! The stamp of a stage: `stage.json` in its folder says what the content is, or is becoming.
//!
//! It is the only thing that one stage needs to know of another.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files;
use crate::hash::canonical;

/// The file name of a stamp.
pub const STAMP_FILE: &str = "stage.json";

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Begun and not done, whether its process lives or not.
    Running,
    /// Complete.
    Done,
}

/// What a stage wrote about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamp {
    /// The name of the stage.
    pub stage: String,
    /// How far it is.
    pub status: Status,
    /// What determines the content.
    pub settings: Value,
    /// Amounts that may grow without changing what is there, such as `games`.
    pub growable: BTreeMap<String, u64>,
    /// Fingerprints of what the stage reads, by name.
    pub inputs: BTreeMap<String, String>,
    /// Of the content; none until done.
    pub fingerprint: Option<String>,
    /// Whatever the stage reports; null until done.
    pub summary: Value,
    /// Working time so far, over all sittings, in seconds: of each process where several share the stage. A kill loses
    /// at most twenty seconds of it.
    pub seconds: f64,
    /// How often the stage was begun or gone on with; 0 where an earlier version of the program did not count.
    #[serde(default)]
    pub sittings: u64,
    /// What the last sitting ran on, as [`machine`](crate::machine()) says; empty where an earlier version did not say.
    #[serde(default)]
    pub machine: String,
    /// When the first run began, UTC.
    pub started: String,
    /// When it was done, UTC.
    pub finished: Option<String>,
    /// How far it is while it runs, as far as it can tell: what was done, and all there is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<(u64, u64)>,
}

impl Stamp {
    /// Whether the growable amounts are at least these.
    pub fn holds(&self, amounts: &BTreeMap<String, u64>) -> bool {
        self.growable.keys().eq(amounts.keys())
            && self.growable.values().zip(amounts.values()).all(|(is, asked)| is >= asked)
    }
}

/// A stamp that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// The file cannot be read.
    #[error("cannot read the stage stamp {}: {source}", .path.display())]
    Read {
        /// The stamp.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} is not a stage stamp: {why}", .path.display())]
    Content {
        /// The stamp.
        path: PathBuf,
        /// What was expected.
        why: String,
    },
    /// The file cannot be written; the stamp before it stands.
    #[error("cannot write the stage stamp {}: {source}", .path.display())]
    Write {
        /// The stamp.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The stamp of a stage's folder; none when it has none.
pub(crate) fn load_stamp(dir: &Path) -> Result<Option<Stamp>, StampError> {
    let path = dir.join(STAMP_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        Err(source) => return Err(StampError::Read { path, source }),
    };
    let stamp: Stamp = match serde_json::from_slice(&bytes) {
        Ok(stamp) => stamp,
        Err(e) => return Err(StampError::Content { path, why: e.to_string() }),
    };
    if stamp.status == Status::Done && stamp.fingerprint.is_none() {
        let why = "it says `done` and has no fingerprint".to_owned();
        return Err(StampError::Content { path, why });
    }
    Ok(Some(stamp))
}

/// Replaces the stamp of a folder, whole or not at all.
pub(crate) fn write_stamp(dir: &Path, stamp: &Stamp) -> Result<(), StampError> {
    write_json(&dir.join(STAMP_FILE), stamp)
}

/// Writes a JSON file for people and programs to read.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StampError> {
    let write = || {
        let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        text.push(b'\n');
        files::write_whole(path, &text)
    };
    write().map_err(|source| StampError::Write { path: path.to_path_buf(), source })
}

/// The differences of two JSON values as `a.b: 1 -> 2`, compared by their canonical text.
pub(crate) fn differences(name: &str, old: &Value, new: &Value) -> Vec<String> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    flatten(name, old, &mut before);
    flatten(name, new, &mut after);
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let show = |value: Option<&&Value>| value.map_or_else(|| "absent".to_string(), |v| shortened(&v.to_string()));
    keys.into_iter()
        .filter(|key| before.get(*key).map(|v| canonical(v)) != after.get(*key).map(|v| canonical(v)))
        .map(|key| format!("{key}: {} -> {}", show(before.get(key)), show(after.get(key))))
        .collect()
}

/// The leaves of a value by their paths; empty tables and lists are leaves.
fn flatten<'a>(path: &str, value: &'a Value, out: &mut BTreeMap<String, &'a Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, item)| flatten(&format!("{path}.{key}"), item, out));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(i, item)| flatten(&format!("{path}[{i}]"), item, out));
        }
        leaf => {
            out.insert(path.to_string(), leaf);
        }
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_name_full_paths() {
        let old = json!({"engine": {"nodes": 500, "path": "a"}, "list": [1, 2], "gone": true, "same": 1.5});
        let new = json!({"engine": {"nodes": 1000, "path": "a"}, "list": [1], "same": 1.5, "empty": {}});
        assert_eq!(
            differences("settings", &old, &new),
            [
                "settings.empty: absent -> {}",
                "settings.engine.nodes: 500 -> 1000",
                "settings.gone: true -> absent",
                "settings.list[1]: 2 -> absent",
            ]
        );
        assert!(differences("s", &old, &old).is_empty());
        assert!(shortened(&"é".repeat(50)).ends_with("..."));
    }

    #[test]
    fn unreadable_stamps_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(load_stamp(dir.path()).unwrap().is_none());
        assert!(load_stamp(&dir.path().join("none")).unwrap().is_none());
        fs::write(dir.path().join(STAMP_FILE), b"{\"stage\": 3}").unwrap();
        let text = load_stamp(dir.path()).unwrap_err().to_string();
        assert!(text.contains("stage.json is not a stage stamp"), "{text}");
    }
}
