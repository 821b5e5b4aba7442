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

mod design;
mod generation;

use std::collections::BTreeMap;

use candle_core::Device;
use games::Shape;
use pipeline::Store;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::NnError;
use crate::arch::Architecture;
use crate::network::Network;
use crate::optimizer::{Optimizer, OptimizerConfig};
use crate::policy_cnn::{PolicyCnn, PolicyTrainer};
use crate::trainer::{Trainer, TrainerConfig};
use crate::weights::{self, Weights};
pub use design::{Design, PolicyKind};
pub use generation::CHECKPOINT_FORMAT;
use generation::{BEST, Files, MANIFEST, MODEL, OPTIMIZER, PREVIOUS, read, write};

/// What a checkpoint says about itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// How a published network was made, and where training that began with another network had that one from; else null.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub provenance: Value,
}

/// What to do about a residual network of another size: only its size is a setting.
const CHANGE_NET: &str = "change [net] or use another folder";
/// What to do about a network of another kind or for another game.
const ANOTHER_FOLDER: &str = "use another folder";

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

/// A whole checkpoint in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Which network it is.
    pub design: Design,
    /// What it says about itself.
    pub info: CheckpointInfo,
    /// Why this is the previous generation, if it is; worth a warning.
    pub recovered: Option<String>,
    place: String,
    files: BTreeMap<String, Vec<u8>>,
}

fn model_bytes(design: &Design, weights: &Weights) -> Result<Vec<u8>, NnError> {
    weights::encode(weights, &serde_json::json!({ "kind": "model", "architecture": design.id() }))
}

/// Moments and, with a moving average, raw weights.
fn optimizer_bytes(design: &Design, state: &Weights, steps: u64) -> Result<Vec<u8>, NnError> {
    let about = serde_json::json!({ "kind": "optimizer", "architecture": design.id(), "steps": steps });
    weights::encode(state, &about)
}

fn save(
    store: &impl Files,
    design: &Design,
    model: Vec<u8>,
    optimizer: Option<Vec<u8>>,
    best: Best<'_>,
    info: &CheckpointInfo,
) -> Result<(), NnError> {
    let best = match best {
        Best::Candidate => None,
        Best::Network(network) => Some(model_bytes(&network.architecture().into(), &network.weights()?)?),
        Best::Keep => match read(store)? {
            Some(held) => {
                held.expect(design)?;
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
    write(store, design, info, &files)
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
        let design = network.architecture().into();
        save(store, &design, model_bytes(&design, &network.weights()?)?, None, best, info)
    }

    /// Saves a trainer of a policy network: weights, moments, step. `info.step` is taken from the trainer.
    ///
    /// # Errors
    /// As [`Checkpoint::save_trainer`].
    pub fn save_policy(
        store: &Store,
        trainer: &PolicyTrainer,
        best: Best<'_>,
        info: &CheckpointInfo,
    ) -> Result<(), NnError> {
        let (design, network) = (Design::Policy(PolicyKind::PolicyCnn), trainer.network());
        let info = CheckpointInfo { step: trainer.steps(), ..info.clone() };
        let state = trainer.optimizer().state(network.params())?;
        let optimizer = optimizer_bytes(&design, &state, trainer.steps())?;
        save(store, &design, model_bytes(&design, &network.weights()?)?, Some(optimizer), best, &info)
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
        write(store, &held.design, &held.info, &held.files)
    }

    /// Refuses a checkpoint of another architecture.
    ///
    /// # Errors
    /// [`NnError::Foreign`].
    pub fn expect_architecture(&self, expected: &Architecture) -> Result<(), NnError> {
        if self.design == Design::from(expected) { Ok(()) } else { Err(self.foreign(expected.id(), CHANGE_NET)) }
    }

    /// Refuses a checkpoint of another network.
    fn expect(&self, expected: &Design) -> Result<(), NnError> {
        if self.design == *expected { Ok(()) } else { Err(self.foreign(expected.id(), ANOTHER_FOLDER)) }
    }

    fn foreign(&self, expected: String, remedy: &'static str) -> NnError {
        NnError::Foreign { place: self.place.clone(), expected, found: self.design.id(), remedy }
    }

    /// Refuses a network for another game.
    ///
    /// # Errors
    /// [`NnError::Foreign`].
    pub fn expect_game(&self, shape: Shape) -> Result<(), NnError> {
        if matches!(&self.design, Design::ResNet(architecture) if architecture.shape() == shape) {
            return Ok(());
        }
        let (planes, actions) = (shape.planes(), shape.actions());
        let input = format!("{planes}x{}x{}", shape.height, shape.width);
        Err(self.foreign(format!("a network with input {input} and {actions} moves"), ANOTHER_FOLDER))
    }

    /// The numbers of a residual network; refuses another.
    fn architecture(&self) -> Result<&Architecture, NnError> {
        match &self.design {
            Design::ResNet(architecture) => Ok(architecture),
            Design::Policy(_) => Err(self.foreign("a residual network".to_owned(), ANOTHER_FOLDER)),
        }
    }

    /// Where training was, as its last save said in `info.loader`.
    ///
    /// # Errors
    /// [`NnError::File`] if that is not what a resumed training can go on from: it has to be known, since weights that are
    /// trained must not go on under a schedule from step 0.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<T, NnError> {
        T::deserialize(&self.info.loader).map_err(|error| NnError::File {
            file: format!("{}/{MANIFEST}", self.place.trim_end_matches('/')),
            reason: format!(
                "its `loader`, where training was, cannot be read ({error}): move the folder aside to train anew"
            ),
        })
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
        if id != self.design.id() {
            let (expected, found) = (self.design.id(), id.to_owned());
            return Err(NnError::Foreign { place: name, expected, found, remedy: ANOTHER_FOLDER });
        }
        if about["kind"] != kind {
            return Err(NnError::File { file: name, reason: format!("it holds {}, expected {kind}", about["kind"]) });
        }
        Ok((weights, about["steps"].as_u64()))
    }

    fn network_of(&self, file: &str, device: &Device) -> Result<Network, NnError> {
        let (weights, _) = self.decode(file, "model")?;
        Network::from_weights(self.architecture()?, device, &weights, &format!("{}/{file}", self.place))
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
        let Some(Resumed { moments, raw, steps, file }) = self.resumed()? else {
            return Trainer::new(self.network(device)?, config);
        };
        let (arch, candidate_network) = (self.architecture()?, self.network(device)?);
        let optimizer = Optimizer::restore(config.optimizer, self.design.tensors(), device, steps, &moments, &file)?;
        if raw.is_empty() {
            return Trainer::with_optimizer(candidate_network, optimizer, config, None);
        }
        let network = Network::from_weights(arch, device, &raw, &file)?;
        Trainer::with_optimizer(network, optimizer, config, Some(&candidate_network.weights()?))
    }

    /// The best policy network.
    ///
    /// # Errors
    /// As [`Checkpoint::network`], and [`NnError::Foreign`] for another kind of network.
    pub fn best_policy(&self) -> Result<PolicyCnn, NnError> {
        self.policy_of(if self.has_best() { BEST } else { MODEL })
    }

    fn policy_of(&self, file: &str) -> Result<PolicyCnn, NnError> {
        self.expect(&Design::Policy(PolicyKind::PolicyCnn))?;
        let (weights, _) = self.decode(file, "model")?;
        PolicyCnn::from_weights(&weights, &format!("{}/{file}", self.place))
    }

    /// As [`Checkpoint::trainer`] for a policy network.
    ///
    /// # Errors
    /// As [`Checkpoint::best_policy`].
    pub fn policy_trainer(&self, config: OptimizerConfig) -> Result<PolicyTrainer, NnError> {
        let network = self.policy_of(MODEL)?;
        let Some(Resumed { moments, steps, file, .. }) = self.resumed()? else {
            return PolicyTrainer::new(network, config);
        };
        let optimizer = Optimizer::restore(config, self.design.tensors(), &Device::Cpu, steps, &moments, &file)?;
        Ok(PolicyTrainer::with_optimizer(network, optimizer))
    }

    /// What the optimizer's file holds, if there is one.
    fn resumed(&self) -> Result<Option<Resumed>, NnError> {
        if !self.has_optimizer() {
            return Ok(None);
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
        Ok(Some(Resumed { moments, raw, steps, file }))
    }
}

/// Where an optimizer was.
struct Resumed {
    moments: Weights,
    /// Raw weights beside a moving average.
    raw: Weights,
    steps: u64,
    /// The file's name, for messages.
    file: String,
}

fn save_trainer(store: &impl Files, trainer: &Trainer, best: Best<'_>, info: &CheckpointInfo) -> Result<(), NnError> {
    let network = trainer.network();
    let design = network.architecture().into();
    let info = CheckpointInfo { step: trainer.steps(), ..info.clone() };
    let model = model_bytes(&design, &trainer.candidate_weights()?)?;
    let mut state = trainer.optimizer().state(network.params())?;
    if trainer.has_average() {
        state.extend(network.weights()?.into_iter().map(|(name, tensor)| (format!("raw.{name}"), tensor)));
    }
    let optimizer = optimizer_bytes(&design, &state, trainer.steps())?;
    save(store, &design, model, Some(optimizer), best, &info)
}

#[cfg(test)]
mod tests;
