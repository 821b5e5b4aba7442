//! Locks of the operating system (POSIX record locks), on ranges of a lock file. They die with their process, however
//! it ends, and work on network file systems.
//!
//! A unit of the range is whatever the caller counts, such as shards, so that several processes can write one
//! dataset; [`WHOLE`] covers all. The content of the lock file is never used. Who holds a range is written in a
//! `.holder` note beside the file, for messages only: the lock itself is the kernel's.
//!
//! POSIX gives two rules to live with. Locks belong to the process, so it never conflicts with itself: a registry of
//! held ranges adds that. And closing *any* descriptor of the file drops all of the process's locks on it: the
//! registry therefore keeps exactly one descriptor per file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::clock::{host_name, utc_now};
use crate::files;

/// The range that overlaps every other.
pub const WHOLE: Range<u64> = 0..u64::MAX / 2;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Someone else has it.
    #[error("{what} is in use by {holder}; wait for it to end or stop it, then run this again")]
    Held {
        /// What was to be locked.
        what: String,
        /// Process, command and since when.
        holder: String,
    },
    /// The range is empty or too large.
    #[error("cannot lock {what}: {range:?} is no range of 0..{}", WHOLE.end)]
    Range {
        /// What was to be locked.
        what: String,
        /// As given.
        range: Range<u64>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {what} through {}: {source}", .path.display())]
    Io {
        /// What was to be locked.
        what: String,
        /// The lock file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A held range of a lock file; released when dropped.
#[derive(Debug)]
pub struct Lock {
    file: FileId,
    range: Range<u64>,
    note: PathBuf,
}

impl Lock {
    /// Takes `range` of the lock file `file` (created if need be), or says at once who has it. `what` names the thing
    /// locked in messages.
    ///
    /// # Errors
    /// [`LockError::Held`] when any part of the range is held by another process or by this one.
    pub fn acquire(file: &Path, range: Range<u64>, what: &str) -> Result<Lock, LockError> {
        if range.is_empty() || range.end > WHOLE.end {
            return Err(LockError::Range { what: what.to_string(), range });
        }
        let io_error = |source| LockError::Io { what: what.to_string(), path: file.to_path_buf(), source };
        let held = |holder| LockError::Held { what: what.to_string(), holder };

        files::create_folders(files::folder_of(file)).map_err(io_error)?;
        let mut registry = registry();
        loop {
            let index = registry.open(file).map_err(io_error)?;
            let entry = &mut registry.files[index];
            if let Some(other) = entry.held.iter().find(|held| overlap(&held.range, &range)) {
                return Err(held(format!("this process ({}), since {}", std::process::id(), other.since)));
            }
            let set = set_lock(&entry.file, &range, libc::F_WRLCK);
            // A lock on a file that was deleted meanwhile excludes nobody: start again on the file that is there now.
            if set.is_ok() && FileId::of_path(file).map_err(io_error)? != Some(entry.id) {
                set_lock(&entry.file, &range, libc::F_UNLCK).map_err(|e| io_error(e.into()))?;
                registry.close_unused(index);
                continue;
            }
            match set {
                Ok(()) => {
                    let note = Note::new(&range, what);
                    entry.held.push(Held { range: range.clone(), since: note.since.clone() });
                    let id = entry.id;
                    drop(registry);
                    return Ok(Lock { file: id, note: note.publish(file, &range), range });
                }
                Err(Errno::EACCES | Errno::EAGAIN) => {
                    let pid = blocking_process(&entry.file, &range).map_err(|e| io_error(e.into()))?;
                    registry.close_unused(index);
                    match pid {
                        Some(pid) => return Err(held(describe_holder(file, &range, pid))),
                        // It was released between the two calls.
                        None => continue,
                    }
                }
                Err(Errno::EINTR) => registry.close_unused(index),
                Err(e) => {
                    registry.close_unused(index);
                    return Err(io_error(e.into()));
                }
            }
        }
    }
}

/// Whether another process holds any part of a lock file, which need not be there.
pub(crate) fn is_held(file: &Path) -> bool {
    let Ok(file) = File::open(file) else { return false };
    blocking_process(&file, &WHOLE).is_ok_and(|process| process.is_some())
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut registry = registry();
        // The note goes first: after the unlock it could be the next holder's.
        let _ = fs::remove_file(&self.note);
        if let Some(index) = registry.files.iter().position(|entry| entry.id == self.file) {
            let entry = &mut registry.files[index];
            entry.held.retain(|held| held.range != self.range);
            // Unlocking fails only on a descriptor that is gone, and with it the lock.
            let _ = set_lock(&entry.file, &self.range, libc::F_UNLCK);
            registry.close_unused(index);
        }
    }
}

/// The lock files that this process has open.
struct Registry {
    files: Vec<LockFile>,
}

struct LockFile {
    id: FileId,
    file: File,
    held: Vec<Held>,
}

struct Held {
    range: Range<u64>,
    since: String,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { files: Vec::new() });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// The index of the open file that `path` names now. Looks before it opens: a second descriptor could not be
    /// closed again without losing the locks taken through the first.
    fn open(&mut self, path: &Path) -> io::Result<usize> {
        if let Some(id) = FileId::of_path(path)?
            && let Some(index) = self.files.iter().position(|entry| entry.id == id)
        {
            return Ok(index);
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let id = FileId::of(&file.metadata()?);
        self.files.push(LockFile { id, file, held: Vec::new() });
        Ok(self.files.len() - 1)
    }

    /// Closes a file through which nothing is held.
    fn close_unused(&mut self, index: usize) {
        if self.files[index].held.is_empty() {
            self.files.swap_remove(index);
        }
    }
}

/// What a path names, beyond spelling and links: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(metadata: &fs::Metadata) -> FileId {
        FileId(metadata.dev(), metadata.ino())
    }

    fn of_path(path: &Path) -> io::Result<Option<FileId>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(FileId::of(&metadata))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn record(range: &Range<u64>, kind: libc::c_int) -> libc::flock {
    // Ranges were checked to fit the kernel's signed offsets.
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: range.start as libc::off_t,
        l_len: (range.end - range.start) as libc::off_t,
        l_pid: 0,
    }
}

fn set_lock(file: &File, range: &Range<u64>, kind: libc::c_int) -> Result<(), Errno> {
    fcntl(file, FcntlArg::F_SETLK(&record(range, kind))).map(drop)
}

/// The process that holds some of the range; 0 when the kernel cannot tell (another machine's), none when free.
fn blocking_process(file: &File, range: &Range<u64>) -> Result<Option<i32>, Errno> {
    let mut query = record(range, libc::F_WRLCK);
    fcntl(file, FcntlArg::F_GETLK(&mut query))?;
    let free = libc::c_int::from(query.l_type) == libc::F_UNLCK;
    Ok((!free).then_some(query.l_pid.max(0)))
}

/// What a holder writes about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    pid: u32,
    host: String,
    command: String,
    what: String,
    since: String,
    start: u64,
    end: u64,
}

impl Note {
    fn new(range: &Range<u64>, what: &str) -> Note {
        let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Note {
            pid: std::process::id(),
            host: host_name(),
            command: words.join(" "),
            what: what.to_string(),
            since: utc_now(),
            start: range.start,
            end: range.end,
        }
    }

    /// Writes the note of a range just taken, and clears those that killed holders of it left.
    fn publish(&self, lock: &Path, range: &Range<u64>) -> PathBuf {
        for (path, note) in notes(lock) {
            if overlap(&(note.start..note.end), range) {
                let _ = fs::remove_file(path);
            }
        }
        let suffix =
            if *range == WHOLE { ".holder".to_string() } else { format!(".{}-{}.holder", range.start, range.end) };
        let mut path = lock.as_os_str().to_owned();
        path.push(suffix);
        let path = PathBuf::from(path);
        // The note only improves a message: on a full disk the lock holds without it.
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = files::write_whole(&path, &text);
        }
        path
    }
}

/// All readable notes beside a lock file.
fn notes(lock: &Path) -> Vec<(PathBuf, Note)> {
    let Some(name) = lock.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(files::folder_of(lock)) else { return Vec::new() };
    let prefix = format!("{name}.");
    entries
        .flatten()
        .filter(|e| e.file_name().to_str().is_some_and(|n| n.starts_with(&prefix) && n.ends_with(".holder")))
        .filter_map(|e| Some((e.path(), serde_json::from_slice(&fs::read(e.path()).ok()?).ok()?)))
        .collect()
}

/// Names the holder: from its note if it fits what the kernel says, else from the kernel alone.
fn describe_holder(lock: &Path, range: &Range<u64>, pid: i32) -> String {
    let fits =
        |note: &Note| overlap(&(note.start..note.end), range) && (pid == 0 || i64::from(note.pid) == i64::from(pid));
    match notes(lock).into_iter().map(|(_, note)| note).find(fits) {
        Some(note) => {
            let host = if note.host == host_name() { String::new() } else { format!(" on {}", note.host) };
            format!("process {}{host} (`{}`), since {}", note.pid, note.command, note.since)
        }
        None if pid == 0 => "a process on another machine".to_string(),
        None => match fs::read(format!("/proc/{pid}/cmdline")) {
            Ok(words) => {
                let command = String::from_utf8_lossy(&words).replace('\0', " ");
                format!("process {pid} (`{}`)", command.trim())
            }
            Err(_) => format!("process {pid}"),
        },
    }
}

#[cfg(test)]
mod tests;
