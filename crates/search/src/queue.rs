//! The bounded queue between clients and executors, and the executors' loop.
//!
//! One mutex guards the queue and the counts that decide when a batch is full enough; each client has an inbox of its
//! own, so that answers wake only the client that asked. A batch leaves the queue when it is full, when every live
//! client waits for answers (nothing more can come), when its oldest request has waited long enough, or when the
//! service stops: an executor never waits for a batch that cannot fill.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::panic_text;
use crate::{Evaluator, Request, SearchError};

/// Locks even if another thread panicked: every section below leaves its data consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the answers to one client arrive.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) state: Mutex<InboxState>,
    pub(crate) ready: Condvar,
}

#[derive(Default)]
pub(crate) struct InboxState {
    /// (place among the client's requests, the answered request)
    pub(crate) answers: Vec<(usize, Request)>,
    /// The service failed; its error is in [`State::failure`].
    pub(crate) failed: bool,
}

/// A request on its way.
struct Item {
    client: u64,
    place: usize,
    request: Request,
}

/// What the service knows of a live client.
struct ClientState {
    inbox: Arc<Inbox>,
    /// Requests in the queue or with an executor.
    outstanding: usize,
    /// It has handed over all it had to ask, and sleeps.
    waiting: bool,
}

#[derive(Default)]
pub(crate) struct State {
    queue: VecDeque<Item>,
    /// When the oldest request of the queue came to its front.
    since: Option<Instant>,
    clients: HashMap<u64, ClientState>,
    next_client: u64,
    /// How many clients are `waiting`.
    waiting: usize,
    /// How many executors have nothing to evaluate.
    idle: usize,
    stopping: bool,
    pub(crate) failure: Option<SearchError>,
    /// Evaluators that take over from an executor's own before its next batch.
    replacements: Vec<Option<Box<dyn Evaluator>>>,
}

/// What clients and executors share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Something came into the queue, or a batch may leave for another reason.
    work: Condvar,
    /// Something left the queue.
    space: Condvar,
    capacity: usize,
    batch: usize,
    wait: Duration,
    pub(crate) batches: AtomicU64,
    pub(crate) positions: AtomicU64,
}

impl Shared {
    pub(crate) fn new(executors: usize, batch: usize, capacity: usize, wait: Duration) -> Self {
        let state = State { replacements: (0..executors).map(|_| None).collect(), ..State::default() };
        Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            space: Condvar::new(),
            capacity: capacity.max(batch),
            batch,
            wait,
            batches: AtomicU64::new(0),
            positions: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Registers a client.
    pub(crate) fn join(&self) -> (u64, Arc<Inbox>) {
        let inbox = Arc::new(Inbox::default());
        let mut state = self.state();
        let id = state.next_client;
        state.next_client += 1;
        // Under the lock, so that a failure that comes now finds the inbox, and one that came before marks it.
        lock(&inbox.state).failed = state.failure.is_some();
        state.clients.insert(id, ClientState { inbox: Arc::clone(&inbox), outstanding: 0, waiting: false });
        (id, inbox)
    }

    /// Forgets a client and what it still asks.
    pub(crate) fn leave(&self, client: u64) {
        let mut state = self.state();
        if state.clients.remove(&client).is_some_and(|c| c.waiting) {
            state.waiting -= 1;
        }
        state.queue.retain(|item| item.client != client);
        drop(state);
        self.space.notify_all();
        self.work.notify_all();
    }

    /// Queues a client's requests, waiting for room; then the client counts as waiting.
    pub(crate) fn push(&self, client: u64, requests: &mut [Request]) -> Result<(), SearchError> {
        let mut state = self.state();
        let mut place = 0;
        while place < requests.len() {
            if let Some(error) = state.refusal() {
                state.queue.retain(|item| item.client != client);
                return Err(error);
            }
            let room = self.capacity - state.queue.len();
            if room == 0 {
                state = self.space.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let end = requests.len().min(place + room);
            if state.queue.is_empty() {
                state.since = Some(Instant::now());
            }
            state.queue.extend(requests[place..end].iter_mut().zip(place..).map(|(r, place)| Item {
                client,
                place,
                request: mem::take(r),
            }));
            if let Some(own) = state.clients.get_mut(&client) {
                own.outstanding += end - place;
            }
            place = end;
            if place < requests.len() {
                self.work.notify_one();
            }
        }
        // If the executors have already answered everything, nobody would take the mark off again.
        if let Some(own) = state.clients.get_mut(&client).filter(|own| own.outstanding > 0) {
            own.waiting = true;
            state.waiting += 1;
        }
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// Ends the service with an error, which every client receives. The first error stays.
    pub(crate) fn fail(&self, error: SearchError) {
        let mut state = self.state();
        state.failure.get_or_insert(error);
        state.queue.clear();
        let inboxes: Vec<Arc<Inbox>> = state.clients.values().map(|c| Arc::clone(&c.inbox)).collect();
        drop(state);
        for inbox in inboxes {
            lock(&inbox.state).failed = true;
            inbox.ready.notify_all();
        }
        self.space.notify_all();
        self.work.notify_all();
    }

    /// Lets the executors finish what is queued and end.
    pub(crate) fn stop(&self) {
        self.state().stopping = true;
        self.space.notify_all();
        self.work.notify_all();
    }

    /// Gives every executor another evaluator: whatever is asked after this returns is answered by them.
    pub(crate) fn replace(&self, evaluators: Vec<Box<dyn Evaluator>>) -> Result<(), SearchError> {
        let mut state = self.state();
        if let Some(error) = state.refusal() {
            return Err(error);
        }
        state.replacements = evaluators.into_iter().map(Some).collect();
        Ok(())
    }

    /// The life of executor number `index`.
    pub(crate) fn execute(&self, index: usize, mut evaluator: Box<dyn Evaluator>) {
        let mut requests: Vec<Request> = Vec::new();
        let mut tags: Vec<(u64, usize)> = Vec::new();
        let mut inboxes: Vec<(Arc<Inbox>, usize)> = Vec::new();
        while self.take(index, &mut evaluator, &mut requests, &mut tags) {
            let outcome = catch_unwind(AssertUnwindSafe(|| evaluator.evaluate(&mut requests)));
            match outcome {
                Ok(Ok(())) => self.deliver(&mut requests, &tags, &mut inboxes),
                Ok(Err(error)) => return self.fail(error),
                Err(payload) => {
                    let reason = panic_text(payload.as_ref());
                    return self.fail(SearchError::Executor { executor: index, reason });
                }
            }
        }
    }

    /// Waits for a batch and takes it out of the queue; false when the service has ended.
    fn take(
        &self,
        index: usize,
        evaluator: &mut Box<dyn Evaluator>,
        requests: &mut Vec<Request>,
        tags: &mut Vec<(u64, usize)>,
    ) -> bool {
        requests.clear();
        tags.clear();
        let mut state = self.state();
        state.idle += 1;
        loop {
            if state.failure.is_some() {
                return false;
            }
            if state.queue.is_empty() {
                if state.stopping {
                    return false;
                }
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.queue.len() >= self.batch || state.stopping || state.all_wait() {
                break;
            }
            let waited = state.since.map_or(self.wait, |since| since.elapsed());
            if waited >= self.wait {
                break;
            }
            state = self.work.wait_timeout(state, self.wait - waited).unwrap_or_else(PoisonError::into_inner).0;
        }
        let replaced = state.replacements[index].take().map(|new| mem::replace(evaluator, new));
        // Nothing more comes before these are answered: every idle executor gets its share.
        let sharers = if state.all_wait() { state.idle } else { 1 };
        let count = self.batch.min(state.queue.len().div_ceil(sharers));
        state.idle -= 1;
        for item in state.queue.drain(..count) {
            tags.push((item.client, item.place));
            requests.push(item.request);
        }
        let more = !state.queue.is_empty();
        state.since = more.then(Instant::now);
        drop(state);
        drop(replaced); // a network's memory is freed outside the lock
        self.space.notify_all();
        if more {
            self.work.notify_one();
        }
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.positions.fetch_add(count as u64, Ordering::Relaxed);
        true
    }

    /// Sends answers to the clients that asked. A client that has left is skipped.
    fn deliver(&self, requests: &mut Vec<Request>, tags: &[(u64, usize)], inboxes: &mut Vec<(Arc<Inbox>, usize)>) {
        inboxes.clear();
        let mut answers = requests.drain(..).zip(tags);
        let mut state = self.state();
        // A client's requests lie side by side; its inbox is looked up once.
        for run in tags.chunk_by(|a, b| a.0 == b.0) {
            let State { clients, waiting, .. } = &mut *state;
            let Some(client) = clients.get_mut(&run[0].0) else {
                inboxes.push((Arc::new(Inbox::default()), run.len()));
                continue;
            };
            client.outstanding -= run.len();
            if client.outstanding == 0 && mem::take(&mut client.waiting) {
                *waiting -= 1;
            }
            inboxes.push((Arc::clone(&client.inbox), run.len()));
        }
        drop(state);
        for (inbox, count) in inboxes.drain(..) {
            lock(&inbox.state).answers.extend(answers.by_ref().take(count).map(|(request, tag)| (tag.1, request)));
            inbox.ready.notify_all();
        }
    }
}

impl State {
    /// Whether every live client has asked all it can before it is answered.
    fn all_wait(&self) -> bool {
        self.waiting >= self.clients.len()
    }

    /// Why no more requests are taken.
    fn refusal(&self) -> Option<SearchError> {
        self.failure.clone().or_else(|| self.stopping.then_some(SearchError::Stopped))
    }
}
