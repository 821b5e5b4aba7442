//! The frame of every executable: run the work, say what went wrong, exit with the documented code.
//!
//! 0 done or nothing to do, 1 a required score was missed, 2 failed, 130 and 143 interrupted by SIGINT and SIGTERM.

use std::any::Any;
use std::error::Error;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};

use crate::console::PrintError;
use crate::say;
use crate::stop::{Interrupted, Stop};

/// How an executable that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or nothing to do: exit code 0.
    Done,
    /// The work ran, and a score that was asked for was not reached: exit code 1.
    ScoreMissed,
}

impl Exit {
    fn code(self) -> i32 {
        match self {
            Exit::Done => 0,
            Exit::ScoreMissed => 1,
        }
    }
}

const FAILED: i32 = 2;

/// Runs an executable's body and exits.
///
/// An error goes to stderr as `error: ` and its chain, exit 2; [`Interrupted`] anywhere in the chain, or any error
/// after a stop was requested, exits 130 or 143; a stdout whose reader went away exits 0, as the reader had what it
/// wanted; a panic is reported and exits 2.
pub fn run(body: impl FnOnce(&Stop) -> Result<Exit, Box<dyn Error + Send + Sync>>) -> ! {
    let stop = Stop::install();
    silence_closed_stdout();
    let code = match panic::catch_unwind(AssertUnwindSafe(|| body(&stop))) {
        Ok(Ok(exit)) => flushed(exit.code()),
        Ok(Err(error)) => failure_code(&*error, &stop),
        Err(payload) if panicked_on_closed_stdout(&*payload) => 0,
        Err(_) => {
            say!("error: internal fault (above); finished work is kept, run it again to continue");
            FAILED
        }
    };
    std::process::exit(code)
}

/// Reports an error and chooses its exit code.
fn failure_code(error: &(dyn Error + Send + Sync + 'static), stop: &Stop) -> i32 {
    let error: &(dyn Error + 'static) = error;
    if let Some(interrupted) = find::<Interrupted>(error) {
        say!("stopped: {interrupted}");
        return interrupted.exit_code();
    }
    if matches!(find::<PrintError>(error), Some(PrintError::Closed)) {
        return 0;
    }
    // Only at the head of the chain: further down, a broken pipe is an engine's or a file's, with its own story.
    if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return 0;
    }
    say!("error: {}", error_chain(error));
    stop.exit_code().unwrap_or(FAILED)
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(found) = current.downcast_ref::<E>() {
            return Some(found);
        }
        next = current.source();
    }
    None
}

/// An error and its sources in one line, each said once: `cannot read x.toml: permission denied`.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        // Many errors already quote their source.
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

/// Flushes stdout; output that could not be delivered is a failure, unless its reader left.
fn flushed(code: i32) -> i32 {
    match io::stdout().flush() {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            say!("error: cannot write to standard output: {e}");
            FAILED
        }
        _ => code,
    }
}

/// `println!` panics when the reader of stdout went away; that panic is an ordinary end and is not reported.
fn silence_closed_stdout() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !panicked_on_closed_stdout(info.payload()) {
            report(info);
        }
    }));
}

fn panicked_on_closed_stdout(payload: &(dyn Any + Send)) -> bool {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    text.is_some_and(|t| t.starts_with("failed printing to stdout") && t.contains("Broken pipe"))
}

#[cfg(test)]
mod tests;
