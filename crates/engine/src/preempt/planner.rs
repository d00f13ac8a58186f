//! Where the replicas of one gang could go, one after the other, and who falls for each.
//!
//! Nodes are looked at in the order of the least that eviction there could hurt; one that was looked at stands in line
//! again with what it does hurt. So the first that comes up a second time is the best of all, and nodes that could not
//! be better were never looked at. The plan is the one that looking at every node would give.

use super::glance::Glance;
use super::trial::Trial;
use super::{Pain, Unit, least_pain};
use crate::admission::NodeQuotas;
use crate::ask::Ask;
use crate::evictable::{EvictableNode, count};
use crate::gang::spot;
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

/// One gang that could fall.
struct Victim<'a> {
    priority: Priority,
    /// Of the member that would end last.
    ends: Instant,
    first: LeaseNo,
    unit: Unit,
    /// Of all its members, wherever they are.
    quanta: u64,
    /// Those on the node that is looked at.
    here: SmallVec<[&'a Lease; 2]>,
}

/// A node in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// What eviction there hurts, once it is planned; at least, before.
    pain: Pain,
    is_planned: bool,
    /// How often the plan had changed the node when it was put in line.
    changes: u32,
}

/// Who falls, with their leases.
pub(super) type Fallen = BTreeMap<Unit, Vec<LeaseNo>>;
type Within<'a> = Option<&'a dyn Fn(&Node) -> bool>;

pub(super) struct Planner<'a> {
    view: View<'a>,
    ask: &'a Ask<'a>,
    of_nodes: &'a NodeQuotas,
    /// Where replicas may lie, besides what the ask says.
    within: Within<'a>,
    tentative: Tentative,
    fallen: Fallen,
    line: BinaryHeap<Reverse<Candidate>>,
    /// Who would fall on the nodes that were looked at.
    plans: BTreeMap<NodeNo, Vec<Unit>>,
    /// How often the plan has changed a node, where it has.
    changes: BTreeMap<NodeNo, u32>,
    /// What may still be evicted where something falls.
    evictable: BTreeMap<NodeNo, EvictableNode>,
}

impl<'a> Planner<'a> {
    /// Plans on the nodes of `bounds` that the ask allows and that lie `within`.
    pub(super) fn new(
        view: View<'a>,
        ask: &'a Ask<'a>,
        of_nodes: &'a NodeQuotas,
        bounds: &[Pain],
        within: Within<'a>,
    ) -> Self {
        let lies_within = |pain: &&Pain| within.is_none_or(|within| view.node(pain.3).is_some_and(within));
        let candidate = |pain: &Pain| Reverse(Candidate { pain: *pain, is_planned: false, changes: 0 });
        let line: Vec<_> = bounds.iter().filter(lies_within).map(candidate).collect();
        Self {
            view,
            ask,
            of_nodes,
            within,
            tentative: Tentative::default(),
            fallen: Fallen::new(),
            line: line.into(),
            plans: BTreeMap::new(),
            changes: BTreeMap::new(),
            evictable: BTreeMap::new(),
        }
    }

    pub(super) fn place_all(mut self) -> Option<(Vec<ReplicaPlacement>, Fallen)> {
        let mut places = Vec::new();
        for _ in 0..self.ask.replicas {
            places.push(self.place_one(&places)?);
        }
        Some((places, self.fallen))
    }

    /// The place of one more replica, with those that must fall for it.
    pub(super) fn place_one(&mut self, before: &[ReplicaPlacement]) -> Option<ReplicaPlacement> {
        let number = self.best_node(before)?;
        let node = self.view.state.node(number).expect("a candidate exists");
        let mut changed = BTreeSet::from([number]);
        for unit in self.plans.remove(&number).expect("it was planned") {
            self.fall(unit, &mut changed);
        }
        let members = self.view.state.fit(node, self.ask, &self.tentative).expect("it was planned so");
        let placed = Placed { node: number, pool: node.pool, members, verdicts: Vec::new(), weighing: None };
        self.tentative.take(self.view.state, &placed, self.of_nodes);
        for number in changed {
            self.line_up_again(number);
        }
        Some(ReplicaPlacement { node: number, members: placed.members })
    }

    /// The node where one more replica hurts least.
    fn best_node(&mut self, before: &[ReplicaPlacement]) -> Option<NodeNo> {
        let lies_well = self.lies_well(before);
        let mut refused = Vec::new();
        let mut best = None;
        while let Some(Reverse(candidate)) = self.line.pop() {
            let number = candidate.pain.3;
            let node = self.view.state.node(number).expect("a candidate exists");
            // One that the plan has changed stands in line a second time, as it is now. One that lies too close to
            // an earlier replica will not lie farther away.
            if candidate.changes != self.changes_of(number) || !lies_well(node) {
                continue;
            }
            // What its quotas say may be another matter after the next replica.
            if !self.is_allowed(node) {
                refused.push(Reverse(candidate));
                continue;
            }
            if candidate.is_planned {
                best = Some(number);
                break;
            }
            if self.suits(node)
                && let Some((pain, fallen)) = self.plan_on(node)
            {
                self.plans.insert(number, fallen);
                self.line.push(Reverse(Candidate { pain, is_planned: true, ..candidate }));
            }
        }
        self.line.extend(refused);
        best
    }

    fn changes_of(&self, node: NodeNo) -> u32 {
        self.changes.get(&node).copied().unwrap_or(0)
    }

    /// The plan has changed a node: it stands in line as it is now.
    fn line_up_again(&mut self, number: NodeNo) {
        let node = self.view.state.node(number).expect("what the plan changes exists");
        let changes = self.changes_of(number) + 1;
        self.changes.insert(number, changes);
        if let Some(pain) = self.least(node)
            && self.within.is_none_or(|within| within(node))
        {
            self.line.push(Reverse(Candidate { pain, is_planned: false, changes }));
        }
    }

    pub(super) fn suits(&self, node: &Node) -> bool {
        self.view.state.suits(node, self.ask)
    }

    /// Whether the quotas that look at nodes allow one more replica here.
    pub(super) fn is_allowed(&self, node: &Node) -> bool {
        self.of_nodes.is_empty() || {
            let first = Wanted::one(self.ask, self.of_nodes);
            let wanted = Wanted { tentative: &self.tentative, ..first };
            self.view.state.judge(node, &wanted).is_ok()
        }
    }

    /// Whether a node lies apart from the replicas before, where the spec wants that.
    fn lies_well(&self, before: &[ReplicaPlacement]) -> impl Fn(&Node) -> bool + use<> {
        let apart = self.ask.apart;
        let nodes = before.iter().filter_map(|place| self.view.state.node(place.node));
        let spots: BTreeSet<_> = nodes.filter_map(|node| spot(node, apart?)).collect();
        move |node| match apart {
            Some(domain) => spot(node, domain).is_some_and(|spot| !spots.contains(&spot)),
            None => true,
        }
    }

    /// The least that eviction could hurt on a node that the plan has changed.
    fn least(&self, node: &Node) -> Option<Pain> {
        let evictable = self.evictable.get(&node.number).unwrap_or(self.view.placement.evictables.on(node.number));
        let classes = || self.tentative.classes(node).iter().zip(evictable);
        let glance = |(class, _): &(_, _)| {
            classes().find(|(found, _)| found.class == *class).map(|(found, evictable)| Glance::of(found, evictable))
        };
        let glances: SmallVec<[Glance; 4]> = self.ask.asks.iter().map(glance).collect::<Option<_>>()?;
        let asked = self.ask.asks.iter().map(|(_, quanta)| quanta.0).zip(&glances);
        least_pain(asked, self.ask.priority, node.number)
    }

    /// Who must fall on this node for one replica to fit, and how much that hurts.
    pub(super) fn plan_on(&self, node: &Node) -> Option<(Pain, Vec<Unit>)> {
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
        let mut pain: Pain = (Priority::Scavenger, 0, 0, node.number);
        let mut needed = Vec::new();
        for victim in victims[..added].iter().rev() {
            trial.change(&victim.here, true);
            if trial.fits() {
                continue;
            }
            trial.change(&victim.here, false);
            pain = (pain.0.max(victim.priority), pain.1 + 1, pain.2 + victim.quanta, pain.3);
            needed.push(victim.unit);
        }
        Some((pain, needed))
    }

    /// The gangs on a node that could fall, in the order in which they would.
    fn victims_on(&self, node: &Node) -> Vec<Victim<'a>> {
        let mut victims: Vec<Victim<'a>> = Vec::with_capacity(16);
        for lease in self.view.state.chain_of(node.number) {
            if !lease.is_evictable() || lease.priority >= self.ask.priority {
                continue;
            }
            let unit = State::unit_of(lease);
            // Leases of one request lie on one node and come one after the other; gangs of several replicas do not.
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
                let each = || members.iter();
                victim.ends = each().map(|lease| lease.expires_at).max().unwrap_or(lease.expires_at);
                victim.first = each().map(|lease| lease.number).min().unwrap_or(lease.number);
                victim.quanta = each().map(|lease| lease.quanta.0).sum();
            }
            victims.push(victim);
        }
        // A gang of which one member is ending already cannot fall a second time.
        if node.ending > 0 {
            victims.retain(|victim| self.view.state.members_of(victim.unit).is_some());
        }
        if !self.fallen.is_empty() {
            victims.retain(|victim| !self.fallen.contains_key(&victim.unit));
        }
        victims.sort_unstable_by_key(|victim| (victim.priority, victim.ends, victim.first));
        victims
    }

    /// The whole gang falls, wherever its leases are.
    fn fall(&mut self, unit: Unit, changed: &mut BTreeSet<NodeNo>) {
        let members = self.view.state.members_of(unit).unwrap_or_default();
        for lease in &members {
            self.tentative.vacate(self.view.state.node(lease.node).expect("a lease's node exists"), lease);
            let known = || self.view.placement.evictables.on(lease.node).clone();
            count(self.evictable.entry(lease.node).or_insert_with(known), lease, false);
            changed.insert(lease.node);
        }
        self.fallen.insert(unit, members.iter().map(|lease| lease.number).collect());
    }
}
