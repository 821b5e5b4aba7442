//! Why the engine cannot go on.

use std::io;
use std::path::PathBuf;

use search::SearchError;

/// Why a network could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no checkpoint.
    #[error(
        "there is no network in {}: make one with `make corpus pretrain PROFILE=cpu` and start with `--network \
         data/cpu/pretrain`, or set the option NetworkFile to a checkpoint folder", .0.display()
    )]
    Absent(PathBuf),
    /// The checkpoint cannot be read, or belongs to another game.
    #[error("cannot use the network in {}", folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: Box<nn::NnError>,
    },
    /// Its answers do not fit into the memory.
    #[error("the option Hash is too large")]
    Memory(#[source] SearchError),
}

/// Why the engine ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// It has no network to play with.
    #[error(transparent)]
    Network(#[from] LoadError),
    /// The network failed in a search.
    #[error("the search failed")]
    Search(#[from] SearchError),
    /// The input cannot be read at all.
    #[error("cannot read commands")]
    Input(#[source] io::Error),
    /// Nobody takes the answers.
    #[error("cannot write answers")]
    Output(#[source] io::Error),
}
