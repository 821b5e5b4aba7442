//! The inference service: many searches on a few worker threads, few networks on a few executor threads.
//!
//! ```text
//! worker: searches --gather--> Client --push--> bounded queue --batch--> executor: Evaluator
//!                  <--apply---  inbox <-----------answers, to the client that asked--+
//! ```
//!
//! It knows no network: it is given one [`Evaluator`] an executor. An executor or a worker that fails or panics ends
//! the service with an error that every client receives; nobody waits for an answer that cannot come.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::queue::Shared;
use crate::workers::run_together;
use crate::{Client, Evaluator, SearchError, ServiceConfig};

/// What a service has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServiceStats {
    /// Batches given to executors.
    pub batches: u64,
    /// Positions in them.
    pub positions: u64,
}

impl ServiceStats {
    /// Mean positions a batch; 0 before the first.
    pub fn mean_batch(&self) -> f64 {
        if self.batches == 0 { 0.0 } else { self.positions as f64 / self.batches as f64 }
    }
}

/// Running executors. Dropping it stops them when they have answered what is queued.
pub struct Service {
    shared: Arc<Shared>,
    executors: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts the executors; `evaluator` makes each one's evaluator from its number.
    ///
    /// # Errors
    /// [`SearchError::Config`], the factory's error, or [`SearchError::Executor`] if a thread cannot start.
    pub fn start<E: Evaluator + 'static>(
        config: ServiceConfig,
        evaluator: impl FnMut(usize) -> Result<E, SearchError>,
    ) -> Result<Self, SearchError> {
        config.check()?;
        let evaluators = make(config.executors, evaluator)?;
        let wait = Duration::from_micros(config.wait_us);
        let shared = Arc::new(Shared::new(config.executors, config.batch, config.queue, wait));
        let mut service = Service { shared, executors: Vec::with_capacity(config.executors) };
        for (executor, evaluator) in evaluators.into_iter().enumerate() {
            let shared = Arc::clone(&service.shared);
            let thread = Builder::new()
                .name(format!("inference-{executor}"))
                .spawn(move || shared.execute(executor, evaluator))
                .map_err(|e| SearchError::Executor { executor, reason: e.to_string() })?;
            service.executors.push(thread);
        }
        Ok(service)
    }

    /// A new client, for one worker thread.
    pub fn client(&self) -> Client {
        Client::new(Arc::clone(&self.shared))
    }

    /// Puts other evaluators, one an executor, in the place of the running ones. Searches go on meanwhile: a batch that
    /// an executor has taken is finished by the old network, and what is asked after this returns is answered by the
    /// new one.
    ///
    /// # Errors
    /// The factory's error (the old evaluators then stay), or the reason why the service has ended.
    pub fn swap<E: Evaluator + 'static>(
        &self,
        evaluator: impl FnMut(usize) -> Result<E, SearchError>,
    ) -> Result<(), SearchError> {
        self.shared.replace(make(self.executors.len(), evaluator)?)
    }

    /// What the executors have done so far.
    pub fn stats(&self) -> ServiceStats {
        ServiceStats {
            batches: self.shared.batches.load(Ordering::Relaxed),
            positions: self.shared.positions.load(Ordering::Relaxed),
        }
    }

    /// Runs `count` worker threads, each with a client of its own, and waits for all. `body` is given the worker's
    /// number and client.
    ///
    /// # Errors
    /// The first error in time: the one that made the others fail. A worker that fails or panics ends the service.
    pub fn run_workers<T, E, F>(&self, count: usize, body: F) -> Result<Vec<T>, E>
    where
        T: Send,
        E: From<SearchError> + Display + Send,
        F: Fn(usize, &mut Client) -> Result<T, E> + Sync,
    {
        // All clients live before the first worker asks, so that its batch is not sent off as if it were alone.
        let clients: Vec<Client> = (0..count).map(|_| self.client()).collect();
        run_together(clients, body, |client, reason| client.fail(reason))
    }

    /// Stops the executors when they have answered what is queued; clients that ask later get
    /// [`SearchError::Stopped`].
    ///
    /// # Errors
    /// The error that ended the service before, if one did.
    pub fn stop(mut self) -> Result<(), SearchError> {
        self.shut_down();
        self.shared.state().failure.clone().map_or(Ok(()), Err)
    }

    fn shut_down(&mut self) {
        self.shared.stop();
        for (executor, thread) in self.executors.drain(..).enumerate() {
            if thread.join().is_err() {
                self.shared.fail(SearchError::Executor { executor, reason: "its thread panicked".to_owned() });
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn make<E: Evaluator + 'static>(
    executors: usize,
    mut evaluator: impl FnMut(usize) -> Result<E, SearchError>,
) -> Result<Vec<Box<dyn Evaluator>>, SearchError> {
    (0..executors).map(|i| evaluator(i).map(|e| Box::new(e) as Box<dyn Evaluator>)).collect()
}

#[cfg(test)]
mod tests;
