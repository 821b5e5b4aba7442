//! Stopping on request: the first SIGINT or SIGTERM sets a flag, a second one ends the process at once.
//!
//! `timeout` and some process managers send a signal to a process and again to its group, so that one request arrives
//! twice; what follows within [`SAME_REQUEST`] belongs to the request before it.
//!
//! Long loops ask [`Stop::check`] between two units of work; what they have is then saved by the same code that
//! saves it at the end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use nix::libc::SIGXFSZ;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// How long after a signal another one still counts as the same request.
const SAME_REQUEST: Duration = Duration::from_millis(300);

/// How long work in hand may take to end by itself. Then the process ends without it, as after a kill: whatever was
/// finished is on disk already. Users and process managers are promised two seconds.
const GRACE: Duration = Duration::from_millis(1600);

/// Ends the process when the grace is over.
fn end_after_grace(signal: i32) {
    let end = move || {
        thread::sleep(GRACE);
        crate::say!("stopped: the work in hand was left; run it again to continue");
        low_level::exit(128 + signal);
    };
    // Without a thread the work in hand takes as long as it takes.
    let _ = thread::Builder::new().name("grace".to_string()).spawn(end);
}

/// Asks whether the process was told to stop. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// The number of the signal, or 0.
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// The stop of this process; its first call takes over SIGINT and SIGTERM, later calls return the same one.
    ///
    /// It also has a write beyond the file size limit (`ulimit -f`) fail as one to a full disk does, where the default
    /// is to kill the process.
    pub fn install() -> Stop {
        static INSTALLED: OnceLock<Stop> = OnceLock::new();
        INSTALLED
            .get_or_init(|| {
                let stop = Stop::default();
                if let Err(e) = stop.register() {
                    crate::say!("warning: cannot watch for signals ({e}): they will end the process unsaved");
                }
                stop
            })
            .clone()
    }

    fn register(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // Actions run in the order of registration: the number is there when the flag is seen.
            flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&self.requested))?;
        }
        flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let watch = move || {
            let mut first: Option<Instant> = None;
            for signal in signals.forever() {
                match first {
                    Some(at) if at.elapsed() > SAME_REQUEST => low_level::exit(128 + signal),
                    Some(_) => {}
                    None => {
                        first = Some(Instant::now());
                        end_after_grace(signal);
                    }
                }
            }
        };
        thread::Builder::new().name("signals".to_string()).spawn(watch).map(drop)
    }

    /// A stop that no signal reaches, for tests and for use inside a larger program.
    pub fn manual() -> Stop {
        Stop::default()
    }

    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Asks to stop, as a signal would.
    pub fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
    }

    /// The flag itself, for code that takes one.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.requested)
    }

    /// The exit code that the request calls for: 143 after SIGTERM, 130 after SIGINT or [`Stop::request`], none when
    /// nothing was asked.
    pub fn exit_code(&self) -> Option<i32> {
        self.check().err().map(|e| e.exit_code())
    }

    /// Fails once a stop was requested, so that `?` unwinds a loop.
    ///
    /// # Errors
    /// [`Interrupted`], which [`crate::run`] turns into 130 or 143.
    pub fn check(&self) -> Result<(), Interrupted> {
        if !self.requested() {
            return Ok(());
        }
        // The number is stored before the flag is set, so a set flag without a number is a request from within.
        let terminated = self.signal.load(Ordering::SeqCst) == SIGTERM as usize;
        Err(Interrupted { signal: if terminated { SIGTERM } else { SIGINT } })
    }
}

/// The work was stopped on request; everything finished so far is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by {}; run it again to continue", if *.signal == SIGTERM { "SIGTERM" } else { "SIGINT" })]
pub struct Interrupted {
    signal: i32,
}

impl Interrupted {
    /// 130 or 143.
    pub fn exit_code(&self) -> i32 {
        128 + self.signal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_request() {
        let stop = Stop::manual();
        let clone = stop.clone();
        assert!(stop.check().is_ok() && stop.exit_code().is_none());
        clone.request();
        assert!(stop.requested() && stop.flag().load(Ordering::SeqCst));
        assert_eq!(stop.exit_code(), Some(130));
        assert!(stop.check().unwrap_err().to_string().contains("SIGINT"));
    }
}
