//! Which leases are evicted so that an allocation fits (SEMANTICS 5).
//!
//! Victims have strictly lower priority and are never sensitive. They are evicted as whole gangs: lowest priority
//! first, then the earliest end, then the lowest lease number. On each node, victims are added in that order until a
//! replica fits; then, in reverse order, victims that are not needed are dropped. Among nodes, the one wins whose
//! highest victim priority is lowest, then the one with the fewest gangs, then the fewest quanta, then the lowest
//! number. Nothing is evicted unless the whole gang fits afterwards.

mod eviction_bound;
mod own;
mod planner;
mod takeover;
mod trial;

pub(crate) use eviction_bound::EvictionBounds;

use crate::admission::NodeQuotas;
use crate::ask::Ask;
use crate::gang::{DomainId, domain_of};
use crate::lease::Lease;
use crate::node::Node;
use crate::placement::Tentative;
use crate::state::{State, entry};
use crate::view::View;
use eviction_bound::EvictionBound;
use leasehold_model::body::{Leases, ReplicaPlacement};
use leasehold_model::{AllocationNo, ClassNo, LeaseNo, NodeNo, Priority, QuotaNo};
use planner::{Planner, Victims};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Which leases to evict, and where the replicas are placed afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) places: Vec<ReplicaPlacement>,
    /// Leases that are evicted.
    pub(crate) victims: Leases,
    pub(crate) quanta: u64,
    /// Leases that are ending already and whose capacity is needed.
    pub(crate) awaited: Leases,
    /// The allocations whose reservations are taken over.
    pub(crate) dropped: Vec<AllocationNo>,
    /// The quota in which the victims make headroom, if it lacked that and not capacity.
    pub(crate) headroom: Option<QuotaNo>,
}

/// Leases that are evicted together: those of one allocation, or of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EvictionUnit {
    Allocation(AllocationNo),
    Request(LeaseNo),
}

/// What one replica would evict on one node. Nodes are compared by the fields in order; the least is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PossibleEviction {
    /// The highest priority among the victims.
    pub highest: Priority,
    pub gangs: usize,
    pub quanta: u64,
    pub node: NodeNo,
    pub victims: Vec<LeaseNo>,
}

/// The cost of evictions on a node, compared by the fields in order; the node with the least is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionCost {
    /// The highest priority among the victims.
    highest: Priority,
    gangs: usize,
    quanta: u64,
    node: NodeNo,
}

/// A lower bound for the eviction cost of one replica on a node, from the requested quanta and the bounds of each class.
/// `None` if evictions there cannot free enough.
fn least_cost<'g>(
    asked: impl Iterator<Item = (u64, &'g EvictionBound)>,
    below: Priority,
    node: NodeNo,
) -> Option<EvictionCost> {
    let (mut highest, mut gangs, mut quanta) = (Priority::Scavenger, 0, 0u64);
    for (asked, bound) in asked {
        let least = bound.least_eviction(asked, below)?;
        highest = highest.max(least.highest);
        // Victims of different classes may belong to the same gang, which counts once.
        let of_class = bound.gangs(least.leases);
        gangs = if bound.shares_gangs() { gangs.max(of_class) } else { gangs + of_class };
        quanta += least.quanta;
    }
    Some(EvictionCost { highest, gangs, quanta, node })
}

impl View<'_> {
    /// Whether anything could be evicted or taken over for an ask, on any node. This is the cheapest check that can rule
    /// it out.
    pub(crate) fn could_evict(&self, ask: &Ask<'_>) -> bool {
        let is_evictable = |(class, _): &(_, _)| self.placement.evictables.below(*class, ask.priority) > 0;
        // Claimed nodes run only sensitive work, which is never evicted.
        ask.priority != Priority::Scavenger
            && ask.claimer.is_none()
            && (ask.asks.iter().any(is_evictable) || self.has_reservation_below(ask.priority))
    }

    /// Plans the evictions that let the gang fit. `base` are the reservations that are taken over.
    fn plan_evictions(
        &self,
        ask: &Ask<'_>,
        of_nodes: &NodeQuotas,
        base: &Tentative,
    ) -> Option<(Vec<ReplicaPlacement>, Victims)> {
        let bounds = self.least_costs(ask);
        let Some(domain) = ask.home() else {
            return Planner::new(*self, ask, of_nodes, &bounds, None).after(base).place_all();
        };
        // Try the domain with the lowest eviction cost for a first replica, then the next untried one.
        let mut tried: BTreeSet<DomainId> = BTreeSet::new();
        loop {
            let untried = |node: &Node| domain_of(node, domain).is_some_and(|id| !tried.contains(&id));
            let first = Planner::new(*self, ask, of_nodes, &bounds, Some(&untried)).after(base).place_one(&[])?;
            let here = self.node(first.node).and_then(|node| domain_of(node, domain));
            let within = |node: &Node| domain_of(node, domain) == here;
            let inside = Planner::new(*self, ask, of_nodes, &bounds, Some(&within)).after(base);
            if let Some(planned) = inside.place_all() {
                return Some(planned);
            }
            tried.extend(here);
        }
    }

    /// What one more replica would evict, on the nodes with the lowest eviction cost, lowest first.
    pub(crate) fn possible_evictions(&self, ask: &Ask<'_>, of_nodes: &NodeQuotas, top: usize) -> Vec<PossibleEviction> {
        if ask.priority == Priority::Scavenger || ask.claimer.is_some() {
            return Vec::new();
        }
        let planner = Planner::new(*self, ask, of_nodes, &[], None);
        let mut all: Vec<PossibleEviction> = (self.nodes())
            .filter(|node| planner.suits(node) && planner.is_allowed(node))
            .filter_map(|node| {
                let (EvictionCost { highest, gangs, quanta, node }, units) = planner.plan_on(node)?;
                let members = units.iter().filter_map(|unit| self.members_of(*unit)).flatten();
                let mut victims: Vec<LeaseNo> = members.map(|lease| lease.number).collect();
                victims.sort_unstable();
                // Where a replica fits already, nothing is evicted.
                (!victims.is_empty()).then_some(PossibleEviction { node, highest, gangs, quanta, victims })
            })
            .collect();
        all.sort_unstable_by_key(|one| (one.highest, one.gangs, one.quanta, one.node));
        all.truncate(top);
        all
    }

    fn index_matches(&self, node: &Node) -> bool {
        let evictable = self.placement.evictables.on(node.number);
        self.placement.evictables.match_node(self.state, node)
            && self.placement.eviction_bounds.match_node(node, evictable)
    }

    /// Lower bounds for the eviction cost of one replica, for each node on which evictions could free enough.
    fn least_costs(&self, ask: &Ask<'_>) -> Vec<EvictionCost> {
        let eviction_bounds: SmallVec<[&[EvictionBound]; 4]> =
            ask.asks.iter().map(|(class, _)| self.placement.eviction_bounds.of_class(*class)).collect();
        let count = eviction_bounds.iter().map(|of_class| of_class.len()).min().unwrap_or(0);
        debug_assert!(self.nodes().all(|node| self.index_matches(node)), "the placement index is out of date");
        let mut costs = Vec::with_capacity(count);
        for number in (0u32..).map(NodeNo).take(count) {
            let least = if self.placement.eviction_bounds.is_outdated(number) {
                self.node(number).and_then(|node| self.least_cost_now(node, ask))
            } else {
                let asked = ask.asks.iter().zip(&eviction_bounds);
                let here = asked.map(|((_, quanta), of_class)| (quanta.0, &of_class[number.0 as usize]));
                least_cost(here, ask.priority, number)
            };
            let Some(least) = least else { continue };
            // The planner checks the other filters where necessary. The pool and the labels are checked here because
            // they may exclude most nodes.
            let may_suit = |node: &Node| {
                ask.pool.is_none_or(|pool| pool == node.pool) && (ask.labels.is_empty() || self.suits(node, ask))
            };
            if entry(&self.nodes, number.0).is_some_and(|node| node.is_available() && may_suit(node)) {
                costs.push(least);
            }
        }
        costs
    }

    /// Such a lower bound for a node whose stored bounds are outdated.
    fn least_cost_now(&self, node: &Node, ask: &Ask<'_>) -> Option<EvictionCost> {
        let classes = || node.classes.iter().zip(self.placement.evictables.on(node.number));
        let bound = |(class, _): &(_, _)| {
            let found = classes().find(|(found, _)| found.class == *class);
            found.map(|(found, evictable)| EvictionBound::of(found, evictable))
        };
        let bounds: SmallVec<[EvictionBound; 4]> = ask.asks.iter().map(bound).collect::<Option<_>>()?;
        let asked = ask.asks.iter().map(|(_, quanta)| quanta.0).zip(&bounds);
        least_cost(asked, ask.priority, node.number)
    }
}

impl State {
    /// Quanta of a class on a node that are held below a priority and may be evicted.
    pub fn evictable_on(&self, node: NodeNo, class: ClassNo, below: Priority) -> u64 {
        let is_victim = |lease: &&Lease| lease.class == class && lease.priority < below && lease.is_evictable();
        self.chain_of(node).filter(is_victim).map(|lease| lease.quanta.0).sum()
    }

    fn unit_of(lease: &Lease) -> EvictionUnit {
        lease.of.map_or(EvictionUnit::Request(lease.gang), EvictionUnit::Allocation)
    }

    /// The held leases of a gang; `None` if one of them must not be evicted.
    fn members_of(&self, unit: EvictionUnit) -> Option<Vec<&Lease>> {
        let numbers: Vec<LeaseNo> = match unit {
            EvictionUnit::Allocation(number) => self.allocation(number)?.lease_numbers().collect(),
            EvictionUnit::Request(first) => {
                let gang = self.lease(first).map_or(16, |lease| u64::from(lease.gang_len));
                (first.0..first.0 + gang).map(LeaseNo).collect()
            }
        };
        let members = numbers.into_iter().filter_map(|number| self.lease(number));
        let members: Vec<&Lease> =
            members.filter(|lease| Self::unit_of(lease) == unit && lease.phase.is_held()).collect();
        members.iter().all(|lease| lease.is_evictable()).then_some(members)
    }
}
