//! A profile: the one TOML file that says what a run is. A table per stage, one network for all.
//!
//! Every number here has the unit its comment says. Unknown keys are errors. Keys that change only where and how fast
//! a stage runs (workers, threads, checkpoint intervals) are kept out of a stage's fingerprint by `content`.

mod corpus;
mod engine;
mod eval;
mod gate;
mod layout;
mod policy;
mod pretrain;
mod refine;
mod relabel;
mod selfplay;
mod train;

use std::time::Duration;

use dataset::TargetSpec;
use games::{Chess, Connect4, Game, TicTacToe};
use nn::{Architecture, DEVICES, NetConfig};
use search::{SearchConfig, SearchError};
use serde::{Deserialize, Serialize};

pub use self::corpus::{Adjudicate, CorpusConfig, Mistakes, Plies, SoftTargets};
pub use self::engine::EngineConfig;
pub use self::eval::EvalConfig;
pub use self::gate::{GateConfig, OnReject};
pub use self::layout::Layout;
pub use self::policy::{PolicyConfig, PolicyLabels, PolicyTraining};
pub use self::pretrain::PretrainConfig;
pub use self::refine::RefineConfig;
pub use self::relabel::RelabelConfig;
pub use self::selfplay::SelfplayConfig;
pub use self::train::TrainConfig;
use crate::results::ResultsConfig;

/// Everything that a configuration file may say.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// `chess`, `connect4` or `tictactoe`.
    pub game: String,
    /// Seed of every random stream of the run.
    #[serde(default = "one")]
    pub seed: u64,
    /// `auto`, `cpu`, `cuda` or `metal`.
    #[serde(default = "auto")]
    pub device: String,
    /// Threads for games, inference and training; 0 is one per core.
    #[serde(default)]
    pub threads: usize,
    /// What reading a dataset does about a damaged or stray file: `skip` it with a warning, or `stop`.
    #[serde(default)]
    pub on_bad_shard: OnBadShard,
    /// Where the run is kept; `data/<profile>` if empty.
    #[serde(default)]
    pub data: String,
    /// The UCI engine that teaches and is played against.
    #[serde(default)]
    pub engine: EngineConfig,
    /// Games of the teacher.
    #[serde(default)]
    pub corpus: CorpusConfig,
    /// The network of all stages but `policy`.
    #[serde(default)]
    pub net: NetConfig,
    /// Supervised training on the corpus.
    #[serde(default)]
    pub pretrain: PretrainConfig,
    /// The search of self-play and matches; stages set their own number of simulations.
    #[serde(default)]
    pub search: SearchConfig,
    /// The loop of self-play, training and gating.
    #[serde(default)]
    pub refine: RefineConfig,
    /// Games of the best network against itself.
    #[serde(default)]
    pub selfplay: SelfplayConfig,
    /// The teacher's answers to the positions of self-play.
    #[serde(default)]
    pub relabel: RelabelConfig,
    /// Training on self-play and corpus.
    #[serde(default)]
    pub train: TrainConfig,
    /// The match that a candidate has to win.
    #[serde(default)]
    pub gate: GateConfig,
    /// The match that measures strength.
    #[serde(default)]
    pub eval: EvalConfig,
    /// The experiments of the page of results.
    #[serde(default)]
    pub results: ResultsConfig,
    /// The policy network of the alpha-beta engine.
    #[serde(default)]
    pub policy: PolicyConfig,
}

/// What to do about a damaged or stray file in a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBadShard {
    /// Name it, leave it out and go on.
    #[default]
    Skip,
    /// Name it and fail.
    Stop,
}

impl From<OnBadShard> for dataset::OnBad {
    fn from(choice: OnBadShard) -> Self {
        match choice {
            OnBadShard::Skip => dataset::OnBad::Skip,
            OnBadShard::Stop => dataset::OnBad::Stop,
        }
    }
}

/// The games that a profile can name.
const GAMES: [&str; 3] = [Chess::NAME, Connect4::NAME, TicTacToe::NAME];

/// Settings that came after the first release are not written at their default, so that the stamps of older data hold.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one() -> u64 {
    1
}

fn auto() -> String {
    "auto".to_owned()
}

/// A setting that no run can follow.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` = {value}: {reason}")]
pub struct SettingError {
    /// The full key.
    pub key: String,
    /// What the profile says.
    pub value: String,
    /// What was expected.
    pub reason: String,
}

impl SettingError {
    /// Refuses a value.
    pub(crate) fn new(key: impl Into<String>, value: impl ToString, reason: impl Into<String>) -> Self {
        SettingError { key: key.into(), value: value.to_string(), reason: reason.into() }
    }
}

impl Profile {
    /// Checks what types cannot: ranges and sums.
    ///
    /// # Errors
    /// The first setting that no run can follow, by its full key.
    pub fn check(&self) -> Result<(), SettingError> {
        let refuse = |key: &str, value: String, reason: &str| Err(SettingError::new(key, value, reason));
        if !GAMES.contains(&self.game.as_str()) {
            return refuse("game", self.game.clone(), &format!("expected one of {}", GAMES.join(", ")));
        }
        if self.data.contains("://") {
            let reason = "expected a folder: runs are kept on a file system, mount the storage to use it";
            return refuse("data", self.data.clone(), reason);
        }
        if !DEVICES.contains(&self.device.as_str()) {
            return refuse("device", self.device.clone(), &format!("expected one of {}", DEVICES.join(", ")));
        }
        for (games, mistakes, random_plies, soft) in [
            (&self.corpus, "corpus.mistakes", "corpus.random_plies", "corpus.soft"),
            (&self.policy.games, "policy.games.mistakes", "policy.games.random_plies", "policy.games.soft"),
        ] {
            let shares: f64 = games.mistakes.iter().map(|m| m.share).sum();
            if games.mistakes.iter().any(|m| !(0.0..=1.0).contains(&m.share) || !(0.0..=1.0).contains(&m.rate))
                || shares > 1.0
            {
                let reason = "shares and rates lie in 0..1 and shares sum to at most 1";
                return refuse(mistakes, format!("{:?}", games.mistakes), reason);
            }
            let (low, high) = games.random_plies.range();
            if low > high {
                return refuse(random_plies, format!("[{low}, {high}]"), "expected [least, most]");
            }
            if let Some(wanted) = games.soft
                && !(wanted.multipv > 1 && wanted.temperature > 0.0 && wanted.temperature.is_finite())
            {
                let reason = "expected multipv above 1 and a temperature above 0";
                return refuse(soft, format!("{wanted:?}"), reason);
            }
        }
        let (low, high) = self.selfplay.random_plies.range();
        if low > high {
            return refuse("selfplay.random_plies", format!("[{low}, {high}]"), "expected [least, most]");
        }
        for (key, games) in [
            ("corpus.games_per_shard", self.corpus.games_per_shard),
            ("policy.games.games_per_shard", self.policy.games.games_per_shard),
            ("selfplay.games_per_shard", self.selfplay.games_per_shard),
        ] {
            if games == 0 {
                return refuse(key, "0".to_owned(), "a shard holds at least one game");
            }
        }
        if self.relabel.enabled && self.game != Chess::NAME {
            return refuse("relabel.enabled", "true".to_owned(), "only chess has a teacher to ask");
        }
        for (key, size) in [("net.blocks", self.net.blocks), ("net.channels", self.net.channels)] {
            if size == 0 {
                return refuse(key, "0".to_owned(), "expected at least one block and one channel");
            }
        }
        for (key, batch) in [
            ("pretrain.batch", self.pretrain.batch),
            ("train.batch", self.train.batch),
            ("selfplay.inference_batch_size", self.selfplay.inference_batch_size),
            ("policy.training.batch", self.policy.training.batch),
            ("policy.plies", self.policy.plies),
        ] {
            if batch == 0 {
                return refuse(key, "0".to_owned(), "at least one position is needed");
            }
        }
        for (key, fraction) in [
            ("pretrain.holdout", self.pretrain.holdout),
            ("train.teacher_share", self.train.teacher_share),
            ("policy.training.holdout", self.policy.training.holdout),
        ] {
            if !(0.0..1.0).contains(&fraction) {
                return refuse(key, fraction.to_string(), "expected a fraction below 1");
            }
        }
        if Duration::try_from_secs_f64(self.engine.answer_seconds).is_err() {
            return refuse("engine.answer_seconds", self.engine.answer_seconds.to_string(), "expected seconds");
        }
        for (key, games) in [("gate.games", self.gate.games), ("eval.games", self.eval.games)] {
            if games == 0 || !games.is_multiple_of(2) {
                return refuse(key, games.to_string(), "expected an even number: two games an opening");
            }
        }
        if self.eval.movetime_ms > 0 && self.eval.simulations == 0 {
            let reason = "a network without simulations does not search: raise eval.simulations, or set this to 0";
            return refuse("eval.movetime_ms", self.eval.movetime_ms.to_string(), reason);
        }
        self.results.check()?;
        for (key, simulations) in
            [("selfplay.simulations", self.selfplay.simulations), ("gate.simulations", self.gate.simulations)]
        {
            if simulations == 0 {
                return refuse(key, "0".to_owned(), "expected at least one simulation a move");
            }
        }
        self.check_search()
    }

    /// The ranges of the search, self-play's own noise among them. Stages set their own number of simulations.
    fn check_search(&self) -> Result<(), SettingError> {
        let checked = |table: &str, search: SearchConfig| {
            search.check().map_err(|error| match error {
                SearchError::Config { field, expected, got } => {
                    SettingError::new(format!("{table}.{field}"), got, format!("expected {expected}"))
                }
                SearchError::Range { field, low, high, got } => {
                    SettingError::new(format!("{table}.{field}"), got, format!("expected {low} to {high}"))
                }
                other => SettingError::new(table, "", other.to_string()),
            })
        };
        checked("search", self.search_with(1))?;
        let (noise_alpha, noise_weight) = (self.selfplay.noise_alpha, self.selfplay.noise_weight);
        checked("selfplay", SearchConfig { noise_alpha, noise_weight, ..self.search_with(1) })
    }

    /// The network of this profile for a game's geometry.
    pub fn architecture(&self, shape: games::Shape) -> Architecture {
        self.net.architecture(shape)
    }

    /// Cores to use.
    pub fn cores(&self) -> usize {
        if self.threads > 0 { self.threads } else { std::thread::available_parallelism().map_or(1, |n| n.get()) }
    }

    /// Targets of supervised training.
    pub fn teacher_targets(&self) -> TargetSpec {
        TargetSpec {
            value_lambda: self.pretrain.value_lambda,
            score_scale: self.pretrain.score_scale,
            policy: self.pretrain.policy,
        }
    }

    /// The search with a stage's own number of simulations.
    pub fn search_with(&self, simulations: u32) -> SearchConfig {
        SearchConfig { simulations, ..self.search }
    }
}

/// The settings that determine a stage's content: `value` without the keys that only say where and how fast it runs.
pub(crate) fn content(value: &impl Serialize, without: &[&str]) -> serde_json::Value {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !without.contains(&key.as_str()));
    }
    value
}

#[cfg(test)]
mod tests;
