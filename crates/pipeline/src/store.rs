//! The one way to datasets and checkpoints: named byte strings under a root, over object_store, so that a bucket can
//! stand where a folder does.
//!
//! There are no appends and no renames, because a bucket has none. A name holds a whole object or nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::TryStreamExt;
use futures::executor::block_on;
use nix::unistd::{AccessFlags, access};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::files;

/// What went wrong with stored data. Every variant names the object by [`Store::describe`].
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such object.
    #[error("{path}: not found")]
    NotFound {
        /// The object.
        path: String,
    },
    /// The root of a store cannot be used.
    #[error("cannot use {path} as a data folder: {why}")]
    Root {
        /// The folder.
        path: String,
        /// What was expected, and what to do.
        why: String,
    },
    /// The name of an object is not a relative path of plain parts.
    #[error("bad object name {path:?}: {why}")]
    Name {
        /// As given.
        path: String,
        /// What was expected.
        why: String,
    },
    /// A file could not be written; what it held before stands.
    #[error("cannot write {path}: {source}{}", advice(.source))]
    Write {
        /// The object.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Any other failure of the storage.
    #[error("cannot {action} {path}: {source}")]
    Backend {
        /// `read`, `list` and so on.
        action: &'static str,
        /// The object.
        path: String,
        /// Why.
        #[source]
        source: object_store::Error,
    },
}

fn advice(source: &io::Error) -> &'static str {
    if source.kind() == io::ErrorKind::StorageFull { "; free some space and run again" } else { "" }
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, relative to the store that was listed, parts separated by `/`.
    pub path: String,
    /// The size.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
enum Backend {
    Local { root: PathBuf, objects: Arc<LocalFileSystem> },
    Memory(Arc<InMemory>),
}

/// A place for named byte strings. Clones and children share it.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Backend,
    /// Empty, or parts that end in no `/`.
    prefix: String,
}

impl Store {
    /// Opens a folder for reading and writing, and creates it if need be.
    ///
    /// # Errors
    /// [`StoreError::Root`] when the path is a file, cannot be created, or is read-only.
    pub fn open(root: impl AsRef<Path>) -> Result<Store, StoreError> {
        let root = root.as_ref();
        let fail = |why: String| StoreError::Root { path: root.display().to_string(), why };
        if root.exists() && !root.is_dir() {
            return Err(fail("it is a file; name a folder".to_string()));
        }
        files::create_folders(root).map_err(|e| fail(format!("cannot create it: {e}")))?;
        access(root, AccessFlags::W_OK | AccessFlags::X_OK)
            .map_err(|e| fail(format!("it is not writable ({}); check its owner and mode", e.desc())))?;
        Store::open_existing(root)
    }

    /// Opens a folder that is there already, for readers: it may be read-only.
    ///
    /// # Errors
    /// [`StoreError::Root`] when there is no such folder.
    pub fn open_existing(root: impl AsRef<Path>) -> Result<Store, StoreError> {
        let root = root.as_ref();
        let fail = |why: String| StoreError::Root { path: root.display().to_string(), why };
        if !root.is_dir() {
            return Err(fail(if root.exists() { "it is a file; name a folder" } else { "no such folder" }.to_string()));
        }
        let objects = LocalFileSystem::new_with_prefix(root).map_err(|e| fail(e.to_string()))?;
        let backend = Backend::Local { root: root.to_path_buf(), objects: Arc::new(objects) };
        Ok(Store { backend, prefix: String::new() })
    }

    /// An empty store in memory, for tests.
    pub fn memory() -> Store {
        Store { backend: Backend::Memory(Arc::new(InMemory::new())), prefix: String::new() }
    }

    /// Stores `bytes` under a name, whole or not at all, replacing what it held; durable on return.
    ///
    /// # Errors
    /// [`StoreError::Write`] (a full disk, a lost right); what the name held before still stands.
    pub fn put(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let key = self.key(path)?;
        match &self.backend {
            // object_store 0.13 renames but does not sync, and a crash could then leave an empty file of the right
            // name; the write is ours for that reason alone.
            Backend::Local { root, .. } => files::write_whole(&root.join(key.as_ref()), bytes)
                .map_err(|source| StoreError::Write { path: self.describe(path), source }),
            Backend::Memory(objects) => block_on(objects.put(&key, PutPayload::from(bytes.to_vec())))
                .map(drop)
                .map_err(|e| self.backend_error("write", path, e)),
        }
    }

    /// The bytes under a name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there are none.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let key = self.key(path)?;
        block_on(async { self.objects().get(&key).await?.bytes().await })
            .map(|bytes| bytes.to_vec())
            .map_err(|e| self.backend_error("read", path, e))
    }

    /// Whether a name holds something.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the storage cannot tell.
    pub fn exists(&self, path: &str) -> Result<bool, StoreError> {
        let key = self.key(path)?;
        match block_on(self.objects().head(&key)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(self.backend_error("look up", path, e)),
        }
    }

    /// All objects under a folder-like prefix (empty for everything), at any depth, sorted by name. What is being
    /// written is not listed. A prefix with nothing under it gives an empty list.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when a folder cannot be read.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>, StoreError> {
        let full = self.full(prefix.trim_end_matches('/'));
        let key = if full.is_empty() { None } else { Some(self.parse(prefix, &full)?) };
        let found: Vec<_> = block_on(self.objects().list(key.as_ref()).try_collect())
            .map_err(|e| self.backend_error("list", prefix, e))?;
        let skip = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let mut entries: Vec<Entry> = found
            .into_iter()
            .filter_map(|meta| {
                let path = meta.location.as_ref().get(skip..)?.to_string();
                Some(Entry { path, bytes: meta.size })
            })
            .collect();
        entries.sort();
        Ok(entries)
    }

    /// Removes an object; one that is not there is removed already.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when it stays.
    pub fn delete(&self, path: &str) -> Result<(), StoreError> {
        let key = self.key(path)?;
        match block_on(self.objects().delete(&key)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.backend_error("delete", path, e)),
        }
    }

    /// The part of this store whose names begin with `prefix/`. Nothing is created.
    pub fn child(&self, prefix: &str) -> Store {
        Store { backend: self.backend.clone(), prefix: self.full(prefix.trim_matches('/')) }
    }

    /// The file behind a name, for readers that need one; none when the store is not on a local disk. An empty name
    /// gives the folder of the store.
    pub fn local(&self, path: &str) -> Option<PathBuf> {
        match &self.backend {
            Backend::Local { root, .. } => match self.full(path) {
                full if full.is_empty() => Some(root.clone()),
                full => Some(root.join(full)),
            },
            Backend::Memory(_) => None,
        }
    }

    /// How to name an object in a message.
    pub fn describe(&self, path: &str) -> String {
        match self.local(path) {
            Some(file) => file.display().to_string(),
            None => format!("memory:{}", self.full(path)),
        }
    }

    fn objects(&self) -> &dyn ObjectStore {
        match &self.backend {
            Backend::Local { objects, .. } => objects.as_ref(),
            Backend::Memory(objects) => objects.as_ref(),
        }
    }

    fn full(&self, path: &str) -> String {
        match (self.prefix.as_str(), path) {
            ("", path) => path.to_string(),
            (prefix, "") => prefix.to_string(),
            (prefix, path) => format!("{prefix}/{path}"),
        }
    }

    fn key(&self, path: &str) -> Result<Key, StoreError> {
        let bad = |why: &str| Err(StoreError::Name { path: path.to_string(), why: why.to_string() });
        if path.is_empty() || path.starts_with('/') || path.ends_with('/') {
            return bad("expected a relative path of a file, such as shard-00042.parquet");
        }
        if files::is_temporary(path) {
            return bad("a name that ends in # and digits is kept for files being written");
        }
        self.parse(path, &self.full(path))
    }

    fn parse(&self, given: &str, full: &str) -> Result<Key, StoreError> {
        Key::parse(full).map_err(|e| StoreError::Name { path: given.to_string(), why: e.to_string() })
    }

    fn backend_error(&self, action: &'static str, path: &str, source: object_store::Error) -> StoreError {
        match source {
            object_store::Error::NotFound { .. } => StoreError::NotFound { path: self.describe(path) },
            source => StoreError::Backend { action, path: self.describe(path), source },
        }
    }
}

#[cfg(test)]
mod tests;
