use std::cell::Cell;

use super::*;
use crate::optimizer::{Method, OptimizerConfig};
use crate::testing::{SHAPES, Samples, small};

fn trainer(seed: u64, config: TrainerConfig) -> Trainer {
    Trainer::new(Network::new(&small(SHAPES[2], true), &Device::Cpu, seed).unwrap(), config).unwrap()
}

fn steps(trainer: &mut Trainer, count: u64) {
    let from = trainer.steps();
    for i in from..from + count {
        let rate = crate::Schedule::new(3e-3, 1e-4, 20).lr(i);
        trainer.step(&Samples::random(SHAPES[2], 16, i).view(), rate).unwrap();
    }
}

fn info(iteration: u64) -> CheckpointInfo {
    CheckpointInfo {
        iteration,
        config: serde_json::json!({"net": {"blocks": 2}}),
        data_fingerprint: "abc".to_owned(),
        metrics: serde_json::json!({"loss": 1.5}),
        loader: serde_json::json!({"epoch": 1, "batch": 7}),
        ..CheckpointInfo::default()
    }
}

#[test]
fn t1_twenty_steps_equal_ten_save_load_ten() {
    for (ema, method) in [(None, Method::Adamw), (Some(0.9), Method::Adamw), (Some(0.9), Method::Muon)] {
        let optimizer = OptimizerConfig { method, ..OptimizerConfig::default() };
        let config = TrainerConfig { ema, optimizer, ..TrainerConfig::default() };
        let mut whole = trainer(1, config);
        steps(&mut whole, 20);
        let store = Store::memory();
        let mut half = trainer(1, config);
        steps(&mut half, 10);
        Checkpoint::save_trainer(&store, &half, Best::Candidate, &info(0)).unwrap();
        drop(half);
        let loaded = Checkpoint::load(&store).unwrap();
        assert_eq!(loaded.info, CheckpointInfo { step: 10, ..info(0) });
        let mut half = loaded.trainer(&Device::Cpu, config).unwrap();
        assert_eq!(half.steps(), 10);
        steps(&mut half, 10);
        // Not close: the same bits.
        assert_eq!(half.network().weights().unwrap(), whole.network().weights().unwrap());
        assert_eq!(half.candidate_weights().unwrap(), whole.candidate_weights().unwrap());
        let state = |t: &Trainer| t.optimizer().state(t.network().params()).unwrap();
        assert_eq!(state(&half), state(&whole));
    }
}

#[test]
fn saved_files_are_the_documented_ones_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(!Checkpoint::exists(&store).unwrap());
    assert!(Checkpoint::load(&store).unwrap_err().to_string().contains("no checkpoint.json"));
    let mut trainer = trainer(1, TrainerConfig::default());
    Checkpoint::save_trainer(&store, &trainer, Best::Candidate, &info(0)).unwrap();
    let names = || store.list("").unwrap().into_iter().map(|e| e.path).collect::<Vec<_>>();
    assert_eq!(names(), ["checkpoint.json", "model.safetensors", "optimizer.safetensors"]);
    steps(&mut trainer, 1);
    Checkpoint::save_trainer(&store, &trainer, Best::Keep, &info(1)).unwrap();
    assert_eq!(
        names(),
        [
            "best.safetensors",
            "checkpoint.json",
            "model.safetensors",
            "optimizer.safetensors",
            "previous/checkpoint.json",
            "previous/model.safetensors",
            "previous/optimizer.safetensors"
        ]
    );
    assert!(Checkpoint::exists(&store).unwrap());
}

#[test]
fn best_is_kept_until_the_candidate_is_promoted() {
    let store = Store::memory();
    let mut trainer = trainer(1, TrainerConfig::default());
    let first = trainer.network().weights().unwrap();
    Checkpoint::save_trainer(&store, &trainer, Best::Candidate, &info(0)).unwrap();
    let best = || Checkpoint::load(&store).unwrap().best_network(&Device::Cpu).unwrap().weights().unwrap();
    for i in 1..4 {
        steps(&mut trainer, 1);
        Checkpoint::save_trainer(&store, &trainer, Best::Keep, &info(i)).unwrap();
        assert!(Checkpoint::load(&store).unwrap().has_best());
        assert_eq!(best(), first);
    }
    Checkpoint::promote(&store).unwrap();
    let promoted = Checkpoint::load(&store).unwrap();
    assert!(!promoted.has_best() && promoted.has_optimizer() && !store.exists("best.safetensors").unwrap());
    assert_eq!(best(), trainer.network().weights().unwrap());
    let other = Network::new(&small(SHAPES[2], true), &Device::Cpu, 5).unwrap();
    Checkpoint::save_network(&store, trainer.network(), Best::Network(&other), &info(4)).unwrap();
    assert_eq!(best(), other.weights().unwrap());
    let loaded = Checkpoint::load(&store).unwrap();
    assert!(!loaded.has_optimizer());
    assert_eq!(loaded.trainer(&Device::Cpu, TrainerConfig::default()).unwrap().steps(), 0);
}

/// A store whose writes fail after a number of them, as on a full disk or after a kill.
struct Failing<'a> {
    store: &'a Store,
    left: Cell<usize>,
}

impl Failing<'_> {
    fn spend(&self) -> Result<(), NnError> {
        if self.left.get() == 0 {
            return Err(NnError::File { file: "disk".to_owned(), reason: "full".to_owned() });
        }
        self.left.set(self.left.get() - 1);
        Ok(())
    }
}

impl Files for Failing<'_> {
    fn put(&self, path: &str, bytes: &[u8]) -> Result<(), NnError> {
        self.spend()?;
        Files::put(self.store, path, bytes)
    }
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, NnError> {
        Files::get(self.store, path)
    }
    fn delete(&self, path: &str) -> Result<(), NnError> {
        self.spend()?;
        Files::delete(self.store, path)
    }
    fn describe(&self, path: &str) -> String {
        Files::describe(self.store, path)
    }
}

#[test]
fn d2_a_failure_between_any_two_writes_leaves_a_whole_checkpoint() {
    let mut trainer = trainer(1, TrainerConfig::default());
    let mut states = Vec::new();
    for _ in 0..3 {
        states.push(trainer.network().weights().unwrap());
        steps(&mut trainer, 1);
    }
    let at = |i: usize| {
        let network = Network::from_weights(&small(SHAPES[2], true), &Device::Cpu, &states[i], "test").unwrap();
        Trainer::new(network, TrainerConfig::default()).unwrap()
    };
    let mut completed = 0;
    for writes in 0..14 {
        let store = Store::memory();
        Checkpoint::save_trainer(&store, &at(0), Best::Candidate, &info(0)).unwrap();
        Checkpoint::save_trainer(&store, &at(1), Best::Keep, &info(1)).unwrap();
        let loaded = |store: &Store| {
            let loaded = Checkpoint::load(store).unwrap();
            let i = loaded.info.iteration as usize;
            assert_eq!(loaded.network(&Device::Cpu).unwrap().weights().unwrap(), states[i]);
            assert_eq!(loaded.best_network(&Device::Cpu).unwrap().weights().unwrap(), states[0]);
            loaded.trainer(&Device::Cpu, TrainerConfig::default()).unwrap();
            i
        };
        let failing = Failing { store: &store, left: Cell::new(writes) };
        let saved = save_trainer(&failing, &at(2), Best::Keep, &info(2));
        let found = loaded(&store);
        assert!(found == 2 || (found == 1 && saved.is_err()), "after {writes} writes: {found}");
        completed += usize::from(saved.is_ok());
        // A second failure at any place after the first does no more harm, and a save then goes through.
        for again in 0..14 {
            let failing = Failing { store: &store, left: Cell::new(again) };
            let _ = save_trainer(&failing, &at(2), Best::Keep, &info(2));
            assert!(loaded(&store) >= 1);
        }
        Checkpoint::save_trainer(&store, &at(2), Best::Keep, &info(2)).unwrap();
        assert_eq!(loaded(&store), 2);
        assert!(Checkpoint::load(&store).unwrap().recovered.is_none());
    }
    assert!(completed > 0, "the last tries have writes enough");
}

#[test]
fn a_damaged_file_brings_the_previous_save_and_a_reason() {
    let store = Store::memory();
    let mut trainer = trainer(1, TrainerConfig::default());
    Checkpoint::save_trainer(&store, &trainer, Best::Candidate, &info(0)).unwrap();
    steps(&mut trainer, 1);
    Checkpoint::save_trainer(&store, &trainer, Best::Candidate, &info(1)).unwrap();
    let mut bytes = store.get(MODEL).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    store.put(MODEL, &bytes).unwrap();
    let loaded = Checkpoint::load(&store).unwrap();
    assert_eq!(loaded.info.iteration, 0);
    assert!(loaded.recovered.unwrap().contains("model.safetensors"));
    store.delete("previous/optimizer.safetensors").unwrap();
    let error = Checkpoint::load(&store).unwrap_err().to_string();
    assert!(error.contains("model.safetensors") && error.contains("optimizer.safetensors"), "{error}");
    // A folder that is not whole is not overwritten in silence, but a save repairs it.
    Checkpoint::save_trainer(&store, &trainer, Best::Candidate, &info(2)).unwrap();
    assert_eq!(Checkpoint::load(&store).unwrap().info.iteration, 2);
}

#[test]
fn t6_missing_extra_and_reshaped_tensors_are_refused_by_name() {
    let arch = small(SHAPES[2], true);
    let good = Network::new(&arch, &Device::Cpu, 1).unwrap().weights().unwrap();
    let refused = |change: fn(&mut Weights), expected: &str| {
        let mut weights = good.clone();
        change(&mut weights);
        let store = Store::memory();
        let files = BTreeMap::from([(MODEL.to_owned(), model_bytes(&Design::from(&arch), &weights).unwrap())]);
        write(&store, &Design::from(&arch), &info(0), &files).unwrap();
        let error = Checkpoint::load(&store).unwrap().network(&Device::Cpu).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains("model.safetensors"), "{error}");
    };
    refused(|w| drop(w.remove("blocks.1.conv2.weight")), "`blocks.1.conv2.weight` is missing");
    refused(
        |w| {
            let tensor = w["stem.norm.bias"].clone();
            w.insert("stem.norm.offset".to_owned(), tensor);
        },
        "`stem.norm.offset` is not part of",
    );
    refused(|w| w.get_mut("value.fc1.weight").unwrap().shape.reverse(), "`value.fc1.weight` has the shape");
    refused(|w| w.get_mut("value.fc1.weight").unwrap().data[3] = f32::NAN, "`value.fc1.weight` holds a number");
}

#[test]
fn t6_foreign_architectures_are_refused_by_name() {
    let (arch, other) = (small(SHAPES[2], true), small(SHAPES[2], false));
    let store = Store::memory();
    let network = Network::new(&arch, &Device::Cpu, 1).unwrap();
    Checkpoint::save_network(&store, &network, Best::Candidate, &info(0)).unwrap();
    let loaded = Checkpoint::load(&store).unwrap();
    assert!(loaded.expect_architecture(&arch).is_ok());
    let error = loaded.expect_architecture(&other).unwrap_err().to_string();
    assert!(error.contains(&arch.id()) && error.contains(&other.id()), "{error}");
    assert!(error.contains("change [net]"), "the size is a setting: {error}");
    let error = loaded.expect_game(SHAPES[0]).unwrap_err().to_string();
    assert!(error.contains("use another folder") && !error.contains("[net]"), "the game is none of [net]: {error}");
    // A model file of another network under a manifest that names its hash.
    let foreign = Network::new(&other, &Device::Cpu, 1).unwrap().weights().unwrap();
    let files = BTreeMap::from([(MODEL.to_owned(), model_bytes(&Design::from(&other), &foreign).unwrap())]);
    write(&store, &Design::from(&arch), &info(0), &files).unwrap();
    let error = Checkpoint::load(&store).unwrap().network(&Device::Cpu).err().unwrap().to_string();
    assert!(error.contains(&other.id()), "{error}");
    // Keeping the best of another network is no use either.
    let error = Checkpoint::save_network(&store, &Network::new(&other, &Device::Cpu, 1).unwrap(), Best::Keep, &info(0));
    assert!(matches!(error, Err(NnError::Foreign { .. })));
}

#[test]
fn moments_of_another_optimizer_are_refused_by_name() {
    let config = |method| TrainerConfig {
        optimizer: OptimizerConfig { method, ..OptimizerConfig::default() },
        ..TrainerConfig::default()
    };
    let store = Store::memory();
    Checkpoint::save_trainer(&store, &trainer(1, config(Method::Muon)), Best::Candidate, &info(0)).unwrap();
    let loaded = Checkpoint::load(&store).unwrap();
    let error = loaded.trainer(&Device::Cpu, config(Method::Adamw)).err().unwrap().to_string();
    assert!(error.contains("v.blocks.0.conv1.weight"), "{error}");
}
