//! How far a stage is: a bar on a terminal, a plain line every 30 seconds elsewhere (cron, CI, a log file).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::clock::span;
use crate::console::{BARS, stderr_draws};
use crate::say;

const LINE_EVERY: Duration = Duration::from_secs(30);
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// What the process's display says, for the stamp of its stage; a process works on one stage at a time.
static LATEST: Mutex<Option<(u64, u64)>> = Mutex::new(None);

/// Units done and all units of the latest display that knows both.
pub(crate) fn latest() -> Option<(u64, u64)> {
    *LATEST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another stage begins.
pub(crate) fn forget() {
    *LATEST.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Shows progress on stderr. Cheap to update from many threads: what comes too often is dropped.
#[derive(Debug)]
pub struct Progress {
    label: String,
    total: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// What was done before this run, which says nothing about its speed.
    first: Option<u64>,
    done: u64,
    shown: Instant,
    finished: bool,
}

impl Progress {
    /// Starts to show `label`; `total` is in the units of [`Progress::set`], none when unknown.
    pub fn new(label: &str, total: Option<u64>) -> Progress {
        let bar = stderr_draws().then(|| {
            let bar = BARS.add(total.map_or_else(ProgressBar::no_length, ProgressBar::new));
            let template = match total {
                Some(_) => "{prefix} [{bar:30}] {pos}/{len} ({percent}%) {elapsed}<{eta} {msg}",
                None => "{prefix} {spinner} {pos} {elapsed} {msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(label.to_string());
            // The clock goes on between two units of work, however long they are.
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        let now = Instant::now();
        let state = Mutex::new(State { first: None, done: 0, shown: now, finished: false });
        Progress { label: label.to_string(), total, started: now, bar, state }
    }

    /// Reports the units done so far, those of earlier runs included, and a short note.
    pub fn set(&self, done: u64, note: &str) {
        let mut state = self.state();
        if state.first.is_none() {
            state.first = Some(done);
            if let Some(bar) = &self.bar {
                bar.set_position(done);
                // A resumed run's estimate must not count what an earlier run did.
                bar.reset_eta();
            }
        }
        // From several threads the reports may come in another order than the units.
        state.done = state.done.max(done);
        let done = state.done;
        if let Some(total) = self.total {
            *LATEST.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, total));
        }
        let every = if self.bar.is_some() { DRAW_EVERY } else { LINE_EVERY };
        if state.shown.elapsed() < every {
            return;
        }
        state.shown = Instant::now();
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(note.to_string());
            }
            None => say!("{}", line(&self.label, *state, self.total, self.started.elapsed(), note)),
        }
    }

    /// Ends the display with a last line.
    pub fn finish(&self, note: &str) {
        let mut state = self.state();
        if std::mem::replace(&mut state.finished, true) {
            return;
        }
        let snapshot = *state;
        drop(state);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            BARS.remove(bar);
        }
        say!("{}", line(&self.label, snapshot, None, self.started.elapsed(), note));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Progress {
    /// A display that did not finish leaves the screen, so that the error below it stands alone.
    fn drop(&mut self) {
        if let (Some(bar), false) = (&self.bar, self.state().finished) {
            bar.finish_and_clear();
            BARS.remove(bar);
        }
    }
}

/// One plain line: `corpus: 120/1000 (12 %), 3.2/s, 4m35s left, note`; without a total `corpus: 120, 3.2/s, in 37s`.
fn line(label: &str, state: State, total: Option<u64>, elapsed: Duration, note: &str) -> String {
    let done = state.done;
    let this_run = done.saturating_sub(state.first.unwrap_or(done));
    let rate = this_run as f64 / elapsed.as_secs_f64().max(1e-3);
    let mut text = match total {
        Some(total) if total > 0 => format!("{label}: {done}/{total} ({} %)", done.saturating_mul(100) / total),
        _ => format!("{label}: {done}"),
    };
    if this_run > 0 {
        text.push_str(&format!(", {}/s", significant(rate)));
    }
    match total {
        Some(total) if this_run > 0 && total > done => {
            text.push_str(&format!(", {} left", span((total - done) as f64 / rate)));
        }
        Some(_) => {}
        None => text.push_str(&format!(", in {}", span(elapsed.as_secs_f64()))),
    }
    if !note.is_empty() {
        text.push_str(", ");
        text.push_str(note);
    }
    text
}

fn significant(rate: f64) -> String {
    match rate {
        r if r >= 100.0 => format!("{r:.0}"),
        r if r >= 1.0 => format!("{r:.1}"),
        r => format!("{r:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(first: Option<u64>, done: u64) -> State {
        State { first, done, shown: Instant::now(), finished: false }
    }

    #[test]
    fn lines() {
        let ten = Duration::from_secs(10);
        assert_eq!(
            line("corpus", state(Some(100), 120), Some(1000), ten, "ok"),
            "corpus: 120/1000 (12 %), 2.0/s, 7m20s left, ok"
        );
        assert_eq!(line("corpus", state(Some(0), 0), Some(1000), ten, ""), "corpus: 0/1000 (0 %)");
        assert_eq!(line("corpus", state(Some(0), 5), None, ten, "done"), "corpus: 5, 0.500/s, in 10s, done");
        assert_eq!(line("x", state(None, 0), Some(0), ten, ""), "x: 0");
    }

    #[test]
    fn updates_from_many_threads() {
        let progress = Progress::new("test", Some(400));
        std::thread::scope(|scope| {
            for t in 0..4 {
                let progress = &progress;
                scope.spawn(move || (0..100).for_each(|i| progress.set(t * 100 + i, "")));
            }
        });
        progress.finish("done");
        progress.finish("again, unheard");
    }
}
