//! Restart as the way to recover: a failed engine is replaced, with a pause that grows and is not the same for all
//! workers, until it has failed too often in a row.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use games::Rng;

use crate::{Engine, EngineError, EngineSpec, Phase};

/// Failures in a row after which an engine is given up.
pub const MAX_FAILURES: u32 = 5;

/// The pause before the first restart; it doubles with every failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

/// An engine that is started when it is needed and started again after a failure.
///
/// ```no_run
/// # use games::{Chess, Game, Line};
/// # use uci::{EngineSpec, Limit, Supervised};
/// # fn main() -> Result<(), uci::EngineError> {
/// let mut supervised = Supervised::new(EngineSpec::new("/usr/games/stockfish"));
/// let line = Line::new(Chess::start());
/// let answer = loop {
///     match supervised.engine().and_then(|engine| engine.play(&line, Limit::Nodes(1500))) {
///         Ok(answer) => break answer,
///         Err(error) => supervised.failed(error)?, // comes back if trying again makes sense
///     }
/// };
/// supervised.succeeded();
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Supervised {
    spec: EngineSpec,
    engine: Option<Engine>,
    failures: u32,
    restarts: u64,
    rng: Rng,
}

impl Supervised {
    /// Nothing is started yet.
    pub fn new(spec: EngineSpec) -> Self {
        // The pauses are all that depends on this, so it needs no seed of the run.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| u64::from(t.subsec_nanos()));
        let parts = [u64::from(std::process::id()), COUNT.fetch_add(1, Ordering::Relaxed), clock];
        Supervised { spec, engine: None, failures: 0, restarts: 0, rng: Rng::from_parts(&parts) }
    }

    /// What is started.
    pub fn spec(&self) -> &EngineSpec {
        &self.spec
    }

    /// Engines lost so far.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The running engine; it is started if there is none, after a pause if the last one failed.
    ///
    /// # Errors
    /// As [`Engine::start`]. Give the error to [`Supervised::failed`] to learn whether to try again.
    pub fn engine(&mut self) -> Result<&mut Engine, EngineError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                self.pause()?;
                Engine::start(&self.spec)?
            }
        };
        Ok(self.engine.insert(engine))
    }

    /// Records a failure: the engine is stopped, and the next call of [`Supervised::engine`] starts another one.
    ///
    /// # Errors
    /// The error itself if no other process of this engine would do better (an interrupt, a bad option, a missing
    /// file); [`EngineError::GaveUp`] with the engine's last words after [`MAX_FAILURES`] in a row.
    pub fn failed(&mut self, error: EngineError) -> Result<(), EngineError> {
        self.engine = None;
        if !error.is_transient() {
            return Err(error);
        }
        self.failures += 1;
        self.restarts += 1;
        if self.failures >= MAX_FAILURES {
            let (path, failures) = (self.spec.path.clone(), self.failures);
            return Err(EngineError::GaveUp { path, failures, last: Box::new(error) });
        }
        Ok(())
    }

    /// Records a success, such as a finished game: failures before it no longer count.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// The executable.
    pub fn path(&self) -> &Path {
        &self.spec.path
    }

    /// Waits before a restart.
    fn pause(&mut self) -> Result<(), EngineError> {
        if self.failures == 0 {
            return Ok(());
        }
        let doubled = FIRST_PAUSE * (1 << (self.failures - 1).min(10));
        let until = Instant::now() + doubled.min(LONGEST_PAUSE).mul_f64(0.5 + self.rng.unit());
        loop {
            if self.spec.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(EngineError::Interrupted(Phase::UciOk));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(TICK));
        }
    }
}
