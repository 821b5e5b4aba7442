//! Stopping on request: the first SIGINT or SIGTERM sets a flag, the second ends the process at once.
//!
//! Long loops ask [`Stop::check`] between two units of work; what they have is then saved by the same code that
//! saves it at the end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Asks whether the process was told to stop. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// The number of the signal, or 0.
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// The stop of this process; its first call takes over SIGINT and SIGTERM, later calls return the same one.
    pub fn install() -> Stop {
        static INSTALLED: OnceLock<Stop> = OnceLock::new();
        INSTALLED.get_or_init(Stop::register).clone()
    }

    fn register() -> Stop {
        let stop = Stop::default();
        // Armed by a signal alone: after `request` from within, the first Ctrl-C still lets the work be saved.
        let armed = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Actions run in the order of registration, so the shutdown sees only an earlier signal.
            let result = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize))
                .and_then(|_| flag::register(signal, Arc::clone(&stop.requested)))
                .and_then(|_| flag::register(signal, Arc::clone(&armed)));
            if let Err(e) = result {
                crate::say!("warning: cannot watch for signal {signal} ({e}): it will end the process unsaved");
            }
        }
        stop
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
