//! What can go wrong in a search, in the service and in a player.

use std::any::Any;
use std::sync::Arc;

use games::Termination;

/// Why a search or an evaluation failed. Cheap to clone: every client of a failed service receives it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SearchError {
    /// A setting is out of its range.
    #[error("the setting `{field}` is {got}, but must be {expected}")]
    Config {
        /// The setting.
        field: &'static str,
        /// The range in words.
        expected: &'static str,
        /// The value.
        got: String,
    },
    /// A number among the settings is out of its range, or not a number.
    #[error("the setting `{field}` is {got}, but must be from {low} to {high}")]
    Range {
        /// The setting.
        field: &'static str,
        /// The least value allowed.
        low: f32,
        /// The greatest value allowed.
        high: f32,
        /// The value.
        got: f32,
    },
    /// The cache of evaluations does not fit into the memory.
    #[error("there is no memory for a cache of {entries} evaluations: make it smaller")]
    Memory {
        /// How many it should hold.
        entries: usize,
    },
    /// An evaluation is not a number.
    #[error("an evaluation has {what}; the network's weights are broken: go back to an earlier checkpoint")]
    NotFinite {
        /// What is wrong with it.
        what: &'static str,
    },
    /// An evaluator did not answer what it was asked.
    #[error("an evaluator gave {got} {what} where {expected} were asked for")]
    AnswerCount {
        /// Answers or priors.
        what: &'static str,
        /// How many were asked for.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// A policy index lies outside the network's policy.
    #[error("policy index {index} is outside the network's {actions} actions: the network belongs to another game")]
    Actions {
        /// The index asked for.
        index: u16,
        /// Length of the policy.
        actions: usize,
    },
    /// The network failed.
    #[error("the network could not evaluate a batch")]
    Network(#[source] Arc<nn::NnError>),
    /// An executor thread of the service died.
    #[error("inference executor {executor} died: {reason}")]
    Executor {
        /// Its number.
        executor: usize,
        /// The panic's message, or why it could not start.
        reason: String,
    },
    /// A worker thread that the service serves died or gave up.
    #[error("a worker of the inference service stopped: {reason}")]
    Worker {
        /// Its error, or the panic's message.
        reason: String,
    },
    /// The service was shut down.
    #[error("the inference service has been shut down")]
    Stopped,
    /// A move that the search was told of is not legal at its root.
    #[error("the move `{text}` is not legal in `{fen}`, the root of the search")]
    IllegalMove {
        /// The move.
        text: String,
        /// The root.
        fen: String,
    },
    /// The root has no legal move.
    #[error("there is no legal move in `{fen}`: the game is over")]
    NoMoves {
        /// The root.
        fen: String,
    },
    /// The root cannot change while evaluations are outstanding.
    #[error("{0} evaluations are outstanding: apply them before the search goes on to another root")]
    Pending(usize),
}

impl From<nn::NnError> for SearchError {
    fn from(error: nn::NnError) -> Self {
        SearchError::Network(Arc::new(error))
    }
}

/// Why a player gave no move.
#[derive(Debug, thiserror::Error)]
pub enum PlayerError {
    /// The player lost this game by its own fault, and can play the next one.
    #[error("{name} forfeits ({}): {reason}", termination.as_str())]
    Forfeit {
        /// The player.
        name: String,
        /// Stall, disconnect, illegal move or time.
        termination: Termination,
        /// The engine's error in full.
        reason: String,
    },
    /// The engine cannot be used any more, or the wait for it was interrupted.
    #[error("the engine cannot go on")]
    Engine(#[from] uci::EngineError),
    /// The search failed.
    #[error("the search failed")]
    Search(#[from] SearchError),
    /// The player knows another game.
    #[error("{player} does not play {game}: name another player")]
    OtherGame {
        /// The player.
        player: String,
        /// The game of the match.
        game: &'static str,
    },
}

impl PlayerError {
    /// How the game ends by this error; `None` if the match cannot go on.
    pub fn termination(&self) -> Option<Termination> {
        match self {
            PlayerError::Forfeit { termination, .. } => Some(*termination),
            PlayerError::Engine(_) | PlayerError::Search(_) | PlayerError::OtherGame { .. } => None,
        }
    }
}

/// An error with all its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The message of a caught panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}
