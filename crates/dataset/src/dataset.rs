//! Datasets as they lie in folders: the listing of sidecars is the manifest, and every file is checked against it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::reader::{FileReader, SerializedFileReader};
use polars::prelude::{LazyFrame, col};
use rayon::prelude::*;
use walkdir::WalkDir;

use crate::shard::{META_DATASET, shard_number};
use crate::{DatasetError, GameRecord, OnBad, Sidecar, frame, query, schema, shard_name, sidecar_name};

/// A whole shard.
#[derive(Clone, Debug)]
pub struct ShardInfo {
    /// The Parquet file.
    pub path: PathBuf,
    /// What its sidecar says; size, hash, rows and columns were checked.
    pub sidecar: Sidecar,
    /// The dataset's name in the file's metadata: with `game_id` the identity of its games.
    pub dataset: String,
}

/// The shards of one folder or many, in the order of the folders and of the shard numbers.
#[derive(Clone, Debug)]
pub struct Dataset {
    dirs: Vec<PathBuf>,
    shards: Vec<ShardInfo>,
    warnings: Vec<String>,
}

impl Dataset {
    /// Lists and verifies the shards of `dirs` (each file is read once and hashed).
    ///
    /// Not part of a dataset, and named: Parquet files without a sidecar (half-written, or still being written),
    /// sidecars without their file, files whose size, BLAKE3, rows or columns are not what the sidecar says, and
    /// stray files. They are left out with a warning or are an error, as `on_bad` says. An empty folder is a warning
    /// or an error too; a folder that does not exist is always an error. Subfolders, journals, dot files and what
    /// stages leave beside their shards (stamps, reports, metrics, PGN) are expected and ignored.
    ///
    /// # Errors
    /// As above, and [`DatasetError::Io`].
    pub fn open(dirs: &[PathBuf], on_bad: OnBad) -> Result<Dataset, DatasetError> {
        Dataset::open_knowing(&[], dirs, on_bad)
    }

    /// The same folders as they are now. Only shards that were not there yet are read and hashed, and those whose sidecar
    /// has changed.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn reopen(&self, on_bad: OnBad) -> Result<Dataset, DatasetError> {
        Dataset::open_knowing(&self.shards, &self.dirs, on_bad)
    }

    fn open_knowing(known: &[ShardInfo], dirs: &[PathBuf], on_bad: OnBad) -> Result<Dataset, DatasetError> {
        let mut faults = Vec::new();
        let mut candidates = Vec::new();
        for dir in dirs {
            let before = (candidates.len(), faults.len());
            list(dir, &mut candidates, &mut faults)?;
            if (candidates.len(), faults.len()) == before {
                faults.push((dir.clone(), "holds no shard".to_owned()));
            }
        }
        let known: HashMap<&Path, &ShardInfo> = known.iter().map(|shard| (shard.path.as_path(), shard)).collect();
        let check = |(path, number): (PathBuf, u32)| verify(&path, number, known.get(path.as_path()).copied());
        let checked: Vec<_> = candidates.into_par_iter().map(check).collect();
        let mut shards = Vec::new();
        for result in checked {
            match result {
                Ok(shard) => shards.push(shard),
                Err(fault) => faults.push(fault),
            }
        }
        if let (OnBad::Stop, Some((path, reason))) = (on_bad, faults.first()) {
            return Err(DatasetError::BadFile { path: path.clone(), reason: reason.clone() });
        }
        let warnings = faults.iter().map(|(path, reason)| format!("{}: {reason}; left out", path.display())).collect();
        Ok(Dataset { dirs: dirs.to_vec(), shards, warnings })
    }

    /// The shards, in order.
    pub fn shards(&self) -> &[ShardInfo] {
        &self.shards
    }

    /// What was left out and why, one line a file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Games in all shards.
    pub fn games(&self) -> u64 {
        self.shards.iter().map(|s| s.sidecar.rows).sum()
    }

    /// Plies of all games.
    pub fn positions(&self) -> u64 {
        self.shards.iter().map(|s| s.sidecar.positions).sum()
    }

    /// Size of all shards.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|s| s.sidecar.bytes).sum()
    }

    /// A hash of the content (BLAKE3 of the shards' names and hashes, in order); it does not know where the files lie.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for shard in &self.shards {
            hasher.update(format!("{} {} {}\n", shard.dataset, shard.sidecar.shard, shard.sidecar.blake3).as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// All games as a lazy query.
    ///
    /// # Errors
    /// [`DatasetError::Empty`] without shards; errors of Polars.
    pub fn scan(&self) -> Result<LazyFrame, DatasetError> {
        self.scan_where(None)
    }

    /// The games for which an SQL predicate over the columns holds (`"result IS NOT NULL AND plies >= 20"`).
    ///
    /// # Errors
    /// As [`Dataset::scan`], and [`DatasetError::Query`] if the predicate is none.
    pub fn scan_where(&self, sql_predicate: Option<&str>) -> Result<LazyFrame, DatasetError> {
        if self.shards.is_empty() {
            return Err(DatasetError::Empty { what: self.describe() });
        }
        let paths: Vec<&Path> = self.shards.iter().map(|s| s.path.as_path()).collect();
        let frame = query::scan(&paths, None)?;
        sql_predicate.map_or(Ok(frame.clone()), |sql| Ok(frame.filter(query::predicate(&paths, sql)?)))
    }

    /// The ids of the games for which an SQL predicate holds, of all without one. Games of several datasets can share
    /// an id.
    ///
    /// # Errors
    /// As [`Dataset::scan_where`].
    pub fn ids_where(&self, sql_predicate: Option<&str>) -> Result<HashSet<u64>, DatasetError> {
        let frame = query::collect(self.scan_where(sql_predicate)?.select([col("game_id")]), self.describe())?;
        let ids = frame.column("game_id").and_then(|column| column.u64()).map_err(DatasetError::query(self.describe()));
        Ok(ids?.iter().flatten().collect())
    }

    /// The games of shard `i` of [`Dataset::shards`].
    ///
    /// # Errors
    /// [`DatasetError::Io`] or [`DatasetError::Query`] if the file changed since it was verified.
    ///
    /// # Panics
    /// If there is no shard `i`.
    pub fn read_shard(&self, i: usize) -> Result<Vec<GameRecord>, DatasetError> {
        let path = &self.shards[i].path;
        let bytes = std::fs::read(path).map_err(DatasetError::io(path))?;
        frame::records_from_bytes(bytes, &path.display().to_string())
    }

    /// Only the newest shards: from the last backwards, until they hold that many positions.
    #[must_use]
    pub fn newest(mut self, positions: u64) -> Self {
        let mut sum = 0;
        let keep = self.shards.iter().rev().take_while(|shard| {
            let more = sum < positions;
            sum += shard.sidecar.positions;
            more
        });
        let drop = self.shards.len() - keep.count();
        self.shards.drain(..drop);
        self
    }

    pub(crate) fn describe(&self) -> String {
        self.dirs.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

type Fault = (PathBuf, String);

/// Collects the shards of a folder by number, and what does not belong there.
fn list(dir: &Path, shards: &mut Vec<(PathBuf, u32)>, faults: &mut Vec<Fault>) -> Result<(), DatasetError> {
    let first = shards.len();
    for entry in WalkDir::new(dir).min_depth(1).max_depth(1).follow_links(true).sort_by_file_name() {
        let entry = entry.map_err(|e| {
            let path = e.path().unwrap_or(dir).to_owned();
            DatasetError::io(path)(e.into())
        })?;
        let name = entry.file_name().to_string_lossy();
        let number = shard_number(&name).filter(|_| entry.file_type().is_file());
        match number {
            Some(number) if name.ends_with(".parquet") => shards.push((entry.path().to_owned(), number)),
            Some(number) if !dir.join(shard_name(number)).exists() => {
                faults.push((entry.path().to_owned(), "is the sidecar of a shard that is missing".into()));
            }
            Some(_) => {}
            None if entry.file_type().is_dir() || is_expected(&name) => {}
            None => faults.push((entry.path().to_owned(), "is not a shard (a stray file)".into())),
        }
    }
    if !dir.is_dir() {
        return Err(DatasetError::BadFile { path: dir.to_owned(), reason: "is not a folder of shards".into() });
    }
    // Six-digit numbers come after five-digit ones.
    shards[first..].sort_by_key(|(_, number)| *number);
    Ok(())
}

/// Files that stages leave beside their shards: stamps, reports, metrics, PGN, journals, and the temporary files
/// (`name#number`) of a store whose process was killed.
fn is_expected(name: &str) -> bool {
    const ENDINGS: [&str; 6] = [".journal", ".holder", ".jsonl", ".pgn", ".log", ".json"];
    let temporary = name.rsplit_once('#').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let own = name.starts_with("shard-") && !name.ends_with(".journal");
    temporary
        || name.starts_with('.')
        || name == "report.txt"
        || name.starts_with("events.out.tfevents")
        || !own && ENDINGS.iter().any(|e| name.ends_with(e))
}

/// Checks a shard, which is as it was if its sidecar is the `known` one's.
fn verify(path: &Path, number: u32, known: Option<&ShardInfo>) -> Result<ShardInfo, Fault> {
    let fault = |reason: String| (path.to_owned(), reason);
    let side = path.with_file_name(sidecar_name(number));
    let text = match std::fs::read(&side) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(fault("has no sidecar: half-written, or still being written".into()));
        }
        Err(e) => return Err((side, e.to_string())),
    };
    let sidecar: Sidecar =
        serde_json::from_slice(&text).map_err(|e| (side.clone(), format!("is not a sidecar: {e}")))?;
    if sidecar.shard != number {
        return Err((side, format!("speaks of shard {}", sidecar.shard)));
    }
    let read = |e: std::io::Error| fault(format!("cannot be read: {e}"));
    let file = File::open(path).map_err(read)?;
    let bytes = file.metadata().map_err(read)?.len();
    if bytes != sidecar.bytes {
        return Err(fault(format!("has {bytes} bytes, its sidecar says {}", sidecar.bytes)));
    }
    if let Some(known) = known.filter(|known| known.sidecar == sidecar) {
        return Ok(known.clone());
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&file).map_err(read)?;
    if hasher.finalize().to_hex().as_str() != sidecar.blake3 {
        return Err(fault("does not have the BLAKE3 that its sidecar says: its content changed".into()));
    }
    let dataset = read_footer(file, &sidecar).map_err(fault)?;
    Ok(ShardInfo { path: path.to_owned(), sidecar, dataset })
}

/// Checks the footer, and gives the dataset's name in it.
fn read_footer(file: File, sidecar: &Sidecar) -> Result<String, String> {
    let broken = |e: parquet::errors::ParquetError| format!("is not a Parquet file: {e}");
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let footer = reader.metadata().file_metadata();
    let rows = u64::try_from(footer.num_rows()).unwrap_or(0);
    if rows != sidecar.rows {
        return Err(format!("has {rows} games, its sidecar says {}", sidecar.rows));
    }
    let pairs = footer.key_value_metadata();
    let columns = parquet_to_arrow_schema(footer.schema_descr(), pairs).map_err(broken)?;
    if let Some(difference) = schema::difference(&columns) {
        return Err(difference);
    }
    let named = pairs.into_iter().flatten().find(|kv| kv.key == META_DATASET);
    named.and_then(|kv| kv.value.clone()).ok_or_else(|| format!("has no `{META_DATASET}` in its metadata"))
}

#[cfg(test)]
#[path = "dataset/tests.rs"]
mod tests;
