//! Training batches from datasets: Polars reads ahead, games are replayed in parallel, samples are shuffled.
//!
//! ```text
//! shards, seeded order -> groups -> Polars (streaming) -> records -> replay (rayon) --channel--> mix of sources
//!   -> shuffle pool -> batch
//! ```
//!
//! Every random choice hangs on the seed and the epoch, and none on threads or timing: the same settings give the
//! same batches. Memory is bounded by the pool, one group of shards and a short channel, and does not grow with the
//! data.

mod batch;
mod pool;
mod reader;
mod recent;
mod slots;
mod sources;

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use games::{Game, Rng, Symmetry};
use rayon::{ThreadPool, ThreadPoolBuilder};

pub use batch::Batch;
use pool::{Mix, Pool};
use reader::{Plan, Stream};
pub use sources::Sources;

use crate::{DatasetError, OnBad, PolicyTarget, Split, TargetSpec};

/// Folders that one share of the samples comes from.
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    /// Folders with shards, oldest first.
    pub dirs: Vec<PathBuf>,
    /// The fraction of the samples; shares are divided by their sum.
    pub share: f64,
    /// Only the newest shards that hold this many positions together.
    pub newest_positions: Option<u64>,
}

impl Source {
    /// All shards of some folders, with share 1.
    pub fn new(dirs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Source { dirs: dirs.into_iter().map(Into::into).collect(), share: 1.0, newest_positions: None }
    }
}

/// What is made of the symmetries of the board.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Augment {
    /// Nothing: a sample is shown as it is.
    #[default]
    Off,
    /// A sample is shown through one of [`Game::symmetries`] at a time, drawn anew in each epoch.
    Random,
    /// All of [`Game::images`] of a sample are samples too.
    All,
}

/// What to load, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct LoaderSpec {
    /// Where samples come from. An epoch is one pass over the first source; the others are repeated as needed.
    pub sources: Vec<Source>,
    /// An SQL condition on games (`"result IS NOT NULL AND plies >= 20"`), for all sources.
    pub where_sql: Option<String>,
    /// The run's seed.
    pub seed: u64,
    /// The pass over the data, from 0; each has its own order.
    pub epoch: u64,
    /// Samples in a batch; the last batch of an epoch may be smaller.
    pub batch: usize,
    /// Samples in the shuffle pool (about 250 bytes each in chess).
    pub pool: usize,
    /// What the network should learn.
    pub targets: TargetSpec,
    /// Training or validation games.
    pub split: Split,
    /// Leave out positions that came before in the same pass over their source (all but the move clocks equal).
    /// The last four million distinct positions are remembered, in 32 MiB.
    pub drop_duplicates: bool,
    /// Only the positions of a game's first plies, if not all.
    pub first_plies: Option<usize>,
    /// Symmetries of the board.
    pub augment: Augment,
    /// What to do about bad shards and games that cannot be replayed.
    pub on_bad: OnBad,
    /// Threads that replay games; 0 = one for each core.
    pub threads: usize,
}

impl LoaderSpec {
    /// Batches of 256 from all games of some folders, in the order of seed 0.
    pub fn new(dirs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        LoaderSpec {
            sources: vec![Source::new(dirs)],
            where_sql: None,
            seed: 0,
            epoch: 0,
            batch: 256,
            pool: 65_536,
            targets: TargetSpec::default(),
            split: Split::default(),
            drop_duplicates: false,
            first_plies: None,
            augment: Augment::Off,
            on_bad: OnBad::Skip,
            threads: 0,
        }
    }

    fn validate(&self) -> Result<(), DatasetError> {
        let wrong = |field, reason: String| Err(DatasetError::Setting { field, reason });
        if self.sources.is_empty() {
            return wrong("sources", "is empty, expected at least one folder of shards".into());
        }
        if let Some(s) = self.sources.iter().find(|s| !(s.share.is_finite() && s.share > 0.0)) {
            return wrong("share", format!("{} is not a positive number", s.share));
        }
        if self.batch == 0 || self.pool == 0 {
            return wrong("batch", "batch and pool hold at least one sample, not 0".into());
        }
        self.targets.validate()?;
        self.split.validate()
    }
}

/// What a loader has read so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoaderCounts {
    /// Games replayed.
    pub games: u64,
    /// Samples made of them.
    pub samples: u64,
    /// Samples left out as duplicates.
    pub duplicates: u64,
    /// Games left out because they could not be replayed.
    pub bad_games: u64,
}

/// One epoch of batches.
#[derive(Debug)]
pub struct Loader<G: Game> {
    batch: usize,
    pool: Pool,
    augment: Option<(Rng, Vec<Symmetry>)>,
    warnings: Vec<String>,
    positions: u64,
    fingerprint: String,
    game: PhantomData<fn() -> G>,
}

impl<G: Game> Loader<G> {
    /// Opens and verifies the sources and begins to read ahead.
    ///
    /// # Errors
    /// As [`LoaderSpec::open`] and [`Loader::over`].
    pub fn new(spec: LoaderSpec) -> Result<Self, DatasetError> {
        let sources = spec.open()?;
        Loader::over(&sources, spec)
    }

    /// As [`Loader::new`], over sources that were opened before: verifying reads every file, and once is enough.
    ///
    /// # Errors
    /// [`DatasetError::Setting`] for settings that cannot be, or if the spec names other sources than were opened,
    /// [`DatasetError::Empty`] for a source without shards, [`DatasetError::Query`] for a wrong condition.
    pub fn over(sources: &Sources, spec: LoaderSpec) -> Result<Self, DatasetError> {
        let data = sources.of(&spec)?;
        let workers = workers(spec.threads)?;
        let mut streams = Vec::new();
        for (i, source) in spec.sources.iter().enumerate() {
            let plan = Plan::new(&spec, i, &data[i], Arc::clone(&workers))?;
            streams.push((Stream::start::<G>(plan)?, source.share));
        }
        let augment = Rng::from_parts(&[spec.seed, Rng::part("augment"), spec.epoch]);
        let symmetries = G::symmetries();
        Ok(Loader {
            batch: spec.batch,
            pool: Pool::new(streams, spec.pool, Rng::from_parts(&[spec.seed, Rng::part("shuffle"), spec.epoch])),
            augment: (spec.augment == Augment::Random && symmetries.len() > 1).then_some((augment, symmetries)),
            warnings: sources.warnings().to_vec(),
            positions: data[0].positions(),
            fingerprint: sources.fingerprint(),
            game: PhantomData,
        })
    }

    /// The batches of the epoch, counted without making samples: condition, split and duplicates count as in the epoch
    /// itself. Games are replayed only where duplicates or images ask for it; without, the number counts a game that
    /// cannot be replayed too.
    ///
    /// `check` is asked now and then whether to go on.
    ///
    /// # Errors
    /// As [`Loader::over`], what goes wrong in reading, and what `check` says.
    pub fn count_batches<E: From<DatasetError>>(
        sources: &Sources,
        spec: &LoaderSpec,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<u64, E> {
        let data = sources.of(spec)?;
        let plan = Plan::new(spec, 0, &data[0], workers(spec.threads)?)?;
        let samples = Mix::new(spec.sources.iter().map(|s| s.share)).until_first_ends(plan.count::<G, E>(check)?);
        Ok(samples.div_ceil(spec.batch as u64))
    }

    /// The next batch; `None` once the first source is exhausted and the pool is empty.
    ///
    /// # Errors
    /// What went wrong in the reading thread.
    #[allow(clippy::should_implement_trait, reason = "an error ends the epoch, which an iterator does not say")]
    pub fn next(&mut self) -> Result<Option<Batch>, DatasetError> {
        let samples = self.pool.draw(self.batch)?;
        let mut augment = self.augment.as_mut().map(|(rng, symmetries)| (rng, symmetries.as_slice()));
        let symmetry =
            || augment.as_mut().map(|&mut (ref mut rng, symmetries)| &symmetries[rng.below(symmetries.len())]);
        Ok((!samples.is_empty()).then(|| Batch::new(G::SHAPE, &samples, symmetry)))
    }

    /// Goes on as if `batches` batches had been taken, without building their planes, and says how many there were.
    /// Resumes a run.
    ///
    /// # Errors
    /// As [`Loader::next`].
    pub fn skip(&mut self, batches: u64) -> Result<u64, DatasetError> {
        for skipped in 0..batches {
            let samples = self.pool.skip(self.batch)?;
            if samples == 0 {
                return Ok(skipped);
            }
            if let Some((rng, symmetries)) = &mut self.augment {
                for _ in 0..samples {
                    rng.below(symmetries.len());
                }
            }
        }
        Ok(batches)
    }

    /// What was left out, one line each: files at the start, games as they are met.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.iter().chain(self.pool.warnings()).cloned().collect()
    }

    /// What was read so far, in all sources.
    pub fn counts(&self) -> LoaderCounts {
        self.pool.counts()
    }

    /// Plies in the shards of the first source, before any condition: the most samples that an epoch takes from it.
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// A hash of the content of all sources.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn workers(threads: usize) -> Result<Arc<ThreadPool>, DatasetError> {
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("replay-{i}"));
    builder.build().map(Arc::new).map_err(|e| DatasetError::Setting { field: "threads", reason: e.to_string() })
}

/// The columns that replay needs for these targets.
fn columns(targets: &TargetSpec) -> Vec<&'static str> {
    let mut columns = vec![
        "game",
        "game_id",
        "start_fen",
        "opening_plies",
        "moves",
        "best",
        "score",
        "value",
        "result",
        "termination",
    ];
    if targets.policy == PolicyTarget::Visits {
        columns.push("visits");
    }
    columns
}

#[cfg(test)]
mod tests;
