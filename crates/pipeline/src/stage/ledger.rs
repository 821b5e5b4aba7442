//! The stamp of an open stage, and the time in it: saved while the stage runs, so that a kill loses little of the count.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{StageError, wait_for};
use crate::progress;
use crate::stamp::{Stamp, load_stamp, write_stamp};

/// How soon the time is first saved, and how long a kill's loss gets at most: the wait doubles from one to the other.
const SAVES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(20)];

/// Writes the stamp. Each write adds the time since this process's last one to what the file says, because several
/// processes may share a stage.
#[derive(Debug)]
pub(super) struct Ledger {
    dir: PathBuf,
    /// Taken for each write where several processes share the stage.
    guard: Option<PathBuf>,
    /// The stamp of this sitting as it began.
    first: Stamp,
    opened: Instant,
    /// How much of this sitting is in the file.
    saved: Mutex<Duration>,
}

impl Ledger {
    pub(super) fn new(dir: PathBuf, guard: Option<PathBuf>, first: Stamp) -> Self {
        Ledger { dir, guard, first, opened: Instant::now(), saved: Mutex::default() }
    }

    /// Writes the stamp that the sitting begins with. The caller holds the guard.
    pub(super) fn begin(&self) -> Result<(), StageError> {
        Ok(write_stamp(&self.dir, &self.first)?)
    }

    /// Adds the time that has passed, and says how far the stage is.
    pub(super) fn save_progress(&self) -> Result<Stamp, StageError> {
        self.update(|stamp| stamp.progress = progress::latest().or(stamp.progress))
    }

    /// Adds the time that has passed, changes the stamp and writes it.
    pub(super) fn update(&self, change: impl FnOnce(&mut Stamp)) -> Result<Stamp, StageError> {
        let _guard = self.guard.as_ref().map(|file| wait_for(file, &self.first.stage)).transpose()?;
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = self.opened.elapsed();
        // A stamp that somebody removed meanwhile is written again.
        let (mut stamp, counted) = match load_stamp(&self.dir) {
            Ok(Some(stamp)) => (stamp, *saved),
            _ => (self.first.clone(), Duration::ZERO),
        };
        stamp.seconds += elapsed.saturating_sub(counted).as_secs_f64();
        change(&mut stamp);
        write_stamp(&self.dir, &stamp)?;
        *saved = elapsed;
        Ok(stamp)
    }
}

/// Saves the time every now and then, until dropped.
#[derive(Debug)]
pub(super) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(ledger: Arc<Ledger>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let save = move || {
            let [mut wait, longest] = SAVES;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                // A failure costs only the count; the stage's own writes will tell of a full disk.
                let _ = ledger.save_progress();
                wait = (wait * 2).min(longest);
            }
        };
        // Without a thread the time is still saved at the end.
        let thread = thread::Builder::new().name("stage time".to_owned()).spawn(save).ok();
        Ticker { stop: Some(stop), thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
