//! Reading and writing one whole generation of a checkpoint, and falling back to the one before.

use std::collections::BTreeMap;

use pipeline::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{Checkpoint, CheckpointInfo, Design};
use crate::NnError;

/// Version of the folder's format.
pub const CHECKPOINT_FORMAT: u32 = 1;

pub(super) const MODEL: &str = "model.safetensors";
pub(super) const BEST: &str = "best.safetensors";
pub(super) const OPTIMIZER: &str = "optimizer.safetensors";
pub(super) const MANIFEST: &str = "checkpoint.json";
pub(super) const PREVIOUS: &str = "previous/";

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct FileEntry {
    bytes: u64,
    blake3: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    architecture_id: String,
    architecture: Design,
    #[serde(flatten)]
    info: CheckpointInfo,
    files: BTreeMap<String, FileEntry>,
}

/// Storage as the checkpoint needs it; the tests put one in between that fails.
pub(super) trait Files {
    fn put(&self, path: &str, bytes: &[u8]) -> Result<(), NnError>;
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, NnError>;
    fn delete(&self, path: &str) -> Result<(), NnError>;
    fn describe(&self, path: &str) -> String;
}

impl Files for Store {
    fn put(&self, path: &str, bytes: &[u8]) -> Result<(), NnError> {
        Ok(Store::put(self, path, bytes)?)
    }
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, NnError> {
        match Store::get(self, path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
    fn delete(&self, path: &str) -> Result<(), NnError> {
        Ok(Store::delete(self, path)?)
    }
    fn describe(&self, path: &str) -> String {
        Store::describe(self, path)
    }
}

/// A generation that is not whole.
enum Trouble {
    /// There is no `checkpoint.json`.
    Absent(String),
    /// Something does not fit it.
    Broken(String),
    /// The storage failed.
    Storage(NnError),
}

impl From<NnError> for Trouble {
    fn from(error: NnError) -> Self {
        Trouble::Storage(error)
    }
}

/// Reads one generation and checks every file of it.
fn read_generation(store: &impl Files, prefix: &str) -> Result<Checkpoint, Trouble> {
    let name = |file: &str| format!("{prefix}{file}");
    let Some(text) = store.get(&name(MANIFEST))? else {
        return Err(Trouble::Absent(format!("there is no {}", name(MANIFEST))));
    };
    let broken = |file: &str, why: String| Trouble::Broken(format!("{}: {why}", store.describe(&name(file))));
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| broken(MANIFEST, e.to_string()))?;
    if manifest.format != CHECKPOINT_FORMAT {
        let why = format!("format {}, but this program reads format {CHECKPOINT_FORMAT}", manifest.format);
        return Err(broken(MANIFEST, why));
    }
    let mut files = BTreeMap::new();
    for (file, entry) in &manifest.files {
        let bytes = store.get(&name(file))?.ok_or_else(|| broken(file, "missing".to_owned()))?;
        if *entry != entry_of(&bytes) {
            return Err(broken(file, format!("not the file that {MANIFEST} names (another hash)")));
        }
        files.insert(file.clone(), bytes);
    }
    if !files.contains_key(MODEL) {
        return Err(broken(MANIFEST, format!("names no {MODEL}")));
    }
    Ok(Checkpoint {
        design: manifest.architecture,
        info: manifest.info,
        recovered: None,
        place: store.describe(prefix.trim_end_matches('/')),
        files,
    })
}

fn entry_of(bytes: &[u8]) -> FileEntry {
    FileEntry { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
}

/// The newest whole generation; `None` if there is no checkpoint at all.
pub(super) fn read(store: &impl Files) -> Result<Option<Checkpoint>, NnError> {
    let reason = match read_generation(store, "") {
        Ok(checkpoint) => return Ok(Some(checkpoint)),
        Err(Trouble::Storage(error)) => return Err(error),
        Err(trouble) => trouble,
    };
    match (reason, read_generation(store, PREVIOUS)) {
        (Trouble::Broken(why) | Trouble::Absent(why), Ok(mut checkpoint)) => {
            checkpoint.recovered = Some(format!("{why}; the save before it is used"));
            Ok(Some(checkpoint))
        }
        (_, Err(Trouble::Storage(error))) | (Trouble::Storage(error), _) => Err(error),
        (Trouble::Absent(_), Err(Trouble::Absent(_))) => Ok(None),
        (Trouble::Broken(a) | Trouble::Absent(a), Err(Trouble::Broken(b) | Trouble::Absent(b))) => {
            Err(NnError::NotWhole { place: store.describe(""), reason: format!("{a}; and {b}") })
        }
    }
}

/// Writes a generation, and keeps the one before it.
pub(super) fn write(
    store: &impl Files,
    design: &Design,
    info: &CheckpointInfo,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<(), NnError> {
    match read_generation(store, "") {
        Ok(_) => {
            for file in [MODEL, BEST, OPTIMIZER, MANIFEST] {
                match store.get(file)? {
                    Some(bytes) => store.put(&format!("{PREVIOUS}{file}"), &bytes)?,
                    None => store.delete(&format!("{PREVIOUS}{file}"))?,
                }
            }
        }
        // What is there is half a save; the whole one is in `previous/` and stays.
        Err(Trouble::Absent(_) | Trouble::Broken(_)) => {}
        Err(Trouble::Storage(error)) => return Err(error),
    }
    let manifest = Manifest {
        format: CHECKPOINT_FORMAT,
        architecture_id: design.id(),
        architecture: design.clone(),
        info: info.clone(),
        files: files.iter().map(|(name, bytes)| (name.clone(), entry_of(bytes))).collect(),
    };
    for (name, bytes) in files {
        store.put(name, bytes)?;
    }
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|e| NnError::File { file: store.describe(MANIFEST), reason: e.to_string() })?;
    store.put(MANIFEST, &text)?;
    for stale in [BEST, OPTIMIZER].into_iter().filter(|name| !files.contains_key(*name)) {
        store.delete(stale)?;
    }
    Ok(())
}
