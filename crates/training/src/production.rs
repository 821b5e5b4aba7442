//! Games into shards: which games are still to be played, their journal, and the writing of full shards.
//!
//! A shard is a range of game ids, and a game is a function of its id, so workers may finish games in any order and a
//! killed run plays only what neither a shard nor a journal holds.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dataset::{Dataset, DatasetError, GameRecord, Journal, Meta, OnBad};
use games::GameResult;
use pipeline::{Stage, Store};
use serde_json::{Value, json};

/// How the games of a run ended.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Games finished in this run of the program.
    pub games: u64,
    /// Plies of these games.
    pub positions: u64,
    /// White wins, draws, black wins, games without a result.
    pub results: [u64; 4],
}

impl Tally {
    fn count(&mut self, record: &GameRecord) {
        self.games += 1;
        self.positions += record.moves.len() as u64;
        let slot = match record.result {
            Some(GameResult::WhiteWins) => 0,
            Some(GameResult::Draw) => 1,
            Some(GameResult::BlackWins) => 2,
            None => 3,
        };
        self.results[slot] += 1;
    }
}

/// The games of a dataset that is being written. Shared by the workers.
pub struct Production {
    store: Store,
    meta: Meta,
    /// What the sidecars say about the writer beside what they always say.
    note: Value,
    inner: Mutex<Inner>,
    total: u64,
    /// The shards that were whole at the beginning.
    before: Option<Dataset>,
}

struct Inner {
    queue: VecDeque<u64>,
    open: BTreeMap<u32, OpenShard>,
    games_per_shard: u64,
    already: u64,
    tally: Tally,
}

struct OpenShard {
    journal: Journal,
    records: BTreeMap<u64, GameRecord>,
    expected: u64,
    /// Games that were not played in one go by one engine process, and so are not reproducible.
    resumed: Vec<u64>,
}

impl Production {
    /// Looks at what the stage's folder holds of games `0..games` and of `shards`, and queues the rest.
    ///
    /// A shard with fewer games than it should have (the dataset grew) is completed, one that fails its checksum is
    /// written again.
    ///
    /// # Errors
    /// What reading and journaling can fail with; names the file.
    pub fn open(
        stage: &Stage,
        meta: Meta,
        games: u64,
        games_per_shard: u64,
        shards: Option<Range<u32>>,
    ) -> Result<Self, DatasetError> {
        Production::open_noting(stage, meta, games, games_per_shard, shards, json!({}))
    }

    /// As [`Production::open`], with an object `note` of what the shards' sidecars should say too.
    ///
    /// # Errors
    /// As [`Production::open`].
    pub fn open_noting(
        stage: &Stage,
        meta: Meta,
        games: u64,
        games_per_shard: u64,
        shards: Option<Range<u32>>,
        note: Value,
    ) -> Result<Self, DatasetError> {
        let last = games.div_ceil(games_per_shard) as u32;
        let shards = shards.map_or(0..last, |r| r.start.min(last)..r.end.min(last));
        let (store, dir) = (stage.store(), stage.dir());
        let mut inner = Inner {
            queue: VecDeque::new(),
            open: BTreeMap::new(),
            games_per_shard,
            already: 0,
            tally: Tally::default(),
        };
        let mut total = 0;
        let written = Written::look(store, dir)?;
        for shard in shards {
            let first = u64::from(shard) * games_per_shard;
            let ids = first..(first + games_per_shard).min(games);
            let expected = ids.end - ids.start;
            total += expected;
            if written.rows(shard) >= expected {
                inner.already += expected;
                continue;
            }
            let (journal, journaled) = open_journal(dir, shard)?;
            let mut records: BTreeMap<u64, GameRecord> =
                written.records(shard)?.into_iter().map(|r| (r.game_id, r)).collect();
            records.extend(journaled.into_iter().filter(|r| ids.contains(&r.game_id)).map(|r| (r.game_id, r)));
            inner.already += records.len() as u64;
            inner.queue.extend(ids.filter(|id| !records.contains_key(id)));
            inner.open.insert(shard, OpenShard { journal, records, expected, resumed: Vec::new() });
        }
        let production =
            Production { store: store.clone(), meta, note, inner: Mutex::new(inner), total, before: written.data };
        production.close_full_shards()?;
        Ok(production)
    }

    /// What the stage's folder `dir` holds now. Shards that were whole at the beginning are not verified again.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn dataset(&self, dir: &Path, on_bad: OnBad) -> Result<Dataset, DatasetError> {
        match &self.before {
            Some(before) => before.reopen(on_bad),
            None => Dataset::open(&[dir.to_owned()], on_bad),
        }
    }

    /// The next game to play, in order of ids; `None` when all are played or taken.
    pub fn next(&self) -> Option<u64> {
        self.lock().queue.pop_front()
    }

    /// Games that are still to be handed out.
    pub fn left(&self) -> u64 {
        self.lock().queue.len() as u64
    }

    /// Games of the requested range, and how many of them were there already.
    pub fn totals(&self) -> (u64, u64) {
        (self.total, self.lock().already)
    }

    /// What this run has finished so far.
    pub fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    /// Notes that a game was not played in one go; the sidecar of its shard will say so.
    pub fn resumed(&self, game_id: u64) {
        let mut inner = self.lock();
        let shard = (game_id / inner.games_per_shard) as u32;
        if let Some(open) = inner.open.get_mut(&shard) {
            open.resumed.push(game_id);
        }
    }

    /// Takes a finished game: into the journal at once, into its shard when that is full.
    ///
    /// # Errors
    /// The journal or the shard could not be written. A game that the journal did not take is not counted; one of a
    /// shard that could not be written is in the journal, where the next run finds it.
    pub fn finished(&self, record: GameRecord) -> Result<(), DatasetError> {
        let full = {
            let inner = &mut *self.lock();
            let shard = (record.game_id / inner.games_per_shard) as u32;
            let Some(open) = inner.open.get_mut(&shard) else {
                return Ok(());
            };
            open.journal.append(&record)?;
            inner.tally.count(&record);
            open.records.insert(record.game_id, record);
            let full = open.records.len() as u64 >= open.expected;
            full.then(|| inner.open.remove(&shard).map(|open| (shard, open))).flatten()
        };
        // Not under the lock: the other workers play on while a shard is compressed and checked.
        full.map_or(Ok(()), |(shard, open)| self.close(shard, open))
    }

    fn close_full_shards(&self) -> Result<(), DatasetError> {
        let full: Vec<(u32, OpenShard)> =
            self.lock().open.extract_if(.., |_, s| s.records.len() as u64 >= s.expected).collect();
        full.into_iter().try_for_each(|(shard, open)| self.close(shard, open))
    }

    fn close(&self, shard: u32, open: OpenShard) -> Result<(), DatasetError> {
        let records: Vec<GameRecord> = open.records.into_values().collect();
        let mut note = self.note.clone();
        if !open.resumed.is_empty() {
            note["resumed_games"] = json!(open.resumed);
        }
        dataset::write_shard_as(&self.store, shard, &records, &self.meta, &note)?;
        open.journal.remove()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shards of a folder that are there and whole, by number. Others are named and written again.
struct Written {
    data: Option<Dataset>,
    places: BTreeMap<u32, usize>,
}

impl Written {
    fn look(store: &Store, dir: &Path) -> Result<Self, DatasetError> {
        if dataset::finished_shards(store)?.is_empty() {
            return Ok(Written { data: None, places: BTreeMap::new() });
        }
        let data = Dataset::open(&[dir.to_owned()], OnBad::Skip)?;
        for warning in data.warnings() {
            pipeline::say!("warning: {warning}");
        }
        let places = data.shards().iter().enumerate().map(|(i, shard)| (shard.sidecar.shard, i)).collect();
        Ok(Written { data: Some(data), places })
    }

    /// Games in a shard.
    fn rows(&self, shard: u32) -> u64 {
        let place = self.data.as_ref().zip(self.places.get(&shard));
        place.map_or(0, |(data, i)| data.shards()[*i].sidecar.rows)
    }

    fn records(&self, shard: u32) -> Result<Vec<GameRecord>, DatasetError> {
        match (&self.data, self.places.get(&shard)) {
            (Some(data), Some(i)) => data.read_shard(*i),
            _ => Ok(Vec::new()),
        }
    }
}

/// Hidden, so that no glob over shards meets it.
fn open_journal(dir: &Path, shard: u32) -> Result<(Journal, Vec<GameRecord>), DatasetError> {
    let folder = dir.join(".journal");
    std::fs::create_dir_all(&folder).map_err(|source| DatasetError::Io { path: folder.clone(), source })?;
    Journal::open(&folder.join(format!("shard-{shard:05}.journal")))
}
