//! The shards of a loader's sources, found and verified once for all epochs.

use super::{LoaderSpec, Source};
use crate::{Dataset, DatasetError, OnBad};

/// The verified shards behind a [`LoaderSpec`]: for every loader whose spec names the same sources.
#[derive(Clone, Debug)]
pub struct Sources {
    sources: Vec<Source>,
    on_bad: OnBad,
    data: Vec<Dataset>,
    warnings: Vec<String>,
}

impl LoaderSpec {
    /// Lists and verifies the shards of the sources; each file is read once and hashed.
    ///
    /// # Errors
    /// [`DatasetError::Setting`] for settings that cannot be, and errors of [`Dataset::open`].
    pub fn open(&self) -> Result<Sources, DatasetError> {
        self.validate()?;
        let (mut data, mut warnings) = (Vec::new(), Vec::new());
        for source in &self.sources {
            let all = Dataset::open(&source.dirs, self.on_bad)?;
            warnings.extend_from_slice(all.warnings());
            data.push(match source.newest_positions {
                Some(limit) => all.newest(limit),
                None => all,
            });
        }
        Ok(Sources { sources: self.sources.clone(), on_bad: self.on_bad, data, warnings })
    }
}

impl Sources {
    /// The data of each source of a spec.
    pub(super) fn of(&self, spec: &LoaderSpec) -> Result<&[Dataset], DatasetError> {
        spec.validate()?;
        if (&spec.sources, spec.on_bad) != (&self.sources, self.on_bad) {
            let reason = "are not those that were opened: open those of this spec".to_owned();
            return Err(DatasetError::Setting { field: "sources", reason });
        }
        Ok(&self.data)
    }

    /// The files that were left out, one line each.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A hash of the content of all sources.
    pub(super) fn fingerprint(&self) -> String {
        let each: Vec<String> = self.data.iter().map(Dataset::fingerprint).collect();
        blake3::hash(each.join("\n").as_bytes()).to_hex().to_string()
    }
}
