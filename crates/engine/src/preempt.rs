//! Whom an allocation evicts (SEMANTICS 5).
//!
//! Victims have strictly lower priority, are never sensitive, and fall as whole gangs: lowest priority first, then
//! the one that would end first, then the lower lease. On each node they are added in that order until a replica
//! fits; then, in reverse order, each that turns out unneeded is put back. Among nodes the one wins whose
//! highest-priority victim is lowest, then the one with the fewest gangs, then the fewest quanta, then the lower
//! node. Nothing falls unless the whole gang then fits.

use crate::evictable::Evictable;
use crate::gang::{GangAsk, NodeQuotas, Spot, spot};
use crate::lease::Lease;
use crate::node::{Node, NodeClass};
use crate::placement::{Placed, Tentative};
use crate::state::State;
use leasehold_model::body::{Leases, Place};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{AllocationNo, ClassNo, Instant, LeaseNo, NodeNo, Priority, Quanta};
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// What to evict, and where the replicas lie after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) places: Vec<Place>,
    pub(crate) victims: Leases,
    pub(crate) quanta: u64,
}

/// What falls together: the leases of one allocation, or of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Allocation(AllocationNo),
    Request(LeaseNo),
}

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

impl State {
    /// What would have to fall for the gang to fit. `None` if nothing would do.
    pub(crate) fn plan_preemption(&self, ask: &GangAsk<'_>, of_nodes: &NodeQuotas) -> Option<Plan> {
        // On claimed nodes there is only sensitive work, which never falls.
        if ask.spec.priority == Priority::Scavenger || ask.claimer.is_some() {
            return None;
        }
        // The cheapest no: nothing is held that could fall.
        let none_could_fall = ask.spec.asks.iter().all(|(class, _)| {
            let held = self.evictable.get(class.0 as usize).copied().unwrap_or_default();
            held[..ask.spec.priority.index()].iter().all(|quanta| *quanta == 0)
        });
        if none_could_fall {
            return None;
        }
        let (places, fallen) = match ask.spec.together.filter(|_| ask.spec.replicas > 1) {
            None => Planner::new(self, ask, of_nodes, &|_| true).place_all()?,
            Some(domain) => {
                // The domain of the first place that hurts least, then the next that was not tried.
                let mut tried: BTreeSet<Spot> = BTreeSet::new();
                loop {
                    let untried = |node: &Node| spot(node, domain).is_some_and(|spot| !tried.contains(&spot));
                    let first = Planner::new(self, ask, of_nodes, &untried).place_one(&[])?;
                    let here = self.node(first.node).and_then(|node| spot(node, domain));
                    let within = |node: &Node| spot(node, domain) == here;
                    if let Some(planned) = Planner::new(self, ask, of_nodes, &within).place_all() {
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
    pub(crate) fn sacrifices(&self, ask: &GangAsk<'_>, of_nodes: &NodeQuotas, top: usize) -> Vec<Sacrifice> {
        if ask.spec.priority == Priority::Scavenger || ask.claimer.is_some() {
            return Vec::new();
        }
        let planner = Planner::new(self, ask, of_nodes, &|_| true);
        let nodes = planner.bounds.iter().filter_map(|least| self.node(least.3));
        let mut all: Vec<Sacrifice> = nodes
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

struct Planner<'a> {
    state: &'a State,
    ask: &'a GangAsk<'a>,
    of_nodes: &'a NodeQuotas,
    /// Where replicas may lie, besides what the ask says.
    within: &'a dyn Fn(&Node) -> bool,
    tentative: Tentative,
    fallen: Fallen,
    /// Nodes that suit, with the least that eviction there could hurt as the state has it.
    bounds: Vec<Pain>,
}

type Fallen = BTreeMap<Unit, Vec<LeaseNo>>;

impl<'a> Planner<'a> {
    /// Plans on nodes that the ask allows and that lie `within`.
    fn new(
        state: &'a State,
        ask: &'a GangAsk<'a>,
        of_nodes: &'a NodeQuotas,
        within: &'a dyn Fn(&Node) -> bool,
    ) -> Self {
        let tentative = Tentative::default();
        let mut planner = Self { state, ask, of_nodes, within, tentative, fallen: Fallen::new(), bounds: Vec::new() };
        for node in state.nodes() {
            if let Some(least) = planner.least(node)
                && state.suits(node, ask)
                && within(node)
            {
                planner.bounds.push(least);
            }
        }
        planner
    }

    fn place_all(mut self) -> Option<(Vec<Place>, Fallen)> {
        let mut places = Vec::new();
        for _ in 0..self.ask.spec.replicas {
            places.push(self.place_one(&places)?);
        }
        Some((places, self.fallen))
    }

    /// The place of one more replica, with those that must fall for it.
    fn place_one(&mut self, before: &[Place]) -> Option<Place> {
        let lies_well = self.lies_well(before);
        let untouched = self.bounds.iter().filter(|least| !self.tentative.touches(least.3));
        let touched = self.tentative.nodes().filter_map(|number| {
            let node = self.state.node(number)?;
            self.least(node).filter(|_| self.state.suits(node, self.ask) && (self.within)(node))
        });
        let mut candidates: BinaryHeap<Reverse<Pain>> =
            untouched.copied().chain(touched).map(Reverse).collect::<Vec<_>>().into();
        let mut best: Option<(Pain, Vec<Unit>)> = None;
        while let Some(Reverse(least)) = candidates.pop() {
            if best.as_ref().is_some_and(|(pain, _)| *pain < least) {
                break;
            }
            let node = self.state.node(least.3).expect("a candidate exists");
            if !lies_well(node) {
                continue;
            }
            if let Some((pain, fallen)) = self.plan_on(node)
                && best.as_ref().is_none_or(|(found, _)| pain < *found)
            {
                best = Some((pain, fallen));
            }
        }
        let (pain, fallen) = best?;
        let node = self.state.node(pain.3).expect("a candidate exists");
        for unit in fallen {
            self.fall(unit);
        }
        let members = self.state.fit(node, self.ask, &self.tentative).expect("it was planned so");
        let placed = Placed { node: node.number, pool: node.pool, members, verdicts: Vec::new(), weighing: None };
        self.tentative.take(self.state, &placed, self.of_nodes);
        Some(Place { node: node.number, members: placed.members })
    }

    /// Whether a node lies apart from the replicas before, where the spec wants that.
    fn lies_well(&self, before: &[Place]) -> impl Fn(&Node) -> bool + use<> {
        let apart = self.ask.spec.apart;
        let nodes = before.iter().filter_map(|place| self.state.node(place.node));
        let spots: BTreeSet<_> = nodes.filter_map(|node| spot(node, apart?)).collect();
        move |node| match apart {
            Some(domain) => spot(node, domain).is_some_and(|spot| !spots.contains(&spot)),
            None => true,
        }
    }

    /// The least that eviction on this node could hurt; `None` if it cannot make room. Never more than it does.
    fn least(&self, node: &Node) -> Option<Pain> {
        let (mut highest, mut gangs, mut quanta) = (Priority::Scavenger, 0, 0u64);
        for (class, asked) in &self.ask.spec.asks {
            let class = self.tentative.class(node, *class)?;
            let (of_class, leases, missing) = least_of(class, asked.0, self.ask.spec.priority)?;
            highest = highest.max(of_class);
            // Leases that share a gang may fall together: with others of their class, or of other classes.
            let least = if class.evictable_in_crowds > 0 { leases.min(1) } else { leases };
            gangs = if class.evictable_in_gangs > 0 { gangs.max(least) } else { gangs + least };
            quanta += missing;
        }
        Some((highest, gangs, quanta, node.number))
    }

    /// Who must fall on this node for one replica to fit, and how much that hurts.
    fn plan_on(&self, node: &Node) -> Option<(Pain, Vec<Unit>)> {
        let wanted = State::wanted(self.ask, self.of_nodes, &self.tentative, &[], &|_| true);
        self.state.judge(node, &wanted).ok()?;
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
        for lease in self.state.chain_of(node.number) {
            if !lease.is_evictable() || lease.priority >= self.ask.spec.priority {
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
                let Some(members) = self.state.members_of(unit) else { continue };
                let each = || members.iter();
                victim.ends = each().map(|lease| lease.expires_at).max().unwrap_or(lease.expires_at);
                victim.first = each().map(|lease| lease.number).min().unwrap_or(lease.number);
                victim.quanta = each().map(|lease| lease.quanta.0).sum();
            }
            victims.push(victim);
        }
        // A gang of which one member is ending already cannot fall a second time.
        if node.ending > 0 {
            victims.retain(|victim| self.state.members_of(victim.unit).is_some());
        }
        if !self.fallen.is_empty() {
            victims.retain(|victim| !self.fallen.contains_key(&victim.unit));
        }
        victims.sort_unstable_by_key(|victim| (victim.priority, victim.ends, victim.first));
        victims
    }

    /// The whole gang falls, wherever its leases are.
    fn fall(&mut self, unit: Unit) {
        let members = self.state.members_of(unit).unwrap_or_default();
        for lease in &members {
            self.tentative.vacate(self.state.node(lease.node).expect("a lease's node exists"), lease);
        }
        self.fallen.insert(unit, members.iter().map(|lease| lease.number).collect());
    }
}

/// A node with some of its leases gone: only the classes that matter, and only what is free of them.
struct Trial<'a> {
    asks: &'a [(ClassNo, Quanta)],
    classes: SmallVec<[Room; 3]>,
}

/// What is free of one class, on each device where there are any.
struct Room {
    class: ClassNo,
    unit: u64,
    free: u64,
    devices: SmallVec<[u64; 16]>,
}

impl Room {
    fn of(class: &NodeClass) -> Self {
        let unit = class.per_device;
        let devices = class.devices.iter().map(|used| unit - used).collect();
        Self { class: class.class, unit, free: class.free(), devices }
    }

    /// As `NodeClass::choose_devices` has it.
    fn fits(&self, asked: u64) -> bool {
        if asked > self.free {
            return false;
        }
        match self.unit {
            0 => true,
            unit if asked <= unit => self.devices.iter().any(|free| *free >= asked),
            unit => self.devices.iter().filter(|free| **free == unit).count() as u64 >= asked / unit,
        }
    }

    fn change(&mut self, lease: &Lease, back: bool) {
        let by = |of: &mut u64, quanta: u64| *of = if back { *of - quanta } else { *of + quanta };
        by(&mut self.free, lease.quanta.0);
        let each = lease.quanta.0 / u64::from(lease.devices.count_ones().max(1));
        let mut rest = lease.devices;
        while rest != 0 {
            by(&mut self.devices[rest.trailing_zeros() as usize], each);
            rest &= rest - 1;
        }
    }
}

impl<'a> Trial<'a> {
    fn new(ask: &'a GangAsk<'a>, node: &Node, tentative: &Tentative) -> Self {
        let asked = ask.spec.asks.iter().filter_map(|(class, _)| tentative.class(node, *class));
        Self { asks: &ask.spec.asks, classes: asked.map(Room::of).collect() }
    }

    fn change(&mut self, leases: &[&Lease], back: bool) {
        for lease in leases {
            let of_class = self.classes.iter_mut().find(|room| room.class == lease.class);
            of_class.into_iter().for_each(|room| room.change(lease, back));
        }
    }

    fn fits(&self) -> bool {
        self.asks.iter().zip(&self.classes).all(|((_, quanta), room)| room.fits(quanta.0))
    }
}

/// The least that must fall of one class for `asked` to fit: the highest priority among it, how many leases and how
/// many quanta. `None` if all of lower priority would not be enough.
fn least_of(class: &NodeClass, asked: u64, below: Priority) -> Option<(Priority, usize, u64)> {
    let priorities = || Priority::ALL.iter().copied().filter(|priority| *priority < below);
    let up_to = |on: &Evictable, priority: Priority| on.quanta[..=priority.index()].iter().sum::<u64>();
    let unit = class.per_device;
    if unit == 0 {
        let missing = asked.saturating_sub(class.free());
        let highest = priorities().find(|priority| up_to(&class.evictable[0], *priority) >= missing)?;
        return Some((highest, usize::from(missing > 0), missing));
    }
    let devices = || class.devices.iter().zip(&class.evictable);
    if asked <= unit {
        let missing = |used: u64| asked.saturating_sub(unit - used);
        let enough = |priority| devices().any(|(used, on)| up_to(on, priority) >= missing(*used));
        let highest = priorities().find(|priority| enough(*priority))?;
        // Those of lower priority fall first: where they are enough, no other does.
        let could = devices().filter(|(used, on)| up_to(on, highest) >= missing(**used));
        let least = could.map(|(used, _)| missing(*used)).min()?;
        return Some((highest, usize::from(least > 0), least));
    }
    let wanted = usize::try_from(asked / unit).ok()?;
    let clear = |priority| devices().filter(|(used, on)| up_to(on, priority) == **used).count();
    let highest = priorities().find(|priority| clear(*priority) >= wanted)?;
    let could = || devices().filter(|(used, on)| up_to(on, highest) == **used);
    let count = |on: &Evictable| on.leases[..=highest.index()].iter().sum();
    let mut counts: SmallVec<[u32; 16]> = could().map(|(_, on)| count(on)).collect();
    let mut sizes: SmallVec<[u64; 16]> = could().map(|(used, _)| *used).collect();
    counts.sort_unstable();
    sizes.sort_unstable();
    let quanta: u64 = sizes[..wanted].iter().sum();
    let leases = usize::try_from(counts[..wanted].iter().sum::<u32>()).ok()?;
    Some((highest, leases.max(usize::from(quanta > 0)), quanta))
}
