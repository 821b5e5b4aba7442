//! What is needed to start an engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long the client waits. None of these is a limit of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadlines {
    /// From the start of the process to `uciok`.
    pub start: Duration,
    /// From `isready` to `readyok`: options and a new game, which may clear a large hash table.
    pub ready: Duration,
    /// From `go` to `bestmove`, on top of the move time where that is the limit. Then the engine counts as stalled.
    pub answer: Duration,
    /// From `quit` to the end of the process. Then it is killed.
    pub quit: Duration,
    /// With a move time: an answer later than this after it is too late, even if the move is legal.
    pub margin: Duration,
}

impl Deadlines {
    /// Deadlines for an engine that takes so long for an answer; it may take as long to load what its options name.
    pub fn of_answer(answer: Duration) -> Self {
        let usual = Deadlines::default();
        Deadlines { ready: usual.ready.max(answer), answer, ..usual }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            start: Duration::from_secs(10),
            ready: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            quit: Duration::from_secs(1),
            margin: Duration::from_millis(500),
        }
    }
}

/// An engine and its settings.
#[derive(Clone, Debug)]
pub struct EngineSpec {
    /// The executable, as [`find_engine`](crate::find_engine) gives it.
    pub path: PathBuf,
    /// Its command-line arguments.
    pub args: Vec<String>,
    /// The folder that it runs in; that of this program if absent. Relative paths in the arguments and options are
    /// then seen from there.
    pub folder: Option<PathBuf>,
    /// UCI options, set in this order and checked against what the engine declares.
    pub options: Vec<(String, String)>,
    /// UCI options that are set before those, but only where the engine declares them and `options` does not have them:
    /// what the program would like, as opposed to what its user asks for.
    pub defaults: Vec<(String, String)>,
    /// How long to wait.
    pub deadlines: Deadlines,
    /// When it becomes true, every wait ends within 100 ms.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl EngineSpec {
    /// An engine without arguments or options, with the default deadlines.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        EngineSpec {
            path: path.into(),
            args: Vec::new(),
            folder: None,
            options: Vec::new(),
            defaults: Vec::new(),
            deadlines: Deadlines::default(),
            interrupt: None,
        }
    }

    /// Adds a UCI option.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a UCI option that is set only where the engine declares it.
    #[must_use]
    pub fn default_option(mut self, name: &str, value: &str) -> Self {
        self.defaults.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds command-line arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the flag that ends waits.
    #[must_use]
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }
}
