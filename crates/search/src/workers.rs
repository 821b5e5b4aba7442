//! Worker threads that fail together, and the workers that have an evaluator of their own.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::scope;

use crate::error::panic_text;
use crate::queue::lock;
use crate::{Evaluator, Request, SearchError};

/// Runs one worker thread an evaluator and waits for all. `body` is given the worker's number and its evaluator.
///
/// With as many workers as cores this is the fastest way to run many searches on a CPU, where a batch costs as much as
/// its positions: no thread ever waits for another. A device wants the large batches of a [`crate::Service`]. Searches
/// are the same in both.
///
/// # Errors
/// The first error in time. When a worker fails or panics, the next question of every other worker is refused with
/// [`SearchError::Worker`].
pub fn run_workers<V, T, E, F>(evaluators: Vec<V>, body: F) -> Result<Vec<T>, E>
where
    V: Evaluator,
    T: Send,
    E: From<SearchError> + Display + Send,
    F: Fn(usize, &mut dyn Evaluator) -> Result<T, E> + Sync,
{
    let failure = OnceLock::new();
    let own: Vec<_> = evaluators.into_iter().map(|evaluator| Own { evaluator, failure: &failure }).collect();
    let fail = |_: &Own<'_, V>, reason: String| {
        failure.get_or_init(|| SearchError::Worker { reason });
    };
    run_together(own, |worker, own| body(worker, own), fail)
}

/// A worker's own evaluator, which refuses when another worker has failed.
struct Own<'a, V> {
    evaluator: V,
    failure: &'a OnceLock<SearchError>,
}

impl<V: Evaluator> Evaluator for Own<'_, V> {
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        match self.failure.get() {
            Some(error) => Err(error.clone()),
            None => self.evaluator.evaluate(requests),
        }
    }
}

/// Runs `body` on a thread for each of `tools`, and waits for all. A worker that fails or panics tells the others by
/// `fail`; the error that came first in time is the result.
pub(crate) fn run_together<W, T, E, F>(tools: Vec<W>, body: F, fail: impl Fn(&W, String) + Sync) -> Result<Vec<T>, E>
where
    W: Send,
    T: Send,
    E: From<SearchError> + Display + Send,
    F: Fn(usize, &mut W) -> Result<T, E> + Sync,
{
    let first: Mutex<Option<E>> = Mutex::new(None);
    let work = |worker: usize, mut tool: W| -> Option<T> {
        let error = match catch_unwind(AssertUnwindSafe(|| body(worker, &mut tool))) {
            Ok(Ok(result)) => return Some(result),
            Ok(Err(error)) => error,
            Err(payload) => {
                let reason = format!("worker {worker} panicked: {}", panic_text(payload.as_ref()));
                E::from(SearchError::Worker { reason })
            }
        };
        let reason = format!("worker {worker}: {error}");
        lock(&first).get_or_insert(error);
        fail(&tool, reason);
        None
    };
    let results: Vec<Option<T>> = scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            tools.into_iter().enumerate().map(|(worker, tool)| scope.spawn(move || work(worker, tool))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|payload| resume_unwind(payload))).collect()
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use games::{Connect4, Game, Rng};

    use super::run_workers;
    use crate::testing::HashEvaluator;
    use crate::{Search, SearchConfig, SearchError, drive};

    fn searches(worker: usize) -> Vec<Search<Connect4>> {
        let config = SearchConfig { simulations: 80, noise_weight: 0.25, ..SearchConfig::default() };
        (0..3).map(|i| Search::new(config, Connect4::start(), Rng::new((3 * worker + i) as u64))).collect()
    }

    #[test]
    fn every_worker_has_its_evaluator_and_results_come_in_order() {
        let parts = run_workers(vec![HashEvaluator; 4], |worker, evaluator| {
            let mut searches = searches(worker);
            drive(&mut searches, evaluator).map(|()| searches)
        });
        for (worker, part) in parts.unwrap().iter().enumerate() {
            let mut alone = searches(worker);
            drive(&mut alone, &mut HashEvaluator).unwrap();
            for (a, b) in alone.iter().zip(part) {
                assert_eq!(a.root_report().unwrap(), b.root_report().unwrap());
            }
        }
    }

    #[test]
    fn a_worker_that_panics_or_fails_is_an_error_for_all() {
        for panics in [false, true] {
            let others = AtomicUsize::new(0);
            let result = run_workers(vec![HashEvaluator; 3], |worker, evaluator| {
                if worker == 1 {
                    assert!(!panics, "the worker's last words");
                    return Err(SearchError::Config { field: "made_up", expected: "else", got: String::new() });
                }
                // Without the failure this would go on for ever.
                loop {
                    if let Err(error) = drive(&mut searches(worker), evaluator) {
                        assert!(matches!(error, SearchError::Worker { .. }), "{error}");
                        others.fetch_add(1, Ordering::Relaxed);
                        return Err::<(), _>(error);
                    }
                }
            });
            let error = result.unwrap_err().to_string();
            assert!(error.contains(if panics { "the worker's last words" } else { "made_up" }), "{error}");
            assert_eq!(others.into_inner(), 2);
        }
    }
}
