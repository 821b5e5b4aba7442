//! Files written whole or not at all on a local disk.
//!
//! A file is written under a temporary name beside its own, synced, renamed, and its folder synced, so that after a
//! kill or a power cut the name holds the old content or the new, never a part. The temporary name ends in `#` and
//! digits: object_store keeps such names out of its listings, and no glob over an extension matches them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Replaces the content of `path` by `bytes`, durably; creates missing folders. On an error the old content stands.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    create_folders(folder)?;
    let (mut file, temporary) = create_temporary(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    drop(file);
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    if renamed.is_err() {
        // The first error is the one worth reporting; a leftover is swept by the next run.
        let _ = fs::remove_file(&temporary);
    }
    renamed?;
    sync_folder(folder)
}

fn create_temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("#{}{:06}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed) % 1_000_000));
        let temporary = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            // A leftover of a process that once had this id: take the next number.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// The folder that holds `path`; `.` for a bare name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a folder and those above it, and makes their names durable.
pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    if above != folder {
        create_folders(above)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(above),
        Err(_) if folder.is_dir() => Ok(()),
        Err(e) => Err(e),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network and FUSE file systems cannot sync a folder; their renames are as durable as they get.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

/// Whether a file name is one of [`write_whole`]'s temporary names.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.rsplit_once('#').is_some_and(|(_, tail)| !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_digit()))
}

/// Deletes temporary files that killed writers left anywhere under `folder`. Only for the one who holds its lock.
pub(crate) fn sweep_temporaries(folder: &Path) {
    for entry in walkdir::WalkDir::new(folder).into_iter().flatten() {
        if entry.file_type().is_file() && entry.file_name().to_str().is_some_and(is_temporary) {
            // A leftover costs space and nothing else: not worth failing over.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_and_leaves_no_temporaries() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file.json");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn d2_failed_write_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"x").unwrap();
        // A file cannot replace a full folder: the rename fails after the temporary was written.
        assert!(write_whole(&path, b"new").is_err());
        assert_eq!(fs::read(path.join("inside")).unwrap(), b"x");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn sweeps_only_temporaries() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["stage.json#12000001", "shard#x1", "plain", "c#"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        sweep_temporaries(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["c#", "plain", "shard#x1"]);
    }
}
