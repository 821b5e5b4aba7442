//! Opening and closing a stage: what is there, what is left to do, and a stamp that says so.
//!
//! A stage runs again only if what determines its content changed. Growing amounts extend it; any other change moves
//! the old output aside under a dated name. Nothing is ever deleted.
//!
//! Order of events, so that a kill at any moment loses nothing: lock, move aside, stamp `running`, work, stamp
//! `done`. A kill before the first stamp leaves no folder or an empty one (fresh); after it, a running stamp (resume).

mod ledger;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::{span, utc_compact, utc_now};
use crate::files;
use crate::lock::{self, Lock, LockError, WHOLE};
use crate::machine::machine;
use crate::progress;
use crate::say;
use crate::stamp::{STAMP_FILE, Stamp, StampError, Status, differences, load_stamp, write_json};
use crate::store::{Store, StoreError};
use ledger::{Ledger, Ticker};

/// The resolved configuration, saved beside every output.
const CONFIG_FILE: &str = "config.json";

/// What a stage is to be.
#[derive(Debug, Clone)]
pub struct StageSpec {
    /// Unique in a profile, such as `corpus` or `refine/iter_0001/selfplay`.
    pub name: String,
    /// Where its output goes.
    pub dir: PathBuf,
    /// What determines the content, and nothing else (no worker counts, no paths).
    pub settings: Value,
    /// Amounts that may grow, such as `games`.
    pub growable: BTreeMap<String, u64>,
    /// Fingerprints of what is read, by name.
    pub inputs: BTreeMap<String, String>,
    /// The whole resolved configuration, saved as `config.json` beside the output.
    pub resolved_config: Value,
}

/// What is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Everything; the folder holds nothing of the stage.
    Fresh,
    /// What an interrupted run left undone.
    Resume,
    /// More of the same: a growing amount grew since it was done.
    Extend,
    /// Nothing.
    Done,
}

/// Why a stage could not be opened or closed.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Another run has it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Its folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its stamp cannot be read or written.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// The old output could not be moved aside.
    #[error("{stage}: cannot move {} aside to {}: {source}; move or remove it by hand", .from.display(), .to.display())]
    Aside {
        /// The stage.
        stage: String,
        /// The folder.
        from: PathBuf,
        /// Its new name.
        to: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A run over some shards only found output of other settings, which others may be writing.
    #[error(
        "{stage}: {} holds other output ({why}), and a run over a range of shards does not move it aside; run \
         with the old settings, or once without a range, or move the folder by hand",
        .dir.display()
    )]
    Mismatch {
        /// The stage.
        stage: String,
        /// The folder.
        dir: PathBuf,
        /// What differs.
        why: String,
    },
}

/// The stamp of a stage's folder, for the stages that read its output; none when it has none.
///
/// # Errors
/// [`StageError::Stamp`] when there is one that cannot be read.
pub fn read_stamp(dir: &Path) -> Result<Option<Stamp>, StageError> {
    Ok(load_stamp(dir)?)
}

/// An open stage. It holds its lock until dropped.
#[derive(Debug)]
pub struct Stage {
    spec: StageSpec,
    plan: Plan,
    store: Store,
    ledger: Arc<Ledger>,
    /// While it runs.
    ticker: Mutex<Option<Ticker>>,
    finished: AtomicBool,
    _lock: Lock,
}

impl Stage {
    /// Takes the stage's lock under `locks`, compares its stamp with `spec`, and stamps it as running unless it is
    /// done.
    ///
    /// No stamp: [`Plan::Fresh`]. Same settings and inputs: [`Plan::Resume`] if running, [`Plan::Done`] if done, and
    /// [`Plan::Extend`] if a growable amount is larger than what was done; a smaller one changes nothing. Anything else, stray files without a
    /// stamp included, is moved aside to `<dir>.<date-time>`, and what changed is logged: [`Plan::Fresh`].
    ///
    /// # Errors
    /// [`StageError`]; [`LockError::Held`] in it names who runs the stage.
    pub fn open(spec: StageSpec, locks: &Path) -> Result<Stage, StageError> {
        let lock = Lock::acquire(&lock_path(locks, &spec.name, "lock"), WHOLE, &spec.name)?;
        // A folder behind a symbolic link stays where the link points, on the disk that was chosen for it.
        let dir = fs::canonicalize(&spec.dir).unwrap_or_else(|_| spec.dir.clone());
        files::sweep_temporaries(&dir);
        let (plan, old) = match examine(&spec, &dir)? {
            Found::Nothing => (Plan::Fresh, None),
            Found::Same(plan, stamp) => (plan, Some(*stamp)),
            Found::Other(why) => {
                move_aside(&spec.name, &dir, &why)?;
                (Plan::Fresh, None)
            }
        };
        // Through the canonical name: a link whose target was moved aside points to nothing until it is made again.
        let store = Store::open(&dir)?;
        Stage::begin(spec, plan, old, store, lock, None)
    }

    /// As [`Stage::open`] for one of several processes that write one dataset: locks `range` (of shards) alone. Output
    /// of other settings is an error here, because another process may be writing it.
    ///
    /// The stamp stays `running` until a process calls [`Stage::finish`], which it should when all shards are there.
    ///
    /// # Errors
    /// As [`Stage::open`], and [`StageError::Mismatch`].
    pub fn open_range(spec: StageSpec, locks: &Path, range: Range<u64>) -> Result<Stage, StageError> {
        let what = format!("{} (shards {}..{})", spec.name, range.start, range.end);
        let lock = Lock::acquire(&lock_path(locks, &spec.name, "lock"), range, &what)?;
        // Between looking for a stamp and writing one, no other process may do the same.
        let guard = lock_path(locks, &spec.name, "stamp.lock");
        let _held = wait_for(&guard, &spec.name)?;
        let (plan, old) = match examine(&spec, &spec.dir)? {
            Found::Nothing => (Plan::Fresh, None),
            Found::Same(plan, stamp) => (plan, Some(*stamp)),
            Found::Other(why) => {
                return Err(StageError::Mismatch { stage: spec.name, dir: spec.dir, why: why.join(", ") });
            }
        };
        let store = Store::open(&spec.dir)?;
        Stage::begin(spec, plan, old, store, lock, Some(guard))
    }

    fn begin(
        spec: StageSpec,
        plan: Plan,
        old: Option<Stamp>,
        store: Store,
        lock: Lock,
        guard: Option<PathBuf>,
    ) -> Result<Stage, StageError> {
        let (seconds, sittings, started) =
            old.map_or_else(|| (0.0, 0, utc_now()), |stamp| (stamp.seconds, stamp.sittings, stamp.started));
        let running = Stamp {
            stage: spec.name.clone(),
            status: Status::Running,
            settings: spec.settings.clone(),
            growable: spec.growable.clone(),
            inputs: spec.inputs.clone(),
            fingerprint: None,
            summary: Value::Null,
            seconds,
            sittings: sittings + 1,
            machine: machine(),
            started,
            finished: None,
            progress: None,
        };
        progress::forget();
        let ledger = Arc::new(Ledger::new(spec.dir.clone(), guard, running));
        let finished = AtomicBool::new(plan == Plan::Done);
        let stage = Stage { spec, plan, store, ledger, ticker: Mutex::new(None), finished, _lock: lock };
        if plan != Plan::Done {
            // The stamp first: without it, a folder that holds a file is somebody else's.
            stage.ledger.begin()?;
            write_json(&stage.spec.dir.join(CONFIG_FILE), &stage.spec.resolved_config)?;
            *stage.ticker() = Some(Ticker::start(Arc::clone(&stage.ledger)));
        }
        Ok(stage)
    }

    /// What is left to do.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// The folder of the output.
    pub fn dir(&self) -> &Path {
        &self.spec.dir
    }

    /// The output's storage, rooted at [`Stage::dir`].
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Stamps the stage as done, and says how long it took. `fingerprint` names the content for the stages that read
    /// it; `summary` is for people and reports.
    ///
    /// # Errors
    /// [`StampError::Write`]; the stage then still counts as running, and resumes.
    pub fn finish(&self, fingerprint: &str, summary: impl Serialize) -> Result<(), StageError> {
        let path = || self.spec.dir.join(STAMP_FILE);
        let summary = serde_json::to_value(summary)
            .map_err(|error| StampError::Write { path: path(), source: io::Error::other(error) })?;
        *self.ticker() = None;
        let stamp = self.ledger.update(|stamp| {
            stamp.status = Status::Done;
            stamp.fingerprint = Some(fingerprint.to_string());
            stamp.summary = summary;
            stamp.finished = Some(utc_now());
            stamp.progress = None;
        })?;
        self.finished.store(true, Ordering::SeqCst);
        let sittings = if stamp.sittings > 1 { format!(" over {} sittings", stamp.sittings) } else { String::new() };
        say!("{}: took {}{sittings}", stamp.stage, span(stamp.seconds));
        Ok(())
    }

    /// Whether a process works on the stage `name` now, whose locks lie under `locks`.
    pub fn is_running(name: &str, locks: &Path) -> bool {
        lock::is_held(&lock_path(locks, name, "lock"))
    }

    fn ticker(&self) -> MutexGuard<'_, Option<Ticker>> {
        self.ticker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stage {
    /// An interrupted run adds its time to the stamp.
    fn drop(&mut self) {
        if !self.finished.load(Ordering::SeqCst) {
            *self.ticker() = None;
            // Only the count of seconds is lost if this fails; the running stamp stands.
            let _ = self.ledger.save_progress();
        }
    }
}

/// What a stage's folder holds, seen from its specification.
enum Found {
    Nothing,
    Same(Plan, Box<Stamp>),
    /// Something else; why.
    Other(Vec<String>),
}

fn examine(spec: &StageSpec, dir: &Path) -> Result<Found, StageError> {
    let stamp = match load_stamp(dir) {
        Ok(Some(stamp)) => stamp,
        Ok(None) if is_blank(dir) => return Ok(Found::Nothing),
        Ok(None) => return Ok(Found::Other(vec![format!("it holds files but no {STAMP_FILE}")])),
        Err(e @ StampError::Content { .. }) => return Ok(Found::Other(vec![e.to_string()])),
        Err(e) => return Err(e.into()),
    };
    let mut changes = differences("stage", &json!(stamp.stage), &json!(spec.name));
    changes.extend(differences("settings", &stamp.settings, &spec.settings));
    changes.extend(differences("inputs", &json!(stamp.inputs), &json!(spec.inputs)));
    if !stamp.growable.keys().eq(spec.growable.keys()) {
        changes.extend(differences("amounts", &json!(stamp.growable), &json!(spec.growable)));
    }
    if !changes.is_empty() {
        return Ok(Found::Other(changes));
    }
    let plan = match stamp.status {
        Status::Running => Plan::Resume,
        Status::Done if stamp.holds(&spec.growable) => Plan::Done,
        Status::Done => Plan::Extend,
    };
    for (name, old) in &stamp.growable {
        if plan == Plan::Done
            && let Some(new) = spec.growable.get(name).filter(|new| *new < old)
        {
            say!("{}: holds {old} {name}, more than the {new} asked for; all of them are kept", spec.name);
        }
    }
    Ok(Found::Same(plan, Box::new(stamp)))
}

/// Whether a folder is missing or holds nothing but hidden files (such as a desktop's own) and unfinished ones. A hidden folder
/// is not nothing: finished games may wait in one.
fn is_blank(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(entries) => entries.flatten().all(|entry| {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            name.to_str().is_some_and(|name| (name.starts_with('.') && !is_folder) || files::is_temporary(name))
        }),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

/// Renames the folder to a dated name that is free, and says why.
fn move_aside(stage: &str, dir: &Path, why: &[String]) -> Result<(), StageError> {
    let to = dated_name(dir);
    let fail = |source| StageError::Aside { stage: stage.to_string(), from: dir.to_path_buf(), to: to.clone(), source };
    fs::rename(dir, &to).map_err(fail)?;
    files::sync_folder(files::folder_of(dir)).map_err(fail)?;
    const SHOWN: usize = 6;
    let mut text = why.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if why.len() > SHOWN {
        text.push_str(&format!(" and {} more", why.len() - SHOWN));
    }
    say!("{stage}: starts anew ({text}); the old output was moved to {}", to.display());
    Ok(())
}

/// `<dir>.<date-time>`, with a number behind it if that is taken, as it is when two are made in one second.
pub fn dated_name(dir: &Path) -> PathBuf {
    let mut base = dir.as_os_str().to_owned();
    base.push(format!(".{}", utc_compact()));
    let candidates = (1_u64..).map(|number| {
        let mut name = base.clone();
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    });
    // A dangling link counts as taken too.
    candidates.into_iter().find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| PathBuf::from(&base))
}

/// `locks/<name>.<extension>`, with the name's slashes and other marks replaced: one flat folder of locks.
fn lock_path(locks: &Path, name: &str, extension: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    locks.join(format!("{}.{extension}", name.chars().map(plain).collect::<String>()))
}

/// Takes a lock that others hold for moments only.
fn wait_for(file: &Path, what: &str) -> Result<Lock, LockError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match Lock::acquire(file, WHOLE, what) {
            Err(LockError::Held { .. }) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
