//! Plans where the replicas of one gang are placed, one after the other, and which gangs are evicted for each.
//!
//! Nodes are examined in the order of the lower bounds of their eviction cost. An examined node is put back into the
//! order with its exact cost. The first examined node that comes up is therefore the best of all, and nodes that could
//! not be better are never examined. The plan is the same as examining every node would give.

use super::eviction_bound::EvictionBound;
use super::trial::Trial;
use super::{EvictionCost, EvictionUnit, least_cost};
use crate::admission::NodeQuotas;
use crate::ask::Ask;
use crate::evictable::{EvictableNode, count};
use crate::gang::domain_of;
use crate::lease::Lease;
use crate::node::Node;
use crate::placement::{Placed, Tentative, Wanted};
use crate::state::State;
use crate::view::View;
use leasehold_model::body::ReplicaPlacement;
use leasehold_model::{Instant, LeaseNo, NodeNo, Priority};
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A gang that could be evicted.
struct Victim<'a> {
    priority: Priority,
    /// The latest deadline of its members.
    ends: Instant,
    first: LeaseNo,
    unit: EvictionUnit,
    /// The sum over all its members, on all nodes.
    quanta: u64,
    /// Its members on the node that is examined.
    here: SmallVec<[&'a Lease; 2]>,
}

/// A node that may be chosen for the next replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The exact cost if `is_planned`, otherwise a lower bound.
    cost: EvictionCost,
    is_planned: bool,
    /// How often the plan had changed the node when this candidate was added; outdated candidates are skipped.
    changes: u32,
}

/// The gangs to evict, with their leases.
pub(super) type Victims = BTreeMap<EvictionUnit, Vec<LeaseNo>>;
type Within<'a> = Option<&'a dyn Fn(&Node) -> bool>;

pub(super) struct Planner<'a> {
    view: View<'a>,
    ask: &'a Ask<'a>,
    of_nodes: &'a NodeQuotas,
    /// A filter on nodes, besides those of the ask.
    within: Within<'a>,
    tentative: Tentative,
    victims: Victims,
    candidates: BinaryHeap<Reverse<Candidate>>,
    /// Which gangs would be evicted on the nodes that were examined.
    plans: BTreeMap<NodeNo, Vec<EvictionUnit>>,
    /// How often the plan has changed each node.
    changes: BTreeMap<NodeNo, u32>,
    /// What can still be evicted on the nodes of victims.
    evictable: BTreeMap<NodeNo, EvictableNode>,
}

impl<'a> Planner<'a> {
    /// Plans on the nodes of `bounds` that the ask and the filter `within` allow.
    pub(super) fn new(
        view: View<'a>,
        ask: &'a Ask<'a>,
        of_nodes: &'a NodeQuotas,
        bounds: &[EvictionCost],
        within: Within<'a>,
    ) -> Self {
        let is_within = |cost: &&EvictionCost| within.is_none_or(|within| view.node(cost.node).is_some_and(within));
        let candidate = |cost: &EvictionCost| Reverse(Candidate { cost: *cost, is_planned: false, changes: 0 });
        let candidates: Vec<_> = bounds.iter().filter(is_within).map(candidate).collect();
        Self {
            view,
            ask,
            of_nodes,
            within,
            tentative: Tentative::default(),
            victims: Victims::new(),
            candidates: candidates.into(),
            plans: BTreeMap::new(),
            changes: BTreeMap::new(),
            evictable: BTreeMap::new(),
        }
    }

    /// Plans on nodes that some capacity has left already.
    pub(super) fn after(mut self, base: &Tentative) -> Self {
        self.tentative = base.clone();
        base.nodes().for_each(|node| self.add_changed_node(node));
        self
    }

    pub(super) fn place_all(mut self) -> Option<(Vec<ReplicaPlacement>, Victims)> {
        let mut places = Vec::new();
        for _ in 0..self.ask.replicas {
            places.push(self.place_one(&places)?);
        }
        Some((places, self.victims))
    }

    /// Places one more replica, and evicts what is necessary for it.
    pub(super) fn place_one(&mut self, before: &[ReplicaPlacement]) -> Option<ReplicaPlacement> {
        let number = self.best_node(before)?;
        let node = self.view.state.node(number).expect("a candidate exists");
        let mut changed = BTreeSet::from([number]);
        for unit in self.plans.remove(&number).expect("the chosen node was planned") {
            self.evict(unit, &mut changed);
        }
        let members = self.view.state.fit(node, self.ask, &self.tentative).expect("the planned evictions make it fit");
        let placed = Placed { node: number, pool: node.pool, members, verdicts: Vec::new(), weighing: None };
        self.tentative.take(self.view.state, &placed, self.of_nodes);
        for number in changed {
            self.add_changed_node(number);
        }
        Some(ReplicaPlacement { node: number, members: placed.members })
    }

    /// The node with the lowest eviction cost for one more replica.
    fn best_node(&mut self, before: &[ReplicaPlacement]) -> Option<NodeNo> {
        let is_apart = self.is_apart_from(before);
        let mut over_quota = Vec::new();
        let mut best = None;
        while let Some(Reverse(candidate)) = self.candidates.pop() {
            let number = candidate.cost.node;
            let node = self.view.state.node(number).expect("a candidate exists");
            // A node that the plan has changed was added again with its new bound. A node that is not apart from an
            // earlier replica cannot become so.
            if candidate.changes != self.changes_of(number) || !is_apart(node) {
                continue;
            }
            // Quotas may allow the node after the next replica has been placed.
            if !self.is_allowed(node) {
                over_quota.push(Reverse(candidate));
                continue;
            }
            if candidate.is_planned {
                best = Some(number);
                break;
            }
            if self.suits(node)
                && let Some((cost, victims)) = self.plan_on(node)
            {
                self.plans.insert(number, victims);
                self.candidates.push(Reverse(Candidate { cost, is_planned: true, ..candidate }));
            }
        }
        self.candidates.extend(over_quota);
        best
    }

    fn changes_of(&self, node: NodeNo) -> u32 {
        self.changes.get(&node).copied().unwrap_or(0)
    }

    /// Adds a node that the plan has changed again, with its new bound.
    fn add_changed_node(&mut self, number: NodeNo) {
        let node = self.view.state.node(number).expect("a changed node exists");
        let changes = self.changes_of(number) + 1;
        self.changes.insert(number, changes);
        if let Some(cost) = self.least_cost_on(node)
            && self.within.is_none_or(|within| within(node))
        {
            self.candidates.push(Reverse(Candidate { cost, is_planned: false, changes }));
        }
    }

    pub(super) fn suits(&self, node: &Node) -> bool {
        self.view.state.suits(node, self.ask)
    }

    /// Whether the quotas that depend on the node allow one more replica on it.
    pub(super) fn is_allowed(&self, node: &Node) -> bool {
        self.of_nodes.is_empty() || {
            let first = Wanted::one(self.ask, self.of_nodes);
            let wanted = Wanted { tentative: &self.tentative, ..first };
            self.view.state.judge(node, &wanted).is_ok()
        }
    }

    /// A filter for nodes that are apart from the earlier replicas, if the spec requires that.
    fn is_apart_from(&self, before: &[ReplicaPlacement]) -> impl Fn(&Node) -> bool + use<> {
        let apart = self.ask.apart;
        let nodes = before.iter().filter_map(|place| self.view.state.node(place.node));
        let domains: BTreeSet<_> = nodes.filter_map(|node| domain_of(node, apart?)).collect();
        move |node| match apart {
            Some(domain) => domain_of(node, domain).is_some_and(|id| !domains.contains(&id)),
            None => true,
        }
    }

    /// A lower bound for the eviction cost on a node that the plan has changed.
    fn least_cost_on(&self, node: &Node) -> Option<EvictionCost> {
        let evictable = self.evictable.get(&node.number).unwrap_or(self.view.placement.evictables.on(node.number));
        let classes = || self.tentative.classes(node).iter().zip(evictable);
        let bound = |(class, _): &(_, _)| {
            classes()
                .find(|(found, _)| found.class == *class)
                .map(|(found, evictable)| EvictionBound::of(found, evictable))
        };
        let eviction_bounds: SmallVec<[EvictionBound; 4]> = self.ask.asks.iter().map(bound).collect::<Option<_>>()?;
        let asked = self.ask.asks.iter().map(|(_, quanta)| quanta.0).zip(&eviction_bounds);
        least_cost(asked, self.ask.priority, node.number)
    }

    /// Which gangs must be evicted on this node for one replica to fit, and what that costs.
    pub(super) fn plan_on(&self, node: &Node) -> Option<(EvictionCost, Vec<EvictionUnit>)> {
        let mut trial = Trial::new(self.ask, node, &self.tentative);
        let mut fits = trial.fits();
        let victims = if fits { Vec::new() } else { self.victims_on(node) };
        let mut added = 0;
        while !fits && added < victims.len() {
            trial.change(&victims[added].here, false);
            added += 1;
            fits = trial.fits();
        }
        if !fits {
            return None;
        }
        let mut cost = EvictionCost { highest: Priority::Scavenger, gangs: 0, quanta: 0, node: node.number };
        let mut needed = Vec::new();
        for victim in victims[..added].iter().rev() {
            trial.change(&victim.here, true);
            if trial.fits() {
                continue;
            }
            trial.change(&victim.here, false);
            cost.highest = cost.highest.max(victim.priority);
            cost.gangs += 1;
            cost.quanta += victim.quanta;
            needed.push(victim.unit);
        }
        Some((cost, needed))
    }

    /// The gangs on a node that could be evicted, in the order of eviction.
    fn victims_on(&self, node: &Node) -> Vec<Victim<'a>> {
        let mut victims: Vec<Victim<'a>> = Vec::with_capacity(16);
        for lease in self.view.state.chain_of(node.number) {
            let is_lower = lease.is_evictable() && lease.priority < self.ask.priority;
            if !is_lower || !self.view.state.ran_long_enough(lease, self.ask.now) {
                continue;
            }
            let unit = State::unit_of(lease);
            // Only a lease whose gang has other leases can belong to a victim that is already listed.
            let known =
                (lease.gang_len > 1 || lease.crowd).then(|| victims.iter_mut().find(|known| known.unit == unit));
            if let Some(known) = known.flatten() {
                known.here.push(lease);
                if !lease.crowd {
                    known.ends = known.ends.max(lease.expires_at);
                    known.first = known.first.min(lease.number);
                    known.quanta += lease.quanta.0;
                }
                continue;
            }
            let mut victim = Victim {
                priority: lease.priority,
                ends: lease.expires_at,
                first: lease.number,
                unit,
                quanta: lease.quanta.0,
                here: smallvec![lease],
            };
            if lease.crowd {
                let Some(members) = self.view.state.members_of(unit) else { continue };
                if !members.iter().all(|lease| self.view.state.ran_long_enough(lease, self.ask.now)) {
                    continue;
                }
                let each = || members.iter();
                victim.ends = each().map(|lease| lease.expires_at).max().unwrap_or(lease.expires_at);
                victim.first = each().map(|lease| lease.number).min().unwrap_or(lease.number);
                victim.quanta = each().map(|lease| lease.quanta.0).sum();
            }
            victims.push(victim);
        }
        // A gang of which one member is already ending cannot be evicted.
        if node.ending > 0 {
            victims.retain(|victim| self.view.state.members_of(victim.unit).is_some());
        }
        if !self.victims.is_empty() {
            victims.retain(|victim| !self.victims.contains_key(&victim.unit));
        }
        victims.sort_unstable_by_key(|victim| (victim.priority, victim.ends, victim.first));
        victims
    }

    /// Evicts a whole gang, on all nodes; these are added to `changed`.
    fn evict(&mut self, unit: EvictionUnit, changed: &mut BTreeSet<NodeNo>) {
        let members = self.view.state.members_of(unit).unwrap_or_default();
        for lease in &members {
            self.tentative.vacate(self.view.state.node(lease.node).expect("a lease's node exists"), lease);
            let known = || self.view.placement.evictables.on(lease.node).clone();
            count(self.evictable.entry(lease.node).or_insert_with(known), lease, false);
            changed.insert(lease.node);
        }
        self.victims.insert(unit, members.iter().map(|lease| lease.number).collect());
    }
}
