//! The thread that reads a source ahead of training.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use games::{Game, Rng};
use polars::prelude::{DataFrame, Expr, col};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::recent::Recent;
use super::{Augment, LoaderCounts, LoaderSpec, columns};
use crate::sample::{Sample, Samples, position_key, replay, walk};
use crate::{Dataset, DatasetError, GameRecord, OnBad, ShardInfo, Split, TargetSpec, frame, query};

/// Shards are read together until they hold this many positions: enough to keep Polars busy, little enough to hold.
const GROUP_POSITIONS: u64 = 65_536;
/// Games that are replayed together and go through the channel together. A constant, so that threads change nothing.
const BLOCK_GAMES: usize = 64;
/// Games of a block that one thread replays into the same arrays.
const CHUNK_GAMES: usize = 8;
/// Blocks that wait in the channel.
const AHEAD: usize = 4;
/// The column in which Polars says where a row is from.
const PATH: &str = "tabiya_path";

/// All that the reading thread needs to know of a source.
pub(super) struct Plan {
    shards: Vec<ShardInfo>,
    what: String,
    condition: Option<Expr>,
    columns: Vec<Expr>,
    targets: TargetSpec,
    split: Split,
    drop_duplicates: bool,
    first_plies: Option<usize>,
    /// Whether images of a sample are samples too.
    images: bool,
    on_bad: OnBad,
    /// Starts again at the end, in a new order.
    cycle: bool,
    seed: [u64; 4],
    workers: Arc<ThreadPool>,
}

impl Plan {
    pub(super) fn new(
        spec: &LoaderSpec,
        source: usize,
        data: &Dataset,
        workers: Arc<ThreadPool>,
    ) -> Result<Self, DatasetError> {
        let (what, shards) = (data.describe(), data.shards().to_vec());
        if shards.is_empty() {
            return Err(DatasetError::Empty { what });
        }
        let paths = [shards[0].path.as_path()];
        Ok(Plan {
            condition: spec.where_sql.as_deref().map(|sql| query::predicate(&paths, sql)).transpose()?,
            columns: columns(&spec.targets).into_iter().chain([PATH]).map(col).collect(),
            shards,
            what,
            targets: spec.targets,
            split: spec.split,
            drop_duplicates: spec.drop_duplicates,
            first_plies: spec.first_plies,
            images: spec.augment == Augment::All,
            on_bad: spec.on_bad,
            cycle: source > 0,
            seed: [spec.seed, Rng::part("shards"), spec.epoch, source as u64],
            workers,
        })
    }

    /// The shards of one pass in their order, cut into groups.
    fn groups(&self, pass: u64) -> Vec<Vec<ShardInfo>> {
        let mut order = self.shards.clone();
        Rng::from_parts(&[self.seed[0], self.seed[1], self.seed[2], self.seed[3], pass]).shuffle(&mut order);
        let mut groups: Vec<Vec<ShardInfo>> = Vec::new();
        let mut positions = GROUP_POSITIONS;
        for shard in order {
            if positions >= GROUP_POSITIONS {
                groups.push(Vec::new());
                positions = 0;
            }
            positions += shard.sidecar.positions;
            groups.last_mut().into_iter().for_each(|g| g.push(shard.clone()));
        }
        groups
    }

    /// Some columns of the games of a group that meet the condition, and for each row its dataset.
    fn query<'g>(
        &self,
        group: &'g [ShardInfo],
        columns: &[Expr],
    ) -> Result<(DataFrame, Vec<&'g str>, String), DatasetError> {
        let paths: Vec<&Path> = group.iter().map(|s| s.path.as_path()).collect();
        let what = query::describe(&paths);
        let mut lazy = query::scan(&paths, Some(PATH))?;
        if let Some(condition) = &self.condition {
            lazy = lazy.filter(condition.clone());
        }
        let games = query::collect(lazy.select(columns), &what)?;
        let dataset = |file: &str| group.iter().find(|s| s.path.as_os_str() == file).map(|s| s.dataset.as_str());
        let files = frame::texts(&games, PATH, &what)?.into_iter();
        let named = files.map(|file| file.as_deref().and_then(dataset)).collect::<Option<_>>();
        let datasets = named.ok_or_else(|| DatasetError::Reader { what: what.clone() })?;
        Ok((games, datasets, what))
    }

    /// The games of a group that belong to the split and meet the condition, in order.
    fn read(&self, group: &[ShardInfo]) -> Result<Vec<GameRecord>, DatasetError> {
        let (games, datasets, what) = self.query(group, &self.columns)?;
        let records = frame::records_from_frame(&games, &what)?;
        let mut kept = Vec::with_capacity(records.len());
        for (mut record, dataset) in records.into_iter().zip(datasets) {
            if self.split.contains(dataset, record.game_id) {
                self.first_plies.into_iter().for_each(|plies| record.truncate(plies));
                kept.push(record);
            }
        }
        Ok(kept)
    }

    /// The plies after the opening of the games that [`Plan::read`] gives.
    fn count_plies(&self, group: &[ShardInfo]) -> Result<u64, DatasetError> {
        let columns = ["game_id", "plies", "opening_plies", PATH].map(col);
        let (games, datasets, what) = self.query(group, &columns)?;
        let lengths = frame::lengths(&games, &what)?;
        let most = self.first_plies.unwrap_or(usize::MAX) as u64;
        let kept = lengths.into_iter().zip(datasets).filter(|((id, ..), dataset)| self.split.contains(dataset, *id));
        Ok(kept.map(|((_, plies, opening), _)| plies.min(most).saturating_sub(opening)).sum())
    }

    fn replay<G: Game>(&self, games: &[GameRecord], seen: &mut Option<Recent>) -> Result<Block, DatasetError> {
        let chunk = |games: &[GameRecord]| {
            let mut samples = Samples::with_capacity(games.iter().map(GameRecord::plies).sum());
            let results =
                games.iter().map(|game| replay::<G>(game, &self.targets, self.images, &mut samples)).collect();
            (samples, results)
        };
        let replayed: Vec<(Samples, Vec<_>)> =
            self.workers.install(|| games.par_chunks(CHUNK_GAMES).map(chunk).collect());
        let mut block = Block::default();
        for (mut samples, results) in replayed {
            for result in results {
                match result {
                    Ok(()) => block.counts.games += 1,
                    Err(e) => {
                        let e = self.skippable(e)?;
                        block.counts.bad_games += 1;
                        block.warnings.push(format!("{}: {e}; left out", self.what));
                    }
                }
            }
            let made = samples.len();
            if let Some(seen) = seen {
                samples.retain(|s| seen.insert(s.position_key()));
            }
            block.counts.samples += samples.len() as u64;
            block.counts.duplicates += (made - samples.len()) as u64;
            block.samples.push(samples);
        }
        Ok(block)
    }

    /// What is wrong with a game that may be left out; an error that ends the pass otherwise.
    fn skippable(&self, error: DatasetError) -> Result<DatasetError, DatasetError> {
        match error {
            // Another game is a wrong choice of data, and no damage that could be skipped.
            DatasetError::OtherGame { .. } => Err(error),
            _ if self.on_bad == OnBad::Stop => Err(error),
            _ => Ok(error),
        }
    }

    /// The samples of the first pass, counted without making them: from the games' lengths, and by walking through the
    /// games where duplicates or images make the number depend on the positions.
    pub(super) fn count<G: Game, E: From<DatasetError>>(
        &self,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<u64, E> {
        if !self.drop_duplicates && !self.images {
            let mut samples = 0;
            for group in self.groups(0) {
                check()?;
                samples += self.count_plies(&group)?;
            }
            return Ok(samples);
        }
        let mut seen = self.drop_duplicates.then(Recent::new);
        let mut samples = 0;
        for group in self.groups(0) {
            check()?;
            let games = self.read(&group)?;
            let look = |record: &GameRecord| {
                let (mut number, mut keys) = (0, Vec::new());
                if self.images {
                    // Which images there are is most of the work of making samples of them.
                    let mut samples = Samples::default();
                    replay::<G>(record, &self.targets, true, &mut samples)?;
                    let all = (0..samples.len()).filter_map(|i| samples.get(i));
                    return Ok((samples.len() as u64, all.map(|sample| sample.position_key()).collect()));
                }
                walk::<G>(record, &self.targets, |state| {
                    number += 1;
                    if self.drop_duplicates {
                        keys.push(position_key(&state.pack()));
                    }
                })
                .map(|()| (number, keys))
            };
            let looked: Vec<_> = self.workers.install(|| games.par_iter().map(look).collect());
            for result in looked {
                match (result, &mut seen) {
                    (Ok((_, keys)), Some(seen)) => samples += keys.iter().filter(|k| seen.insert(**k)).count() as u64,
                    (Ok((number, _)), None) => samples += number,
                    (Err(e), _) => drop(self.skippable(e)?),
                }
            }
        }
        Ok(samples)
    }

    /// Reads passes until the source is exhausted or nobody listens.
    fn run<G: Game>(&self, out: &SyncSender<Message>) -> Result<(), DatasetError> {
        let mut seen = self.drop_duplicates.then(Recent::new);
        for pass in 0.. {
            let mut made = 0;
            for group in self.groups(pass) {
                for games in self.read(&group)?.chunks(BLOCK_GAMES) {
                    let block = self.replay::<G>(games, &mut seen)?;
                    made += block.counts.samples;
                    if out.send(Message::Block(block)).is_err() {
                        return Ok(());
                    }
                }
            }
            if !self.cycle {
                break;
            }
            if made == 0 {
                let reason = format!("{} has no sample left after the condition and the split", self.what);
                return Err(DatasetError::Setting { field: "sources", reason });
            }
            seen.iter_mut().for_each(Recent::clear);
        }
        Ok(())
    }
}

/// Samples of some games.
#[derive(Default)]
struct Block {
    samples: Vec<Samples>,
    counts: LoaderCounts,
    warnings: Vec<String>,
}

enum Message {
    Block(Block),
    End,
    Failed(DatasetError),
}

/// The samples of a source, read ahead by a thread that ends with the stream.
#[derive(Debug)]
pub(super) struct Stream {
    what: String,
    receiver: Option<Receiver<Message>>,
    thread: Option<JoinHandle<()>>,
    /// The samples in hand, and how many of them were given.
    current: (Samples, usize),
    waiting: std::vec::IntoIter<Samples>,
    pub(super) warnings: Vec<String>,
    pub(super) counts: LoaderCounts,
}

impl Stream {
    pub(super) fn start<G: Game>(plan: Plan) -> Result<Self, DatasetError> {
        let (sender, receiver) = sync_channel(AHEAD);
        let what = plan.what.clone();
        let work = move || {
            let last = match plan.run::<G>(&sender) {
                Ok(()) => Message::End,
                Err(e) => Message::Failed(e),
            };
            // An error here means that nobody listens any more.
            let _ = sender.send(last);
        };
        let thread = std::thread::Builder::new()
            .name("read-ahead".into())
            .spawn(work)
            .map_err(DatasetError::io(what.as_str()))?;
        Ok(Stream {
            what,
            receiver: Some(receiver),
            thread: Some(thread),
            current: Default::default(),
            waiting: Vec::new().into_iter(),
            warnings: Vec::new(),
            counts: LoaderCounts::default(),
        })
    }

    /// The next sample; `None` at the end of the source.
    pub(super) fn next(&mut self) -> Result<Option<Sample<'_>>, DatasetError> {
        while self.current.1 == self.current.0.len() {
            if let Some(samples) = self.waiting.next() {
                self.current = (samples, 0);
                continue;
            }
            let Some(receiver) = &self.receiver else { return Ok(None) };
            match receiver.recv() {
                Ok(Message::Block(block)) => {
                    self.counts = self.counts.plus(block.counts);
                    self.warnings.extend(block.warnings);
                    self.waiting = block.samples.into_iter();
                }
                Ok(Message::End) => self.receiver = None,
                Ok(Message::Failed(e)) => {
                    self.receiver = None;
                    return Err(e);
                }
                Err(_) => {
                    self.receiver = None;
                    return Err(DatasetError::Reader { what: self.what.clone() });
                }
            }
        }
        self.current.1 += 1;
        Ok(self.current.0.get(self.current.1 - 1))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.receiver = None; // the thread's next send fails, and it ends
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
