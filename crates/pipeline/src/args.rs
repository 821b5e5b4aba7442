//! The two command-line options that every job shares, so that each job flattens them instead of spelling them out.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

use crate::config::{ConfigError, load_config};

/// `--config FILE` and any number of `--set KEY=VALUE`.
#[derive(clap::Args, Debug, Clone)]
pub struct ConfigArgs {
    /// The profile to run (a TOML file with a table per stage)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Override one setting, for example `--set corpus.games=1000`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ConfigArgs {
    /// Reads the configuration with the overrides applied.
    ///
    /// # Errors
    /// As [`load_config`].
    pub fn load<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        load_config(&self.config, &self.set)
    }
}
