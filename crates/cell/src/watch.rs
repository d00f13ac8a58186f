//! Heartbeats of nodes. They are not recorded, because those of ten thousand nodes would fill the journal. Only the
//! loss of a node is recorded, with the instant at which it was last seen (SEMANTICS 3).

use leasehold_engine::State;
use leasehold_engine::command::LoseNode;
use leasehold_model::{Instant, NodeNo, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The last heartbeat of each node since startup. A node is watched from its first heartbeat on, so that an outage of
/// the daemon does not make it declare all nodes lost.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last_seen: BTreeMap<NodeNo, Instant>,
    /// The same, longest silence first: the decider asks for the first one at every wake-up.
    by_instant: BTreeSet<(Instant, NodeNo)>,
}

impl Watch {
    /// Records a heartbeat.
    pub(crate) fn seen(&mut self, node: NodeNo, now: Instant) {
        let before = self.last_seen.insert(node, now);
        if let Some(before) = before {
            assert!(before <= now, "stamps never decrease");
            self.by_instant.remove(&(before, node));
        }
        self.by_instant.insert((now, node));
    }

    /// When the next node has been silent for the timeout, if it sends no heartbeat until then.
    pub(crate) fn next_due(&self, timeout: Span) -> Option<Instant> {
        self.by_instant.first().map(|(last_seen, _)| last_seen.saturating_add(timeout))
    }

    /// The nodes without a heartbeat within the timeout, in order of their numbers. They are no longer watched until
    /// their next heartbeat, so each is returned once.
    pub(crate) fn take_silent(&mut self, now: Instant, state: &State) -> Vec<LoseNode> {
        let timeout = state.settings().node_timeout;
        let mut lost = Vec::new();
        while self.next_due(timeout).is_some_and(|due| due <= now) {
            let (last_seen, node) = self.by_instant.pop_first().expect("a node is due");
            self.last_seen.remove(&node);
            if let Some(found) = state.node(node).filter(|node| !node.lost) {
                // A report of its agent may have been recorded after the last heartbeat.
                lost.push(LoseNode { node, last_seen: last_seen.max(found.last_sign) });
            }
        }
        lost.sort_unstable_by_key(|lose| lose.node);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_measured_from_the_last_heartbeat() {
        let mut watch = Watch::default();
        let state = State::new();
        watch.seen(NodeNo(3), Instant::from_secs(100));
        watch.seen(NodeNo(3), Instant::from_secs(130));
        let timeout = state.settings().node_timeout;
        assert_eq!(watch.next_due(timeout), Some(Instant::from_secs(130).saturating_add(timeout)));
        assert!(watch.take_silent(Instant::from_secs(130).saturating_add(Span(timeout.0 - 1)), &state).is_empty());
        // The node does not exist in the state, so it is not reported, but it is no longer watched.
        assert!(watch.take_silent(Instant::from_secs(130).saturating_add(timeout), &state).is_empty());
        assert!(watch.last_seen.is_empty());
        assert_eq!(watch.next_due(timeout), None);
    }
}
