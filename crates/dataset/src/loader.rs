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

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use games::{Game, Rng, Symmetry};
use rayon::{ThreadPool, ThreadPoolBuilder};

pub use batch::Batch;
use pool::Pool;
use reader::{Plan, Stream};

use crate::{Dataset, DatasetError, OnBad, PolicyTarget, Sample, Split, TargetSpec};

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
    /// Samples in the shuffle pool (about 300 bytes each in chess).
    pub pool: usize,
    /// What the network should learn.
    pub targets: TargetSpec,
    /// Training or validation games.
    pub split: Split,
    /// Leave out positions that came before in the same pass over their source (all but the move clocks equal).
    /// The last four million distinct positions are remembered, in 32 MiB.
    pub drop_duplicates: bool,
    /// Show each sample through a random symmetry of the board.
    pub augment: bool,
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
            augment: false,
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
    workers: Arc<ThreadPool>,
    warnings: Vec<String>,
    positions: u64,
    fingerprint: String,
    game: PhantomData<fn() -> G>,
}

impl<G: Game> Loader<G> {
    /// Opens and verifies the sources and begins to read ahead.
    ///
    /// # Errors
    /// [`DatasetError::Setting`] for settings that cannot be, errors of [`Dataset::open`], [`DatasetError::Empty`] for
    /// a source without shards, [`DatasetError::Query`] for a wrong condition.
    pub fn new(spec: LoaderSpec) -> Result<Self, DatasetError> {
        spec.validate()?;
        let workers = ThreadPoolBuilder::new()
            .num_threads(spec.threads)
            .thread_name(|i| format!("replay-{i}"))
            .build()
            .map_err(|e| DatasetError::Setting { field: "threads", reason: e.to_string() })?;
        let workers = Arc::new(workers);
        let (mut warnings, mut streams, mut fingerprints) = (Vec::new(), Vec::new(), Vec::new());
        let mut positions = 0;
        for (i, source) in spec.sources.iter().enumerate() {
            let mut data = Dataset::open(&source.dirs, spec.on_bad)?;
            warnings.extend_from_slice(data.warnings());
            if let Some(limit) = source.newest_positions {
                data = data.newest(limit);
            }
            if i == 0 {
                positions = data.positions();
            }
            fingerprints.push(data.fingerprint());
            let plan = Plan::new(&spec, i, data, Arc::clone(&workers))?;
            streams.push((Stream::start::<G>(plan)?, source.share));
        }
        let augment = Rng::from_parts(&[spec.seed, Rng::part("augment"), spec.epoch]);
        let symmetries = G::symmetries();
        Ok(Loader {
            batch: spec.batch,
            pool: Pool::new(streams, spec.pool, Rng::from_parts(&[spec.seed, Rng::part("shuffle"), spec.epoch])),
            augment: (spec.augment && symmetries.len() > 1).then_some((augment, symmetries)),
            workers,
            warnings,
            positions,
            fingerprint: blake3::hash(fingerprints.join("\n").as_bytes()).to_hex().to_string(),
            game: PhantomData,
        })
    }

    /// The next batch; `None` once the first source is exhausted and the pool is empty.
    ///
    /// # Errors
    /// What went wrong in the reading thread.
    #[allow(clippy::should_implement_trait, reason = "an error ends the epoch, which an iterator does not say")]
    pub fn next(&mut self) -> Result<Option<Batch>, DatasetError> {
        let samples = self.samples()?;
        Ok((!samples.is_empty()).then(|| self.workers.install(|| Batch::new(G::SHAPE, &samples))))
    }

    /// Goes on as if `batches` batches had been taken, without building their planes, and says how many there were.
    /// Resumes a run, or counts an epoch.
    ///
    /// # Errors
    /// As [`Loader::next`].
    pub fn skip(&mut self, batches: u64) -> Result<u64, DatasetError> {
        for skipped in 0..batches {
            if self.samples()?.is_empty() {
                return Ok(skipped);
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

    fn samples(&mut self) -> Result<Vec<Sample>, DatasetError> {
        let mut samples = Vec::with_capacity(self.batch);
        while samples.len() < self.batch {
            let Some(mut sample) = self.pool.draw()? else { break };
            if let Some((rng, symmetries)) = &mut self.augment {
                let i = rng.below(symmetries.len());
                batch::transform(&mut sample, G::SHAPE, &symmetries[i]);
            }
            samples.push(sample);
        }
        Ok(samples)
    }
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
