//! Lines on the terminal: messages on stderr that do not tear a progress bar, results on stdout that end quietly
//! when the reader went away.
//!
//! The standard print macros panic when their stream is closed, which cron and `| head` do; nothing here does.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use indicatif::MultiProgress;

/// All live bars of the process, so that a message can hide and redraw them.
pub(crate) static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Whether stderr is a terminal that can redraw a line.
pub(crate) fn stderr_draws() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes one line on stderr, between redraws of any progress bar. A closed stderr is not an error.
pub fn log(args: fmt::Arguments<'_>) {
    // One write per line, so that lines of several processes in one log stay whole.
    let line = format!("{args}\n");
    let write = || {
        // Nobody is left to tell when stderr is gone, and the work matters more than its messages.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    };
    if stderr_draws() { BARS.suspend(write) } else { write() }
}

/// Says a line on stderr without tearing a progress bar: `say!("corpus: {games} games")`.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { $crate::log(::core::format_args!($($arg)*)) };
}

/// A result could not be written to stdout.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// The reader of the pipe has gone (`tabiya-... | head`); [`crate::run`] exits 0 on it.
    #[error("standard output was closed by its reader")]
    Closed,
    /// Any other failure, such as a full disk behind a redirection.
    #[error("cannot write to standard output: {0}")]
    Io(#[source] io::Error),
}

/// Writes one line of a result to stdout and flushes it.
///
/// # Errors
/// [`PrintError::Closed`] when the reader went away, else the failure of the write.
pub fn print(args: fmt::Arguments<'_>) -> Result<(), PrintError> {
    let line = format!("{args}\n");
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => PrintError::Closed,
        _ => PrintError::Io(source),
    })
}

/// Prints a line of a result on stdout: `put!("{table}")?`. Fails where `println!` would panic.
#[macro_export]
macro_rules! put {
    ($($arg:tt)*) => { $crate::print(::core::format_args!($($arg)*)) };
}
