//! What goes wrong with an engine, told so that a reader of a log knows which engine, when, and what to do.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use games::Termination;
use nix::sys::signal::Signal;

use crate::{Limit, OptionFault};

/// What the client was doing with the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// `uci` was sent.
    UciOk,
    /// `isready` was sent.
    ReadyOk,
    /// `go` was sent.
    BestMove,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::UciOk => "waiting for `uciok`",
            Phase::ReadyOk => "waiting for `readyok`",
            Phase::BestMove => "waiting for `bestmove`",
        })
    }
}

/// How an engine process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It closed its output but ran on, and was killed.
    Closed,
    /// The client killed it, since it did not answer.
    Killed,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Closed,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exit::Code(code) => write!(f, "exited with status {code}"),
            Exit::Signal(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "was ended by signal {number} ({signal})"),
                Err(_) => write!(f, "was ended by signal {number}"),
            },
            Exit::Closed => f.write_str("closed its output"),
            Exit::Killed => f.write_str("was killed because it did not answer"),
        }
    }
}

/// Why an engine could not be used, or did not give a move.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No executable file was found.
    #[error(
        "no engine `{configured}` was found; looked at {looked}. Install Stockfish (`apt install stockfish`, \
         `brew install stockfish`), build our own (`make build`), or give the path of an executable in the config"
    )]
    NotFound {
        /// What the config says.
        configured: String,
        /// The paths that were tried.
        looked: String,
    },
    /// The operating system did not start it.
    #[error("cannot start the engine `{path}`: {reason}; check that the file is executable and built for this machine")]
    Spawn {
        /// The executable.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// An option was refused before it was sent.
    #[error("the engine `{path}` cannot be set up: {fault}")]
    Option {
        /// The executable.
        path: PathBuf,
        /// What is wrong.
        fault: OptionFault,
    },
    /// The engine lives but did not answer in time; it has been killed.
    #[error("the engine `{path}` did not answer for {after:?} while {phase}, and was killed{}", told(.last_words))]
    Stall {
        /// The executable.
        path: PathBuf,
        /// What was waited for.
        phase: Phase,
        /// How long.
        after: Duration,
        /// The end of its stderr, and its last `info string` lines and lines outside of the protocol.
        last_words: String,
    },
    /// The engine is gone.
    #[error("the engine `{path}` {exit} while {phase}{}", told(.last_words))]
    Disconnect {
        /// The executable.
        path: PathBuf,
        /// What was waited for.
        phase: Phase,
        /// How it ended.
        exit: Exit,
        /// The end of its stderr, and its last `info string` lines and lines outside of the protocol.
        last_words: String,
    },
    /// The engine answered with something that is not a legal move.
    #[error("the engine `{path}` answered `{text}`, which is not a legal move in `{fen}`")]
    IllegalMove {
        /// The executable.
        path: PathBuf,
        /// The answer.
        text: String,
        /// The position.
        fen: String,
    },
    /// The engine answered, but after its time.
    #[error("the engine `{path}` answered after {taken:?}, {limit} and a margin of {margin:?} were allowed")]
    Late {
        /// The executable.
        path: PathBuf,
        /// The limit.
        limit: Limit,
        /// The time that the answer took.
        taken: Duration,
        /// What was allowed on top of the limit.
        margin: Duration,
    },
    /// A move was asked for where there is none. The engine was not asked.
    #[error("there is no legal move in `{fen}`, so no engine can be asked for one")]
    NoMove {
        /// The position.
        fen: String,
    },
    /// A limit that allows nothing.
    #[error("the limit {0} allows nothing; it must be at least 1")]
    ZeroLimit(Limit),
    /// The wait was interrupted from outside.
    #[error("interrupted while {0}")]
    Interrupted(Phase),
    /// The engine failed again and again.
    #[error("the engine `{path}` failed {failures} times in a row and was given up; the last time: {last}")]
    GaveUp {
        /// The executable.
        path: PathBuf,
        /// Failures in a row.
        failures: u32,
        /// The last failure.
        last: Box<EngineError>,
    },
}

fn told(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; its last words: {last_words}") }
}

impl EngineError {
    /// How a game ends in which a player failed so: a loss by `stall`, `disconnect`, `illegal_move` or `time`.
    ///
    /// `None` if the error is not the fault of a player's move: the job should stop.
    pub fn termination(&self) -> Option<Termination> {
        match self {
            EngineError::Stall { .. } => Some(Termination::Stall),
            EngineError::Disconnect { .. } => Some(Termination::Disconnect),
            EngineError::IllegalMove { .. } => Some(Termination::IllegalMove),
            EngineError::Late { .. } => Some(Termination::Time),
            EngineError::GaveUp { .. }
            | EngineError::NotFound { .. }
            | EngineError::Spawn { .. }
            | EngineError::Option { .. }
            | EngineError::NoMove { .. }
            | EngineError::ZeroLimit(_)
            | EngineError::Interrupted(_) => None,
        }
    }

    /// Whether the wait was interrupted from outside.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, EngineError::Interrupted(_))
    }

    /// Whether a new process of the same engine could do better.
    pub fn is_transient(&self) -> bool {
        match self {
            // Too many processes or too little memory passes; a missing or foreign executable does not.
            EngineError::Spawn { reason, .. } => {
                use std::io::ErrorKind::{ArgumentListTooLong, InvalidInput, NotFound, PermissionDenied};
                let lasting = [ArgumentListTooLong, InvalidInput, NotFound, PermissionDenied];
                !lasting.contains(&reason.kind()) && reason.raw_os_error() != Some(nix::libc::ENOEXEC)
            }
            other => other.termination().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_engine_the_phase_and_the_end() {
        let error = EngineError::Disconnect {
            path: "/opt/engine".into(),
            phase: Phase::UciOk,
            exit: Exit::Signal(11),
            last_words: "out of cheese".to_owned(),
        };
        let text = error.to_string();
        for part in ["/opt/engine", "waiting for `uciok`", "SIGSEGV", "out of cheese"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(error.termination(), Some(Termination::Disconnect));
        assert!(!EngineError::ZeroLimit(Limit::Nodes(0)).is_transient());
        assert!(size_of::<EngineError>() <= 120, "results stay cheap to pass: {}", size_of::<EngineError>());
    }
}
