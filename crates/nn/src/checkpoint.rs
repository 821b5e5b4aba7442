//! Checkpoints: a folder that holds one whole state, and beside it the one before.
//!
//! ```text
//! model.safetensors       the candidate: what is evaluated and played (the moving average, if one is kept)
//! best.safetensors        the best network, if it is another one
//! optimizer.safetensors   moments `m.NAME` and `v.NAME`; with a moving average also the raw weights, `raw.NAME`
//! checkpoint.json         written last; names every file with its blake3 hash
//! previous/               the same four, one save older
//! ```
//!
//! A generation is whole if `checkpoint.json` is there and every file has the hash that it names. A save first copies
//! the present generation, if it is whole, to `previous/`, then puts the new files in place and `checkpoint.json` last.
//! Every single file is written whole or not at all, so that at any moment, whatever fails, at least one of the two
//! generations is whole: while `previous/` is being overwritten the present one is, and the other way round. Loading
//! takes the present generation, or else the previous one and says so.

use std::collections::BTreeMap;

use candle_core::Device;
use games::Shape;
use pipeline::{Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::NnError;
use crate::arch::Architecture;
use crate::network::Network;
use crate::optimizer::AdamW;
use crate::trainer::{Trainer, TrainerConfig};
use crate::weights::{self, Weights};

/// Version of the folder's format.
pub const CHECKPOINT_FORMAT: u32 = 1;

const MODEL: &str = "model.safetensors";
const BEST: &str = "best.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const MANIFEST: &str = "checkpoint.json";
const PREVIOUS: &str = "previous/";

/// What a checkpoint says about itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// Iteration of refinement; 0 for pre-training.
    pub iteration: u64,
    /// Steps of the trainer. A save of a trainer sets it.
    pub step: u64,
    /// The resolved config.
    pub config: Value,
    /// Fingerprint of the data that it was trained on.
    pub data_fingerprint: String,
    /// Losses and the like.
    pub metrics: Value,
    /// Where the loader was: enough to go on with the next batch.
    pub loader: Value,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct FileEntry {
    bytes: u64,
    blake3: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    architecture_id: String,
    architecture: Architecture,
    #[serde(flatten)]
    info: CheckpointInfo,
    files: BTreeMap<String, FileEntry>,
}

/// Which network is the best one after a save.
#[derive(Clone, Copy)]
pub enum Best<'a> {
    /// The candidate that is being saved.
    Candidate,
    /// The one that the folder holds as best until now; the candidate if the folder holds no checkpoint.
    Keep,
    /// This one.
    Network(&'a Network),
}

/// Storage as the checkpoint needs it; the tests put one in between that fails.
trait Files {
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

/// A whole checkpoint in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The network.
    pub architecture: Architecture,
    /// What it says about itself.
    pub info: CheckpointInfo,
    /// Why this is the previous generation, if it is; worth a warning.
    pub recovered: Option<String>,
    place: String,
    files: BTreeMap<String, Vec<u8>>,
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
        architecture: manifest.architecture,
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
fn read(store: &impl Files) -> Result<Option<Checkpoint>, NnError> {
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
fn write(
    store: &impl Files,
    architecture: &Architecture,
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
        architecture_id: architecture.id(),
        architecture: architecture.clone(),
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

fn model_bytes(arch: &Architecture, weights: &Weights) -> Result<Vec<u8>, NnError> {
    weights::encode(weights, &serde_json::json!({ "kind": "model", "architecture": arch.id() }))
}

/// Moments and, with a moving average, raw weights.
fn optimizer_bytes(trainer: &Trainer) -> Result<Vec<u8>, NnError> {
    let network = trainer.network();
    let mut state = trainer.optimizer().state(network.params())?;
    if trainer.has_average() {
        state.extend(network.weights()?.into_iter().map(|(name, tensor)| (format!("raw.{name}"), tensor)));
    }
    let about = serde_json::json!({
        "kind": "optimizer", "architecture": network.architecture().id(), "steps": trainer.steps(),
    });
    weights::encode(&state, &about)
}

fn save(
    store: &impl Files,
    arch: &Architecture,
    model: Vec<u8>,
    optimizer: Option<Vec<u8>>,
    best: Best<'_>,
    info: &CheckpointInfo,
) -> Result<(), NnError> {
    let best = match best {
        Best::Candidate => None,
        Best::Network(network) => Some(model_bytes(network.architecture(), &network.weights()?)?),
        Best::Keep => match read(store)? {
            Some(held) => {
                held.expect_architecture(arch)?;
                Some(held.files.get(BEST).or(held.files.get(MODEL)).cloned().unwrap_or_default())
            }
            None => None,
        },
    };
    let mut files = BTreeMap::new();
    if let Some(best) = best.filter(|best| *best != model) {
        files.insert(BEST.to_owned(), best);
    }
    files.insert(MODEL.to_owned(), model);
    if let Some(optimizer) = optimizer {
        files.insert(OPTIMIZER.to_owned(), optimizer);
    }
    write(store, arch, info, &files)
}

impl Checkpoint {
    /// Saves a trainer: weights, moments, step. `info.step` is taken from the trainer.
    ///
    /// # Errors
    /// [`NnError::Store`] if a file cannot be written; what [`Checkpoint::load`] gives is then what it gave before.
    pub fn save_trainer(
        store: &Store,
        trainer: &Trainer,
        best: Best<'_>,
        info: &CheckpointInfo,
    ) -> Result<(), NnError> {
        save_trainer(store, trainer, best, info)
    }

    /// Saves a network without optimizer state: training from it starts with fresh moments.
    ///
    /// # Errors
    /// As [`Checkpoint::save_trainer`].
    pub fn save_network(
        store: &Store,
        network: &Network,
        best: Best<'_>,
        info: &CheckpointInfo,
    ) -> Result<(), NnError> {
        let arch = network.architecture();
        save(store, arch, model_bytes(arch, &network.weights()?)?, None, best, info)
    }

    /// Whether the folder holds a checkpoint, whole or not.
    ///
    /// # Errors
    /// [`NnError::Store`] if the storage cannot tell.
    pub fn exists(store: &Store) -> Result<bool, NnError> {
        Ok(store.exists(MANIFEST)? || store.exists(&format!("{PREVIOUS}{MANIFEST}"))?)
    }

    /// Loads the newest whole generation.
    ///
    /// # Errors
    /// [`NnError::NotWhole`] if there is none.
    pub fn load(store: &Store) -> Result<Self, NnError> {
        Checkpoint::find(store)?
            .ok_or_else(|| NnError::NotWhole { place: store.describe(""), reason: format!("there is no {MANIFEST}") })
    }

    /// Loads the newest whole generation, if the folder holds any checkpoint.
    ///
    /// # Errors
    /// [`NnError::NotWhole`] if there is something, but nothing whole.
    pub fn find(store: &Store) -> Result<Option<Self>, NnError> {
        read(store)
    }

    /// Makes the candidate the best network; everything else stays.
    ///
    /// # Errors
    /// As [`Checkpoint::load`] and [`Checkpoint::save_trainer`].
    pub fn promote(store: &Store) -> Result<(), NnError> {
        let mut held = Checkpoint::load(store)?;
        held.files.remove(BEST);
        write(store, &held.architecture, &held.info, &held.files)
    }

    /// Refuses a checkpoint of another architecture.
    ///
    /// # Errors
    /// [`NnError::Foreign`].
    pub fn expect_architecture(&self, expected: &Architecture) -> Result<(), NnError> {
        if self.architecture == *expected {
            return Ok(());
        }
        Err(NnError::Foreign { place: self.place.clone(), expected: expected.id(), found: self.architecture.id() })
    }

    /// Refuses a network for another game.
    ///
    /// # Errors
    /// [`NnError::Foreign`].
    pub fn expect_game(&self, shape: Shape) -> Result<(), NnError> {
        if self.architecture.shape() == shape {
            return Ok(());
        }
        let expected = format!(
            "a network with input {}x{}x{} and {} moves",
            shape.planes(),
            shape.height,
            shape.width,
            shape.actions()
        );
        Err(NnError::Foreign { place: self.place.clone(), expected, found: self.architecture.id() })
    }

    /// Whether the best network is another one than the candidate.
    pub fn has_best(&self) -> bool {
        self.files.contains_key(BEST)
    }

    /// A hash of the best network's weights: the same weights, the same fingerprint.
    pub fn fingerprint(&self) -> String {
        let weights = self.files.get(BEST).or(self.files.get(MODEL));
        blake3::hash(weights.map_or(&[][..], Vec::as_slice)).to_hex().to_string()
    }

    /// Whether training can go on where it was.
    pub fn has_optimizer(&self) -> bool {
        self.files.contains_key(OPTIMIZER)
    }

    /// The tensors of a file and what its metadata says of the step; refuses another kind or architecture.
    fn decode(&self, file: &str, kind: &str) -> Result<(Weights, Option<u64>), NnError> {
        let name = format!("{}/{file}", self.place.trim_end_matches('/'));
        let bytes = self
            .files
            .get(file)
            .ok_or_else(|| NnError::NotWhole { place: self.place.clone(), reason: format!("it has no {file}") })?;
        let (weights, about) = weights::decode(bytes, &name)?;
        let id = about["architecture"].as_str().unwrap_or("none");
        if id != self.architecture.id() {
            return Err(NnError::Foreign { place: name, expected: self.architecture.id(), found: id.to_owned() });
        }
        if about["kind"] != kind {
            return Err(NnError::File { file: name, reason: format!("it holds {}, expected {kind}", about["kind"]) });
        }
        Ok((weights, about["steps"].as_u64()))
    }

    fn network_of(&self, file: &str, device: &Device) -> Result<Network, NnError> {
        let (weights, _) = self.decode(file, "model")?;
        Network::from_weights(&self.architecture, device, &weights, &format!("{}/{file}", self.place))
    }

    /// The candidate.
    ///
    /// # Errors
    /// [`NnError::Tensors`] names each tensor that is missing, extra or reshaped.
    pub fn network(&self, device: &Device) -> Result<Network, NnError> {
        self.network_of(MODEL, device)
    }

    /// The best network, which is the candidate unless the folder has another.
    ///
    /// # Errors
    /// As [`Checkpoint::network`].
    pub fn best_network(&self, device: &Device) -> Result<Network, NnError> {
        self.network_of(if self.has_best() { BEST } else { MODEL }, device)
    }

    /// A trainer that goes on exactly where the saved one was; at step 0 with fresh moments if the checkpoint has no
    /// optimizer.
    ///
    /// # Errors
    /// As [`Checkpoint::network`].
    pub fn trainer(&self, device: &Device, config: TrainerConfig) -> Result<Trainer, NnError> {
        if !self.has_optimizer() {
            return Trainer::new(self.network(device)?, config);
        }
        let (state, steps) = self.decode(OPTIMIZER, "optimizer")?;
        let (mut raw, mut moments) = (Weights::new(), Weights::new());
        for (name, tensor) in state {
            match name.strip_prefix("raw.") {
                Some(name) => raw.insert(name.to_owned(), tensor),
                None => moments.insert(name, tensor),
            };
        }
        let file = format!("{}/{OPTIMIZER}", self.place);
        let steps = steps.ok_or_else(|| NnError::File {
            file: file.clone(),
            reason: "its metadata do not say after how many steps it was saved".to_owned(),
        })?;
        let (candidate, _) = self.decode(MODEL, "model")?;
        let arch = &self.architecture;
        let candidate_network = Network::from_weights(arch, device, &candidate, &format!("{}/{MODEL}", self.place))?;
        let optimizer = AdamW::restore(config.optimizer, arch, device, steps, &moments, &file)?;
        if raw.is_empty() {
            return Trainer::with_optimizer(candidate_network, optimizer, config, None);
        }
        let network = Network::from_weights(arch, device, &raw, &file)?;
        Trainer::with_optimizer(network, optimizer, config, Some(&candidate))
    }
}

fn save_trainer(store: &impl Files, trainer: &Trainer, best: Best<'_>, info: &CheckpointInfo) -> Result<(), NnError> {
    let arch = trainer.network().architecture();
    let info = CheckpointInfo { step: trainer.steps(), ..info.clone() };
    let model = model_bytes(arch, &trainer.candidate_weights()?)?;
    save(store, arch, model, Some(optimizer_bytes(trainer)?), best, &info)
}

#[cfg(test)]
mod tests;
