//! When one that waits will start at the latest, and where: what backfill must not delay.
//!
//! Only firm ends count: an allocation with a walltime is gone when that is over and its node has cleared up, what is
//! being revoked or torn down is gone, or fenced, by its limit. What was evicted for others is theirs.

use crate::allocation::Allocation;
use crate::gang::Floor;
use crate::lease::{Lease, Phase};
use crate::world::{Node, World};
use leasehold_model::{Instant, LeaseNo, NodeNo, Span};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    pub(crate) start: Instant,
    pub(crate) nodes: BTreeSet<NodeNo>,
}

impl World {
    /// How long a node may take to give back what ended.
    fn clearing(&self, node: &Node) -> Span {
        if node.is_immediate() { Span::ZERO } else { self.settings.teardown_deadline }
    }

    /// When one that starts now on a node is gone from it; none if it may stay for ever.
    pub(crate) fn gone_by(&self, node: NodeNo, now: Instant, walltime: Option<Span>) -> Option<Instant> {
        Some(now.saturating_add(walltime?).saturating_add(self.clearing(&self.nodes[&node])))
    }

    /// When a lease is gone for certain.
    fn firm_end(&self, lease: &Lease) -> Option<Instant> {
        let clearing = self.nodes.get(&lease.node).map(|node| self.clearing(node))?;
        match lease.phase {
            Phase::Active => Some(self.attempt_of(lease)?.bound()?.saturating_add(clearing)),
            Phase::Revoking => Some(lease.limit_at?.saturating_add(clearing)),
            Phase::Releasing | Phase::Expired | Phase::TearingDown => lease.limit_at,
            Phase::Fenced | Phase::Closed => None,
        }
    }

    pub(crate) fn promise(&self, waits: &Allocation, now: Instant) -> Option<Promise> {
        let reserved = self.allocations.values().filter_map(|found| found.reservation.as_ref());
        let spoken_for: BTreeSet<LeaseNo> = reserved.flat_map(|kept| kept.victims.iter().copied()).collect();
        let mut ends: BTreeMap<Instant, Vec<&Lease>> = BTreeMap::from([(now, Vec::new())]);
        for lease in self.leases.iter().filter(|lease| !spoken_for.contains(&lease.number)) {
            if let Some(at) = self.firm_end(lease) {
                ends.entry(at.max(now)).or_default().push(lease);
            }
        }
        let demand = waits.demand();
        let mut floor = Floor::of(self);
        for (start, leases) in ends {
            leases.iter().for_each(|lease| floor.lift(lease, true));
            if let Ok(gang) = self.place_gang(&demand, &waits.spec, &floor, now, &|_| true) {
                return Some(Promise { start, nodes: gang.places.iter().map(|place| place.node).collect() });
            }
        }
        None
    }
}
