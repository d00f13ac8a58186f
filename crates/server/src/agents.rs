//! When the agents of nodes last sent a request. Heartbeats are not recorded (ADR 3); registrations are.

use leasehold_model::{Instant, NodeNo, Span};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// When the agent of each node last sent a request to this process.
pub(crate) struct Agents {
    heard: Mutex<BTreeMap<NodeNo, Instant>>,
    /// Agents that registered before this process started may be alive: they count as seen when it started.
    began: Instant,
}

impl Agents {
    pub(crate) fn new(began: Instant) -> Self {
        Self { heard: Mutex::default(), began }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeNo, Instant>> {
        self.heard.lock().expect("no thread panics while it holds the lock")
    }

    pub(crate) fn heard_of(&self, node: NodeNo, now: Instant) {
        self.lock().insert(node, now);
    }

    /// Whether the registered agent must be considered dead: it has sent nothing for the time after which a node is
    /// lost.
    pub(crate) fn is_silent(&self, node: NodeNo, now: Instant, timeout: Span) -> bool {
        let last = self.lock().get(&node).copied().unwrap_or(self.began);
        last.saturating_add(timeout) <= now
    }
}
