//! The network that plays, with everything that depends on it.

use std::path::PathBuf;

use games::{Chess, Game};
use nn::{Checkpoint, Executor, Model, NnError, ValueHead};
use pipeline::Store;
use search::{NetworkEvaluator, SearchConfig, SearchError};
use serde::Deserialize;

use crate::error::LoadError;
use crate::options::{LEAVES_PER_THREAD, Options};

/// Centipawns that correspond to 400 Elo, where the checkpoint does not say.
const SCORE_SCALE: f64 = 400.0;

/// A loaded network.
pub(crate) struct Network {
    pub(crate) folder: PathBuf,
    /// Answers the search.
    pub(crate) evaluator: NetworkEvaluator,
    /// How its tree is searched: exploration, first-play urgency and temperature of the profile that made it, since that is
    /// how it was measured.
    pub(crate) search: SearchConfig,
    /// Centipawns that correspond to 400 Elo in the values that the network was taught.
    pub(crate) score_scale: f32,
    /// What is wrong with the checkpoint, though it can be used.
    pub(crate) warning: Option<String>,
    model: Model,
    /// Says how likely a draw is, if the network can.
    draws: Option<Executor>,
}

impl Network {
    /// Loads the best network of the checkpoint folder that the options name.
    pub(crate) fn load(options: &Options) -> Result<Self, LoadError> {
        let folder = &options.network;
        let unusable = |source: NnError| LoadError::Unusable { folder: folder.clone(), source: Box::new(source) };
        if !folder.is_dir() {
            return Err(LoadError::Absent(folder.clone()));
        }
        let store = Store::open_existing(folder).map_err(|e| unusable(e.into()))?;
        let Some(checkpoint) = Checkpoint::find(&store).map_err(unusable)? else {
            return Err(LoadError::Absent(folder.clone()));
        };
        checkpoint.expect_game(Chess::SHAPE).map_err(unusable)?;
        let device = nn::select_device("cpu").map_err(unusable)?;
        let network = checkpoint.best_network(&device).map_err(unusable)?;
        let model = Model::from_network(&network).map_err(unusable)?;
        let (search, unread) = search_of(&checkpoint);
        let scale = checkpoint.info.config["pretrain"]["score_scale"].as_f64().filter(|s| *s > 0.0);
        let draws = (model.architecture().value == ValueHead::Wdl).then(|| model.executor(1));
        Ok(Network {
            folder: folder.clone(),
            evaluator: evaluator(&model, options).map_err(LoadError::Memory)?,
            search,
            score_scale: scale.unwrap_or(SCORE_SCALE) as f32,
            warning: checkpoint.recovered.or(unread),
            model,
            draws,
        })
    }

    /// Makes evaluators of another size, which know nothing yet. Without the memory for them the ones before stay.
    pub(crate) fn resize(&mut self, options: &Options) -> Result<(), SearchError> {
        self.evaluator = evaluator(&self.model, options)?;
        Ok(())
    }

    /// The probability of a draw, 0..1, if the network gives one.
    pub(crate) fn draw(&mut self, position: &Chess) -> Option<f32> {
        let outputs = self.draws.as_mut()?.evaluate(&[position.pack()]).ok()?;
        outputs.wdl.map(|wdl| wdl[1])
    }

    /// What it is, for a message.
    pub(crate) fn describe(&self) -> String {
        format!("network {} from {}", self.model.architecture().id(), self.folder.display())
    }
}

/// The search of a checkpoint's profile; the usual one where it does not say, and with a warning where it says what this
/// version cannot follow.
fn search_of(checkpoint: &Checkpoint) -> (SearchConfig, Option<String>) {
    let (usual, text) = (SearchConfig::default(), &checkpoint.info.config["search"]);
    if text.is_null() {
        return (usual, None);
    }
    let cannot =
        |why: String| (usual, Some(format!("the search of its profile is left out, it cannot be followed: {why}")));
    let said = match SearchConfig::deserialize(text) {
        Ok(said) => said,
        Err(error) => return cannot(error.to_string()),
    };
    let search = SearchConfig {
        c_puct: said.c_puct,
        fpu_reduction: said.fpu_reduction,
        policy_temperature: said.policy_temperature,
        ..usual
    };
    match search.check() {
        Ok(()) => (search, None),
        Err(error) => cannot(error.to_string()),
    }
}

fn evaluator(model: &Model, options: &Options) -> Result<NetworkEvaluator, SearchError> {
    NetworkEvaluator::with_threads(model, options.threads, LEAVES_PER_THREAD as usize, options.evaluations())
}

#[cfg(test)]
mod tests {
    use nn::{Best, CheckpointInfo, NetConfig};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_network_is_searched_as_its_profile_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let config = NetConfig { blocks: 1, channels: 8, ..NetConfig::default() };
        let device = nn::select_device("cpu").unwrap();
        let network = nn::Network::new(&config.architecture(Chess::SHAPE), &device, 5).unwrap();
        let search = |config: serde_json::Value| {
            let info = CheckpointInfo { config, ..CheckpointInfo::default() };
            Checkpoint::save_network(&store, &network, Best::Candidate, &info).unwrap();
            search_of(&Checkpoint::load(&store).unwrap())
        };
        let usual = SearchConfig::default();
        let said = json!({ "c_puct": 1.5, "policy_temperature": 1.25, "simulations": 7, "noise_weight": 0.25 });
        let expected = SearchConfig { c_puct: 1.5, policy_temperature: 1.25, ..usual };
        assert_eq!(search(json!({ "search": said })), (expected, None), "noise and simulations are not the player's");
        assert_eq!(search(json!({})), (usual, None));
        for (unusable, named) in [(json!({ "c_puct": -1.0 }), "c_puct"), (json!({ "unknown": 1 }), "unknown")] {
            let (search, warning) = search(json!({ "search": unusable }));
            assert!(search == usual && warning.is_some_and(|text| text.contains(named)), "{named}");
        }
    }
}
