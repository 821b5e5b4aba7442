//! A profile: the one TOML file that says what a run is. A table per stage, one network for all.
//!
//! Every number here has the unit its comment says. Unknown keys are errors. Keys that change only where and how fast
//! a stage runs (workers, threads, checkpoint intervals) are kept out of a stage's fingerprint by `content`.

use std::path::{Path, PathBuf};

use dataset::TargetSpec;
use games::Game;
use nn::{Architecture, NetConfig};
use search::SearchConfig;
use serde::{Deserialize, Serialize};
use uci::Limit;

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
    /// The network of all stages.
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

/// The UCI engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// Path or name; names are looked for in PATH and the usual folders.
    pub path: String,
    /// Further command-line arguments.
    pub args: Vec<String>,
    /// Hash table in MiB.
    pub hash_mb: u32,
    /// Further UCI options of the teacher.
    pub options: std::collections::BTreeMap<String, String>,
    /// Seconds within which an answer is due, on top of its time limit.
    pub answer_seconds: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            path: "stockfish".to_owned(),
            args: Vec::new(),
            hash_mb: 16,
            options: Default::default(),
            answer_seconds: 60.0,
        }
    }
}

/// A share of the games in which a share of the plies are deliberate mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistakes {
    /// Fraction of the games.
    pub share: f64,
    /// Probability that a ply of such a game is a random legal move.
    pub rate: f64,
}

/// When a game is decided before its rules say so.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjudicate {
    /// Centipawns that both sides agree on.
    pub score: i32,
    /// Plies in a row.
    pub plies: u32,
}

/// The `corpus` stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorpusConfig {
    /// Games in all. A larger number extends an existing corpus.
    pub games: u64,
    /// Games a shard.
    pub games_per_shard: u64,
    /// The teacher's limit a move.
    pub limit: Limit,
    /// Engine processes; 0 is one per core.
    pub workers: usize,
    /// Random plies before the teacher plays: a number, or a range of which each game draws.
    pub random_plies: Plies,
    /// Opening book (EPD, FEN lines or PGN, also .zst); none if empty. Random plies follow the opening.
    pub book: String,
    /// Deliberate mistakes; the shares must not exceed 1 together.
    pub mistakes: Vec<Mistakes>,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// Wins are given when scores agree; off if absent.
    pub adjudicate: Option<Adjudicate>,
    /// Largest accepted fraction of games that are copies of another.
    pub max_duplicates: f64,
}

impl Default for CorpusConfig {
    fn default() -> Self {
        CorpusConfig {
            games: 1000,
            games_per_shard: 400,
            limit: Limit::Nodes(1500),
            workers: 0,
            random_plies: Plies::Exactly(4),
            book: String::new(),
            mistakes: Vec::new(),
            max_plies: 400,
            adjudicate: None,
            max_duplicates: 0.05,
        }
    }
}

/// A number of plies, or a range of which each game draws its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Plies {
    /// Always this many.
    Exactly(u32),
    /// Uniform, both ends included.
    Between([u32; 2]),
}

impl Plies {
    /// Least and most.
    pub fn range(self) -> (u32, u32) {
        match self {
            Plies::Exactly(n) => (n, n),
            Plies::Between([low, high]) => (low, high),
        }
    }
}

/// The `pretrain` stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PretrainConfig {
    /// Most passes over the corpus.
    pub epochs: u64,
    /// Positions a step.
    pub batch: usize,
    /// Highest learning rate, after the warm-up.
    pub peak_lr: f64,
    /// Learning rate at the last step.
    pub end_lr: f64,
    /// AdamW's decay, on weights only.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 for no clipping.
    pub clip_norm: f64,
    /// Decay of a moving average of the weights, which is then what is kept and played (0.999, say); 0 for none.
    pub ema: f64,
    /// Weight of the value loss beside the policy loss.
    pub value_weight: f64,
    /// Value target: `value_lambda * q + (1 - value_lambda) * z`.
    pub value_lambda: f32,
    /// Centipawns that correspond to 400 Elo in q.
    pub score_scale: f32,
    /// Fraction of the games held out.
    pub holdout: f64,
    /// Epochs without a better validation loss after which training stops.
    pub patience: u64,
    /// Samples in the shuffle pool.
    pub pool: usize,
    /// SQL condition on the games, for example `result IS NOT NULL AND plies >= 20`; all if empty.
    #[serde(rename = "where")]
    pub filter: String,
    /// Drop positions already seen in the epoch.
    pub drop_duplicates: bool,
    /// Steps between checkpoints; one is written every minute too.
    pub checkpoint_steps: u64,
    /// Stop after this many steps even if epochs are left; 0 for no limit. The schedule ends there.
    pub max_steps: u64,
}

impl Default for PretrainConfig {
    fn default() -> Self {
        PretrainConfig {
            epochs: 3,
            batch: 256,
            peak_lr: 5e-4,
            end_lr: 5e-5,
            weight_decay: 1e-4,
            clip_norm: 10.0,
            ema: 0.0,
            value_weight: 1.0,
            value_lambda: 0.7,
            score_scale: 400.0,
            holdout: 0.05,
            patience: 2,
            pool: 65_536,
            filter: String::new(),
            drop_duplicates: false,
            checkpoint_steps: 1000,
            max_steps: 0,
        }
    }
}

/// What training does after a refused candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnReject {
    /// The next iteration goes on from the refused candidate.
    Candidate,
    /// The next iteration starts from the best network again.
    Best,
}

/// The `refine` loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefineConfig {
    /// `pretrained`, `random`, or a checkpoint folder.
    pub init: String,
    /// Iterations in all.
    pub num_iterations: u32,
    /// Iterations between matches against the evaluation's opponent; 0 for none.
    pub eval_interval: u32,
}

impl Default for RefineConfig {
    fn default() -> Self {
        RefineConfig { init: "pretrained".to_owned(), num_iterations: 10, eval_interval: 2 }
    }
}

/// The `selfplay` step of an iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelfplayConfig {
    /// Games an iteration.
    pub games: u64,
    /// Games a shard.
    pub games_per_shard: u64,
    /// Simulations a move.
    pub simulations: u32,
    /// Dirichlet noise at the root: alpha.
    pub noise_alpha: f32,
    /// Dirichlet noise at the root: weight.
    pub noise_weight: f32,
    /// Plies played at `temperature`; greedy after them.
    pub temperature_plies: u32,
    /// Exponent of the visits is 1 / temperature.
    pub temperature: f32,
    /// Random plies before the search plays.
    pub random_plies: Plies,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// Most positions evaluated together.
    pub inference_batch_size: usize,
    /// Games in flight: twice this for each core. A kill loses the games in flight, so let them be few on a CPU and
    /// enough for a batch on a GPU.
    pub games_in_flight: usize,
    /// Positions in the cache of each executor; there is one a core on a CPU.
    pub cache: usize,
    /// A side whose root value stays below minus this gives up; 0 for never.
    pub resign_value: f32,
    /// Fraction of the games in which nobody gives up, to measure wrong resignations.
    pub resign_playthrough: f64,
}

impl Default for SelfplayConfig {
    fn default() -> Self {
        SelfplayConfig {
            games: 100,
            games_per_shard: 100,
            simulations: 50,
            noise_alpha: 0.3,
            noise_weight: 0.25,
            temperature_plies: 30,
            temperature: 1.0,
            random_plies: Plies::Exactly(0),
            max_plies: 400,
            inference_batch_size: 64,
            games_in_flight: 8,
            cache: 65_536,
            resign_value: 0.0,
            resign_playthrough: 0.1,
        }
    }
}

/// The `relabel` step of an iteration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelabelConfig {
    /// Whether the teacher is asked for its move and score wherever self-play got to, and training learns these in place
    /// of the search's visits and values.
    pub enabled: bool,
    /// The teacher's limit a move; the corpus' if absent.
    pub limit: Option<Limit>,
    /// Engine processes; 0 is one per core.
    pub workers: usize,
}

/// The `train` step of an iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Most optimizer steps an iteration.
    pub steps: u64,
    /// Positions a step.
    pub batch: usize,
    /// Learning rate after the warm-up; it falls to a tenth by cosine.
    pub learning_rate: f64,
    /// AdamW's decay, on weights only.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0 for no clipping.
    pub clip_norm: f64,
    /// Weight of the value loss beside the policy loss.
    pub value_weight: f64,
    /// Weight of the search value against the game's result in the value target.
    pub value_lambda: f32,
    /// Most recent self-play positions that are trained on.
    pub replay_window: u64,
    /// Below this many self-play positions train and gate are skipped.
    pub replay_minimum: u64,
    /// Share of each batch that comes from the corpus, where there is one.
    pub teacher_share: f64,
    /// Most times a new position is used; caps the steps. 0 for no cap.
    pub max_reuse: f64,
    /// Samples in the shuffle pool.
    pub pool: usize,
    /// Steps between checkpoints; one is written every minute too.
    pub checkpoint_steps: u64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            steps: 2000,
            batch: 256,
            learning_rate: 1e-4,
            weight_decay: 1e-4,
            clip_norm: 10.0,
            value_weight: 1.0,
            value_lambda: 0.5,
            replay_window: 200_000,
            replay_minimum: 10_000,
            teacher_share: 0.5,
            max_reuse: 8.0,
            pool: 65_536,
            checkpoint_steps: 500,
        }
    }
}

/// The `gate` step of an iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateConfig {
    /// Games, two an opening.
    pub games: u32,
    /// Score that the candidate needs.
    pub threshold: f64,
    /// Simulations a move.
    pub simulations: u32,
    /// Random plies of the openings in games without an opening table; chess uses its table.
    pub random_plies: u32,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// What the next iteration trains from after a refusal.
    pub on_reject: OnReject,
}

impl Default for GateConfig {
    fn default() -> Self {
        GateConfig {
            games: 100,
            threshold: 0.55,
            simulations: 50,
            random_plies: 2,
            max_plies: 400,
            on_reject: OnReject::Best,
        }
    }
}

/// The `eval` stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvalConfig {
    /// `engine` (at `elo`), `reference` (the game's player of known strength), `untrained`, `pretrained`, `random`, or
    /// a checkpoint folder.
    pub opponent: String,
    /// Games, two an opening.
    pub games: u32,
    /// Simulations of our network a move; 0 plays the raw policy.
    pub simulations: u32,
    /// The engine's `UCI_Elo`; 0 for full strength.
    pub elo: u32,
    /// The engine's limit a move.
    pub limit: Limit,
    /// Opening book; the built-in openings if empty.
    pub book: String,
    /// Random plies of the openings in games without an opening table.
    pub random_plies: u32,
    /// Games still going on at this ply end without a result.
    pub max_plies: u32,
    /// Games at a time; 0 is one per core.
    pub concurrency: usize,
}

impl Default for EvalConfig {
    fn default() -> Self {
        EvalConfig {
            opponent: "engine".to_owned(),
            games: 100,
            simulations: 400,
            elo: 1500,
            limit: Limit::MoveTime(std::time::Duration::from_millis(500)),
            book: String::new(),
            random_plies: 2,
            max_plies: 400,
            concurrency: 0,
        }
    }
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
    pub key: &'static str,
    /// What the profile says.
    pub value: String,
    /// What was expected.
    pub reason: &'static str,
}

impl Profile {
    /// Checks what types cannot: ranges and sums.
    ///
    /// # Errors
    /// The first setting that no run can follow, by its full key.
    pub fn check(&self) -> Result<(), SettingError> {
        let refuse = |key, value: String, reason| Err(SettingError { key, value, reason });
        let shares: f64 = self.corpus.mistakes.iter().map(|m| m.share).sum();
        if self.corpus.mistakes.iter().any(|m| !(0.0..=1.0).contains(&m.share) || !(0.0..=1.0).contains(&m.rate))
            || shares > 1.0
        {
            return refuse(
                "corpus.mistakes",
                format!("{:?}", self.corpus.mistakes),
                "shares and rates lie in 0..1 and shares sum to at most 1",
            );
        }
        let (low, high) = self.corpus.random_plies.range();
        if low > high {
            return refuse("corpus.random_plies", format!("[{low}, {high}]"), "expected [least, most]");
        }
        if self.corpus.games_per_shard == 0 || self.selfplay.games_per_shard == 0 {
            return refuse("games_per_shard", "0".to_owned(), "a shard holds at least one game");
        }
        if self.relabel.enabled && self.game != games::Chess::NAME {
            return refuse("relabel.enabled", "true".to_owned(), "only chess has a teacher to ask");
        }
        if self.net.blocks == 0 || self.net.channels == 0 {
            return refuse(
                "net",
                format!("{}x{}", self.net.blocks, self.net.channels),
                "expected at least one block and one channel",
            );
        }
        for (key, batch) in [
            ("pretrain.batch", self.pretrain.batch),
            ("train.batch", self.train.batch),
            ("selfplay.inference_batch_size", self.selfplay.inference_batch_size),
        ] {
            if batch == 0 {
                return refuse(key, "0".to_owned(), "a batch holds at least one position");
            }
        }
        if !(0.0..1.0).contains(&self.pretrain.holdout) {
            return refuse("pretrain.holdout", self.pretrain.holdout.to_string(), "expected a fraction below 1");
        }
        if !(0.0..1.0).contains(&self.train.teacher_share) {
            return refuse("train.teacher_share", self.train.teacher_share.to_string(), "expected a fraction below 1");
        }
        if self.selfplay.simulations == 0 || self.gate.simulations == 0 {
            return refuse("simulations", "0".to_owned(), "self-play and gate search at least one simulation");
        }
        Ok(())
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
            policy: dataset::PolicyTarget::Best,
        }
    }

    /// The search with a stage's own number of simulations and no noise.
    pub fn search_with(&self, simulations: u32) -> SearchConfig {
        SearchConfig { simulations, ..self.search }
    }
}

/// The folders of a run.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of a run kept at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout { root: root.into() }
    }
    /// The run's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Lock files; beside the stages, since a stage's folder can be moved aside.
    pub fn locks(&self) -> PathBuf {
        self.root.join(".locks")
    }
    /// Games of the teacher.
    pub fn corpus(&self) -> PathBuf {
        self.root.join("corpus")
    }
    /// The pre-trained network.
    pub fn pretrain(&self) -> PathBuf {
        self.root.join("pretrain")
    }
    /// One step (`selfplay`, `relabel`, `train`, `gate`, `eval`) of an iteration, counted from 1.
    pub fn iteration(&self, iteration: u32, step: &str) -> PathBuf {
        self.root.join("refine").join(format!("iter_{iteration:04}")).join(step)
    }
    /// The match that measures strength.
    pub fn eval(&self) -> PathBuf {
        self.root.join("eval")
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
