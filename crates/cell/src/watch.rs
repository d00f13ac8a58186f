//! Heartbeats of nodes. They are not recorded, because those of ten thousand nodes would fill the journal. Only the
//! loss of a node is recorded, with the instant at which it was last seen (SEMANTICS 3).

use leasehold_engine::State;
use leasehold_engine::command::LoseNode;
use leasehold_model::{Instant, NodeNo};
use std::collections::BTreeMap;

/// The last heartbeat of each node since startup. A node is watched from its first heartbeat on, so that an outage of
/// the daemon does not make it declare all nodes lost.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last_seen: BTreeMap<NodeNo, Instant>,
}

impl Watch {
    /// Records a heartbeat.
    pub(crate) fn seen(&mut self, node: NodeNo, now: Instant) {
        let last = self.last_seen.entry(node).or_insert(now);
        *last = now.max(*last);
    }

    /// The nodes without a heartbeat within the timeout, in order of their numbers. They are no longer watched until
    /// their next heartbeat, so each is returned once.
    pub(crate) fn take_silent(&mut self, now: Instant, state: &State) -> Vec<LoseNode> {
        let timeout = state.settings().node_timeout;
        let silent = |last_seen: &Instant| last_seen.saturating_add(timeout) <= now;
        let lost: Vec<LoseNode> = self
            .last_seen
            .iter()
            .filter(|(_, last_seen)| silent(last_seen))
            .map(|(node, last_seen)| LoseNode { node: *node, last_seen: *last_seen })
            .collect();
        for lose in &lost {
            self.last_seen.remove(&lose.node);
        }
        lost.into_iter().filter(|lose| state.node(lose.node).is_some_and(|node| !node.lost)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_model::Span;

    #[test]
    fn silence_is_measured_from_the_last_heartbeat() {
        let mut watch = Watch::default();
        let state = State::new();
        watch.seen(NodeNo(3), Instant::from_secs(100));
        watch.seen(NodeNo(3), Instant::from_secs(130));
        let timeout = state.settings().node_timeout;
        assert!(watch.take_silent(Instant::from_secs(130).saturating_add(Span(timeout.0 - 1)), &state).is_empty());
        // The node does not exist in the state, so it is not reported, but it is no longer watched.
        assert!(watch.take_silent(Instant::from_secs(130).saturating_add(timeout), &state).is_empty());
        assert!(watch.last_seen.is_empty());
    }
}
