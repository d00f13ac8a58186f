//! Where callers leave their requests, and where the decider finds them.

use crate::inbox::{Replies, Reply};
use leasehold_engine::Request;
use leasehold_model::NodeNo;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Where a reply goes, and under which tag.
pub(crate) type Ticket = (Arc<dyn Replies>, u64);

/// A request with where its reply goes.
pub struct Submission {
    pub request: Request,
    pub to: Arc<dyn Replies>,
    /// The caller's own mark, handed back with the reply.
    pub tag: u64,
}

#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) requests: VecDeque<(Ticket, Request)>,
    pub(crate) seen: Vec<NodeNo>,
    /// The writer has nothing to do.
    pub(crate) writer_idle: bool,
    /// Bytes the writer is appending.
    pub(crate) in_flight_bytes: usize,
    pub(crate) stopping: bool,
}

/// The queue in front of the engine. Bounded: callers beyond the limit are told so at once.
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
        self.waiting.lock().expect("no one panics with the queue")
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn wait<'a>(&self, guard: MutexGuard<'a, Waiting>, at_most: Duration) -> MutexGuard<'a, Waiting> {
        self.changed.wait_timeout(guard, at_most).expect("no one panics with the queue").0
    }

    /// Adds requests in order; those for which there is no place, or no cell any more, are answered here.
    pub(crate) fn submit(&self, submissions: impl Iterator<Item = Submission>) {
        let mut turned_away = Vec::new();
        let mut waiting = self.lock();
        let was_empty = waiting.requests.is_empty();
        for Submission { request, to, tag } in submissions {
            if waiting.stopping {
                turned_away.push((to, tag, Reply::Stopped));
            } else if waiting.requests.len() >= self.requests_max {
                turned_away.push((to, tag, Reply::Busy));
            } else {
                waiting.requests.push_back(((to, tag), request));
            }
        }
        drop(waiting);
        if was_empty {
            self.notify();
        }
        for (to, tag, reply) in turned_away {
            to.put(tag, reply);
            to.wake();
        }
    }
}
