//! Why the engine cannot go on.

use std::io;

/// Why the engine ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The input cannot be read at all.
    #[error("cannot read commands")]
    Input(#[source] io::Error),
    /// Nobody takes the answers.
    #[error("cannot write answers")]
    Output(#[source] io::Error),
}
