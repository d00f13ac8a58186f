//! Whom an allocation evicts (SEMANTICS 5).
//!
//! Victims have strictly lower priority, are never sensitive, and fall as whole gangs: lowest priority first, then
//! the one that would end first, then the lower lease. On each node they are added in that order until a replica
//! fits; then, in reverse order, each that turns out unneeded is put back. Among nodes the one wins whose
//! highest-priority victim is lowest, then the one with the fewest gangs, then the fewest quanta, then the lower
//! node. Nothing falls unless the whole gang then fits.

mod glance;
mod planner;
mod trial;

pub(crate) use glance::Glances;

use crate::admission::NodeQuotas;
use crate::ask::Ask;
use crate::gang::{Spot, spot};
use crate::lease::Lease;
use crate::node::Node;
use crate::state::{State, entry};
use crate::view::View;
use glance::Glance;
use leasehold_model::body::{Leases, ReplicaPlacement};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{AllocationNo, ClassNo, LeaseNo, NodeNo, Priority};
use planner::Planner;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// What to evict, and where the replicas lie after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) places: Vec<ReplicaPlacement>,
    pub(crate) victims: Leases,
    pub(crate) quanta: u64,
}

/// What falls together: the leases of one allocation, or of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Allocation(AllocationNo),
    Request(LeaseNo),
}

/// What one node would have to give up for one replica: compared in the order of the fields, the lesser is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sacrifice {
    /// The highest priority among the victims.
    pub highest: Priority,
    pub gangs: usize,
    pub quanta: u64,
    pub node: NodeNo,
    pub victims: Vec<LeaseNo>,
}

/// How much a node's eviction hurts; the lesser is chosen.
type Pain = (Priority, usize, u64, NodeNo);

/// The least that eviction on a node could hurt, by what is asked of each class; `None` if it cannot make room. Never
/// more than it does.
fn least_pain<'g>(asked: impl Iterator<Item = (u64, &'g Glance)>, below: Priority, node: NodeNo) -> Option<Pain> {
    let (mut highest, mut gangs, mut quanta) = (Priority::Scavenger, 0, 0u64);
    for (asked, glance) in asked {
        let least = glance.least(asked, below)?;
        highest = highest.max(least.highest);
        // Leases that share a gang may fall together: with others of their class, or of other classes.
        let of_class = glance.gangs(least.leases);
        gangs = if glance.shares_gangs() { gangs.max(of_class) } else { gangs + of_class };
        quanta += least.quanta;
    }
    Some((highest, gangs, quanta, node))
}

impl View<'_> {
    /// Whether anything is held that could be evicted for an ask, wherever it is: the cheapest no.
    pub(crate) fn could_evict(&self, ask: &Ask<'_>) -> bool {
        let could_fall = |(class, _): &(_, _)| self.placement.evictables.below(*class, ask.priority) > 0;
        // On claimed nodes there is only sensitive work, which never falls.
        ask.priority != Priority::Scavenger && ask.claimer.is_none() && ask.asks.iter().any(could_fall)
    }

    /// What would have to fall for the gang to fit. `None` if nothing would do.
    pub(crate) fn plan_preemption(&self, ask: &Ask<'_>, of_nodes: &NodeQuotas) -> Option<Plan> {
        let bounds = self.least_pains(ask);
        let (places, fallen) = match ask.home() {
            None => Planner::new(*self, ask, of_nodes, &bounds, None).place_all()?,
            Some(domain) => {
                // The domain of the first place that hurts least, then the next that was not tried.
                let mut tried: BTreeSet<Spot> = BTreeSet::new();
                loop {
                    let untried = |node: &Node| spot(node, domain).is_some_and(|spot| !tried.contains(&spot));
                    let first = Planner::new(*self, ask, of_nodes, &bounds, Some(&untried)).place_one(&[])?;
                    let here = self.node(first.node).and_then(|node| spot(node, domain));
                    let within = |node: &Node| spot(node, domain) == here;
                    if let Some(planned) = Planner::new(*self, ask, of_nodes, &bounds, Some(&within)).place_all() {
                        break planned;
                    }
                    tried.extend(here);
                }
            }
        };
        let mut victims: Vec<LeaseNo> = fallen.values().flatten().copied().collect();
        victims.sort_unstable();
        if victims.is_empty() || victims.len() > LEASES_PER_RECORD_MAX {
            return None;
        }
        let quanta = victims.iter().filter_map(|lease| self.lease(*lease)).map(|lease| lease.quanta.0).sum();
        Some(Plan { places, victims: victims.into_iter().collect(), quanta })
    }

    /// What one more replica would cost on the nodes where that hurts least, the best first.
    pub(crate) fn sacrifices(&self, ask: &Ask<'_>, of_nodes: &NodeQuotas, top: usize) -> Vec<Sacrifice> {
        if ask.priority == Priority::Scavenger || ask.claimer.is_some() {
            return Vec::new();
        }
        let planner = Planner::new(*self, ask, of_nodes, &[], None);
        let mut all: Vec<Sacrifice> = (self.nodes())
            .filter(|node| planner.suits(node) && planner.is_allowed(node))
            .filter_map(|node| {
                let ((highest, gangs, quanta, node), units) = planner.plan_on(node)?;
                let members = units.iter().filter_map(|unit| self.members_of(*unit)).flatten();
                let mut victims: Vec<LeaseNo> = members.map(|lease| lease.number).collect();
                victims.sort_unstable();
                Some(Sacrifice { node, highest, gangs, quanta, victims })
            })
            .collect();
        all.sort_unstable_by_key(|one| (one.highest, one.gangs, one.quanta, one.node));
        all.truncate(top);
        all
    }

    fn is_true_of(&self, node: &Node) -> bool {
        let evictable = self.placement.evictables.on(node.number);
        self.placement.evictables.are_true_of(self.state, node) && self.placement.glances.are_true_of(node, evictable)
    }

    /// The least that eviction could hurt, on each node where it could make room for one replica.
    fn least_pains(&self, ask: &Ask<'_>) -> Vec<Pain> {
        let glances: SmallVec<[&[Glance]; 4]> =
            ask.asks.iter().map(|(class, _)| self.placement.glances.of_class(*class)).collect();
        let count = glances.iter().map(|of_class| of_class.len()).min().unwrap_or(0);
        debug_assert!(self.nodes().all(|node| self.is_true_of(node)), "a node changed behind the placement index");
        let mut pains = Vec::with_capacity(count);
        for number in (0u32..).map(NodeNo).take(count) {
            let asked = ask.asks.iter().zip(&glances);
            let here = asked.map(|((_, quanta), of_class)| (quanta.0, &of_class[number.0 as usize]));
            let Some(least) = least_pain(here, ask.priority, number) else { continue };
            // What the spec says besides is looked at where it matters, but for what leaves few nodes.
            let may_suit = |node: &Node| {
                ask.pool.is_none_or(|pool| pool == node.pool) && (ask.labels.is_empty() || self.suits(node, ask))
            };
            if entry(&self.nodes, number.0).is_some_and(|node| node.is_available() && may_suit(node)) {
                pains.push(least);
            }
        }
        pains
    }
}

impl State {
    /// Quanta of a class on a node that are held below a priority and may be evicted.
    pub fn evictable_on(&self, node: NodeNo, class: ClassNo, below: Priority) -> u64 {
        let falls = |lease: &&Lease| lease.class == class && lease.priority < below && lease.is_evictable();
        self.chain_of(node).filter(falls).map(|lease| lease.quanta.0).sum()
    }

    fn unit_of(lease: &Lease) -> Unit {
        lease.of.map_or(Unit::Request(lease.gang), Unit::Allocation)
    }

    /// The leases of a gang that would be revoked; `None` if it must not fall.
    fn members_of(&self, unit: Unit) -> Option<Vec<&Lease>> {
        let numbers: Vec<LeaseNo> = match unit {
            Unit::Allocation(number) => self.allocation(number)?.lease_numbers().collect(),
            Unit::Request(first) => {
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
