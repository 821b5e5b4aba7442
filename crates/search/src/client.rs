//! One worker's access to the inference service.

use std::sync::{Arc, PoisonError};

use crate::queue::{Inbox, Shared, lock};
use crate::{Evaluator, Request, SearchError};

/// Asks a [`crate::Service`]. Each worker thread has its own; a client that lives but does not ask makes batches that
/// are not full wait for their time-out.
///
/// A client that is dropped while its thread panics ends the service: the other workers get an error, and do not go
/// on with a run that has lost a part.
pub struct Client {
    shared: Arc<Shared>,
    id: u64,
    inbox: Arc<Inbox>,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (id, inbox) = shared.join();
        Client { shared, id, inbox }
    }

    /// Ends the service: every client's next or running call gives [`SearchError::Worker`] with this reason, unless
    /// the service has failed before.
    pub fn fail(&self, reason: impl Into<String>) {
        self.shared.fail(SearchError::Worker { reason: reason.into() });
    }
}

impl Evaluator for Client {
    /// Blocks until all requests are answered, by one executor or by several.
    fn evaluate(&mut self, requests: &mut [Request]) -> Result<(), SearchError> {
        if requests.is_empty() {
            return Ok(());
        }
        self.shared.push(self.id, requests)?;
        let mut inbox = lock(&self.inbox.state);
        while inbox.answers.len() < requests.len() {
            if inbox.failed {
                drop(inbox);
                return Err(self.shared.state().failure.clone().unwrap_or(SearchError::Stopped));
            }
            inbox = self.inbox.ready.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        for (place, answer) in inbox.answers.drain(..) {
            requests[place] = answer;
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail("a worker thread panicked");
        }
        self.shared.leave(self.id);
    }
}
