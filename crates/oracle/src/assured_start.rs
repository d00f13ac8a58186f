//! The assured start of a waiting allocation: when it starts at the latest, and where. Backfill must not delay it.
//!
//! Only ends that are certain count: an allocation with a walltime ends by then and is torn down within the teardown
//! deadline; a lease that is being revoked or torn down is gone, or fenced, by its limit. Capacity that was evicted
//! for others is reserved for them.

use crate::allocation::Allocation;
use crate::gang::Occupancy;
use crate::lease::{Lease, Phase};
use crate::world::{Node, World};
use leasehold_model::{Instant, LeaseNo, NodeNo, Priority, Span};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AssuredStart {
    pub(crate) start: Instant,
    pub(crate) nodes: BTreeSet<NodeNo>,
}

impl World {
    /// How long a node may take for a teardown.
    fn teardown_time(&self, node: &Node) -> Span {
        if node.is_immediate() { Span::ZERO } else { self.settings.teardown_deadline }
    }

    /// When work that starts now has left the node; none if neither its walltime nor the pool limits it.
    pub(crate) fn gone_by(
        &self,
        node: NodeNo,
        now: Instant,
        walltime: Option<Span>,
        priority: Priority,
    ) -> Option<Instant> {
        let node = &self.nodes[&node];
        let longest = match (walltime, self.lifetime_max(node.put.pool, priority)) {
            (Some(walltime), Some(life)) => walltime.min(life),
            (one, other) => one.or(other)?,
        };
        Some(now.saturating_add(longest).saturating_add(self.teardown_time(node)))
    }

    /// When an active lease must have ended: at the walltime of its attempt, or after its longest lifetime. A deadline
    /// that was set under earlier limits stands.
    fn last_deadline(&self, lease: &Lease) -> Option<Instant> {
        let walltime = self.attempt_of(lease).and_then(|attempt| attempt.bound());
        let life = self.lifetime_max(lease.pool, lease.priority);
        let life = life.map(|life| lease.granted_at.saturating_add(life).max(lease.expires_at));
        walltime.into_iter().chain(life).min()
    }

    /// When a lease has certainly given back its capacity.
    pub(crate) fn firm_end(&self, lease: &Lease) -> Option<Instant> {
        let teardown = self.nodes.get(&lease.node).map(|node| self.teardown_time(node))?;
        match lease.phase {
            Phase::Active => Some(self.last_deadline(lease)?.saturating_add(teardown)),
            Phase::Revoking => Some(lease.limit_at?.saturating_add(teardown)),
            Phase::Releasing | Phase::Expired | Phase::TearingDown => lease.limit_at,
            Phase::Fenced | Phase::Closed => None,
        }
    }

    pub(crate) fn assured_start(&self, waits: &Allocation, now: Instant) -> Option<AssuredStart> {
        let reserved = self.allocations.values().filter_map(|found| found.reservation.as_ref());
        let victims: BTreeSet<LeaseNo> = reserved.flat_map(|kept| kept.victims.iter().copied()).collect();
        let mut ends: BTreeMap<Instant, Vec<&Lease>> = BTreeMap::from([(now, Vec::new())]);
        for lease in self.leases.iter().filter(|lease| !victims.contains(&lease.number)) {
            if let Some(at) = self.firm_end(lease) {
                ends.entry(at.max(now)).or_default().push(lease);
            }
        }
        // Nodes that are protected for another are not counted on.
        let open = |node: NodeNo| !self.is_protected_from(node, waits.number, waits.spec.priority);
        let demand = waits.demand();
        let mut occupancy = Occupancy::of(self);
        for (start, leases) in ends {
            leases.iter().for_each(|lease| occupancy.lift(lease, true));
            let in_time = |node: NodeNo| open(node) && self.ends_before_window(node, start, waits.spec.walltime);
            if let Ok(gang) = self.place_gang(&demand, &waits.spec, &occupancy, now, &in_time) {
                return Some(AssuredStart { start, nodes: gang.places.iter().map(|place| place.node).collect() });
            }
        }
        None
    }
}
