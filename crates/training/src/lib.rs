//! The stages: a teacher's corpus, supervised training, self-play, refinement and measuring.
//!
//! Each stage reads files and writes files, knows from a stamp whether it is done, and continues where it was killed.
//! The executables only parse arguments and call [`corpus`], [`pretrain`], [`refine`], [`evaluate`], [`policy()`],
//! [`results`] or [`publish`].
#![forbid(unsafe_code)]

mod answers;
mod candidate;
mod course;
mod engines;
mod epochs;
mod evaluate;
mod gate;
mod history;
mod lab;
mod matches;
mod origin;
mod policy;
mod production;
mod profile;
mod publish;
mod refine;
mod relabel;
mod report;
mod results;
mod selfplay;
mod soft;
mod stages;
mod supervised;
mod teacher;
mod window;

pub use answers::AnswersReport;
pub use course::view as batch_view;
pub use epochs::{EpochReport, TrainingReport};
pub use evaluate::{EvalReport, evaluate};
pub use gate::{Verdict, judge};
pub use lab::{
    Feature, FeatureRow, FeatureRules, FeatureTable, FeaturesConfig, MatchConfig, MatchRules, PlayerConfig, Setting,
    contest, features,
};
pub use policy::{PolicyStep, policy};
pub use production::{Production, Tally};
pub use profile::{
    Adjudicate, CorpusConfig, EngineConfig, EvalConfig, GateConfig, Layout, Mistakes, OnBadShard, OnReject, Plies,
    PolicyConfig, PolicyLabels, PolicyTraining, PretrainConfig, Profile, RefineConfig, RelabelConfig, SelfplayConfig,
    SettingError, SoftTargets, TrainConfig,
};
pub use publish::{Published, publish};
pub use refine::{RefineReport, Step, refine};
pub use report::run_report;
pub use results::{RESULTS_PAGE, ResultsConfig, Section, results, write_page};
pub use supervised::pretrain;
pub use teacher::{CorpusReport, corpus, teacher_spec};

/// What can go wrong in a stage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Only chess has a teacher.
    #[error("there is no UCI engine that teaches {0}: set refine.init = \"random\" and start with `make refine`")]
    NoTeacher(String),
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Too many games are copies.
    #[error(
        "{:.1} % of the games are copies of another, more than {table}.max_duplicates = {limit}: raise {table}.random_plies or use a book",
        rate * 100.0
    )]
    Duplicates {
        /// The table of the profile.
        table: &'static str,
        /// Fraction of copies.
        rate: f64,
        /// The accepted fraction.
        limit: f64,
    },
    /// An earlier stage has not been run.
    #[error("{what} is missing at {}: run `make {stage}` first", path.display())]
    Missing {
        /// What is needed.
        what: &'static str,
        /// Where it was looked for.
        path: std::path::PathBuf,
        /// The stage that makes it.
        stage: &'static str,
    },
    /// A range of shards goes beyond the dataset.
    #[error("--shards: there is no shard {last}: {games} games ({table}.games) make the shards 0..{}", .shards - 1)]
    NoShard {
        /// The table of the games.
        table: &'static str,
        /// The last shard asked for.
        last: u32,
        /// Shards of the dataset.
        shards: u64,
        /// Games of the dataset.
        games: u64,
    },
    /// A report is asked for, and nothing has been run.
    #[error("nothing has been run in {} yet: begin with `make corpus` of the profile", .0.display())]
    NothingRun(std::path::PathBuf),
    /// A setting names a network that is not there.
    #[error(
        "{setting} names {}, where there is no network: make it first, by `make corpus pretrain` (and `make publish`) of its \
         own profile, or name another",
        path.display()
    )]
    NoNetwork {
        /// The setting.
        setting: &'static str,
        /// What it names.
        path: std::path::PathBuf,
    },
    /// A network is asked for while it is being trained.
    #[error("{}: `{stage}` has begun there and is not finished: go on with it first", path.display())]
    Unfinished {
        /// The folder.
        path: std::path::PathBuf,
        /// The stage that writes it.
        stage: String,
    },
    /// A folder holds other weights than its stage has finished with.
    #[error(
        "{}: the network there is not the one that its stage has made; it was damaged or replaced: move the folder away and run \
         the stage again",
        path.display()
    )]
    OtherNetwork {
        /// The folder.
        path: std::path::PathBuf,
    },
    /// A stage's output does not fit what it was made from.
    #[error("{} {what}: run `make {stage}` again", path.display())]
    Stale {
        /// The output.
        path: std::path::PathBuf,
        /// What does not fit.
        what: &'static str,
        /// The stage that makes it.
        stage: &'static str,
    },
    /// A file of a stage holds something else.
    #[error("{} cannot be read: {source}; move its folder aside and run the stage again", path.display())]
    Content {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A network that cannot be published.
    #[error("cannot publish {}: {why}", path.display())]
    Publish {
        /// The network, the stage, or the folder that it was to go to.
        path: std::path::PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// A dataset with nothing to train on.
    #[error("{} has no position to train on: {hint}", path.display())]
    NoPositions {
        /// The dataset.
        path: std::path::PathBuf,
        /// What to change.
        hint: &'static str,
    },
    /// A setting names a folder whose network cannot be used.
    #[error("`{setting}`: {source}")]
    NamedNetwork {
        /// The setting.
        setting: &'static str,
        /// Why not.
        source: Box<Error>,
    },
    /// A key of a match's or a table's file that cannot be followed.
    #[error("`{key}`: {reason}")]
    Lab {
        /// The full key.
        key: String,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// An engine that cannot play at a rating.
    #[error(
        "`eval.elo` = {elo}: {engine} has no option UCI_Elo and cannot play at a rating: set eval.elo = 0 to play it at \
         eval.limit alone, or name an engine that has it (engine.path = \"stockfish\")"
    )]
    NoElo {
        /// What the engine calls itself.
        engine: String,
        /// The rating asked for.
        elo: u32,
    },
    /// A thread of the stage panicked.
    #[error("a worker thread died; this is a fault of the program, please report it with the lines above")]
    Worker,
    /// A setting cannot be followed.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The user asked the program to stop.
    #[error(transparent)]
    Interrupted(#[from] pipeline::Interrupted),
    /// A stage could not be opened.
    #[error(transparent)]
    Stage(#[from] pipeline::StageError),
    /// Files could not be written.
    #[error(transparent)]
    Store(#[from] pipeline::StoreError),
    /// Metrics could not be written.
    #[error(transparent)]
    Metrics(#[from] pipeline::MetricsError),
    /// A dataset failed.
    #[error(transparent)]
    Dataset(#[from] dataset::DatasetError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] uci::EngineError),
    /// The network failed.
    #[error(transparent)]
    Network(#[from] nn::NnError),
    /// The search failed.
    #[error(transparent)]
    Search(#[from] search::SearchError),
    /// A player failed.
    #[error(transparent)]
    Player(#[from] search::PlayerError),
    /// A match failed.
    #[error(transparent)]
    Arena(#[from] arena::ArenaError),
}

/// A stage's result.
pub type Result<T> = std::result::Result<T, Error>;
