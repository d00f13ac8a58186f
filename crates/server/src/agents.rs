//! Which agent speaks for which node, as far as it has been heard of lately. Heartbeats are not sealed (ADR 3); that
//! an agent took a node up is.

use leasehold_model::{Instant, NodeNo, Span};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// When each node's agent was last heard of by this process.
pub(crate) struct Agents {
    heard: Mutex<BTreeMap<NodeNo, Instant>>,
    /// Agents that registered before this process began may be alive: they count as heard of when it began.
    began: Instant,
}

impl Agents {
    pub(crate) fn new(began: Instant) -> Self {
        Self { heard: Mutex::default(), began }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeNo, Instant>> {
        self.heard.lock().expect("no one panics with the list")
    }

    pub(crate) fn heard_of(&self, node: NodeNo, now: Instant) {
        self.lock().insert(node, now);
    }

    /// Whether the agent that is registered must be taken for dead: silent for as long as loses a node.
    pub(crate) fn is_silent(&self, node: NodeNo, now: Instant, timeout: Span) -> bool {
        let last = self.lock().get(&node).copied().unwrap_or(self.began);
        last.saturating_add(timeout) <= now
    }
}
