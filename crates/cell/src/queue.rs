//! The queue of requests between the callers and the decider thread.

use crate::inbox::{Replies, Reply, Unsealed};
use leasehold_engine::Request;
use leasehold_model::NodeNo;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The receiver of a reply and its tag. A ticket that is dropped without a reply answers `Stopped`, even if its thread
/// panicked, so that no caller waits forever.
pub(crate) struct Ticket {
    /// `None` for requests of the cell itself.
    to: Option<Arc<dyn Replies>>,
    tag: u64,
}

impl Ticket {
    pub(crate) fn new(to: Arc<dyn Replies>, tag: u64) -> Self {
        Self { to: Some(to), tag }
    }
    pub(crate) fn of_nobody() -> Self {
        Self { to: None, tag: 0 }
    }
    /// Delivers the reply. Returns the receiver, which the caller must wake.
    pub(crate) fn answer(mut self, reply: Reply) -> Option<Arc<dyn Replies>> {
        let to = self.to.take();
        if let Some(to) = &to {
            to.put(self.tag, reply);
        }
        to
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            to.put(self.tag, Err(Unsealed::Stopped));
            to.wake();
        }
    }
}

/// A request with the receiver of its reply.
pub struct Submission {
    pub request: Request,
    pub to: Arc<dyn Replies>,
    /// Chosen by the caller, and returned with the reply.
    pub tag: u64,
}

/// While the writer is busy, requests are decided when there are at least this many. Their batch cannot be handed over
/// before the writer is idle, and waking the decider costs more than deciding a request. Fewer requests are decided when
/// the writer has finished, because it wakes the decider then.
const DECIDED_TOGETHER: usize = 32;

#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) requests: VecDeque<(Ticket, Request)>,
    pub(crate) seen: Vec<NodeNo>,
    /// Whether the writer has nothing to do.
    pub(crate) writer_idle: bool,
    /// The size of the batch that the writer is appending.
    pub(crate) in_flight_bytes: usize,
    pub(crate) stopping: bool,
}

impl Waiting {
    /// Whether the decider should take the requests now.
    pub(crate) fn has_work(&self) -> bool {
        if self.writer_idle { !self.requests.is_empty() } else { self.requests.len() >= DECIDED_TOGETHER }
    }
}

/// The queue in front of the engine. It is bounded: requests beyond the limit are answered `Busy` at once.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    requests_max: usize,
}

impl Queue {
    pub(crate) fn new(requests_max: usize) -> Self {
        let waiting = Waiting { writer_idle: true, ..Waiting::default() };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new(), requests_max }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A thread that panics while it holds the queue stops the cell, but the queue itself is still intact.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn wait<'a>(&self, guard: MutexGuard<'a, Waiting>, at_most: Duration) -> MutexGuard<'a, Waiting> {
        self.changed.wait_timeout(guard, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Drops the waiting requests when they can no longer be decided. Dropping their tickets answers them.
    pub(crate) fn abandon(&self) {
        let abandoned = std::mem::take(&mut self.lock().requests);
        drop(abandoned);
    }

    /// Adds requests in order. Answers them at once if the queue is full or the cell is stopping.
    pub(crate) fn submit(&self, submissions: impl Iterator<Item = Submission>) {
        let mut turned_away = Vec::new();
        let mut waiting = self.lock();
        let had_work = waiting.has_work();
        for Submission { request, to, tag } in submissions {
            if waiting.stopping {
                turned_away.push((Ticket::new(to, tag), Err(Unsealed::Stopped)));
            } else if waiting.requests.len() >= self.requests_max {
                turned_away.push((Ticket::new(to, tag), Err(Unsealed::Busy)));
            } else {
                waiting.requests.push_back((Ticket::new(to, tag), request));
            }
        }
        let wake = !had_work && waiting.has_work();
        drop(waiting);
        if wake {
            self.notify();
        }
        for (ticket, reply) in turned_away {
            ticket.answer(reply).inspect(|to| to.wake());
        }
    }
}
