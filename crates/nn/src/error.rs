//! What can go wrong with networks, training and checkpoints.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum NnError {
    /// A tensor operation failed.
    #[error("tensor operation failed: {0}")]
    Candle(#[from] candle_core::Error),
    /// Reading or writing a file of a checkpoint failed.
    #[error(transparent)]
    Store(#[from] pipeline::StoreError),
    /// The wished device cannot be used.
    #[error("device `{name}`: {reason}")]
    Device {
        /// As it was asked for.
        name: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The numbers of an architecture do not make a network.
    #[error("architecture: {0}")]
    Architecture(String),
    /// A batch contradicts itself or the network.
    #[error("batch: {0}")]
    Batch(String),
    /// More positions than the executor has room for.
    #[error("{rows} positions in one batch, but the executor was made for at most {max}")]
    BatchTooLarge {
        /// Positions given.
        rows: usize,
        /// Room.
        max: usize,
    },
    /// Training ran away; the weights are still those of the step before.
    #[error(
        "{what} is {value} at step {step}: training stopped with the weights unchanged; lower the learning rate or look at the data"
    )]
    NonFinite {
        /// Which number.
        what: &'static str,
        /// The step that was being made.
        step: u64,
        /// The number.
        value: f64,
    },
    /// A file does not hold the tensors that the architecture has.
    #[error("{file}: {}", problems.join("; "))]
    Tensors {
        /// The file.
        file: String,
        /// One entry a tensor: missing, extra, or of another shape.
        problems: Vec<String>,
    },
    /// A file is no safetensors file of this program.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The checkpoint is of another network.
    #[error("{place} holds the architecture {found}, but {expected} is asked for; {remedy}")]
    Foreign {
        /// The folder or file.
        place: String,
        /// Asked for.
        expected: String,
        /// Found.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// No whole checkpoint is there.
    #[error("{place} holds no whole checkpoint: {reason}")]
    NotWhole {
        /// The folder.
        place: String,
        /// What is missing.
        reason: String,
    },
}
