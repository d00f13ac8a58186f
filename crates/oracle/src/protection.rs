//! The protection of a head that has waited too long (SEMANTICS 11 "Waiting"), by trying every set of nodes.

use crate::allocation::Allocation;
use crate::gang::{Occupancy, within};
use crate::lease::{Lease, Phase};
use crate::queue::{Guard, Heads, Line, last_minute};
use crate::violation::{Checked, demand};
use crate::world::{Node, World};
use leasehold_model::body::{HeadProtected, QueueChanged};
use leasehold_model::limits::LIMIT_SPAN_MAX;
use leasehold_model::{AllocationNo, Body, Instant, NodeNo, Priority, Record, Span};
use std::collections::BTreeSet;

/// Why a node may not be used: the head for which it is protected can start then, or it is not known when.
enum Kept {
    Until(Instant),
    Open,
}

impl World {
    fn lives_on(&self, node: NodeNo) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(move |lease| lease.node == node && lease.phase != Phase::Closed)
    }

    /// The head for which a node is protected.
    fn protected_for(&self, node: NodeNo) -> Option<&Allocation> {
        self.allocations.values().find(|found| found.protected_on.contains(&node))
    }

    /// Whether a node is protected for another of at least that priority.
    pub(crate) fn is_protected_from(&self, node: NodeNo, number: AllocationNo, priority: Priority) -> bool {
        self.protected_for(node).is_some_and(|head| head.number != number && head.spec.priority >= priority)
    }

    /// What a protection means now. A head that its quotas or ceilings do not admit holds nobody up.
    fn kept_for(&self, head: &Allocation, now: Instant) -> Option<Kept> {
        if self.gang_terms(&head.demand(), now).refusal.is_some() {
            return None;
        }
        let leases = head.protected_on.iter().flat_map(|node| self.lives_on(*node));
        let ends: Option<Vec<Instant>> = leases.map(|lease| self.firm_end(lease)).collect();
        Some(ends.map_or(Kept::Open, |ends| Kept::Until(ends.into_iter().max().unwrap_or(now).max(now))))
    }

    /// Whether a protected head keeps work from a node. `None`: work for which others would be evicted.
    pub(crate) fn is_kept_from(
        &self,
        node: NodeNo,
        (number, priority): (AllocationNo, Priority),
        stay: Option<(Option<Span>, Priority)>,
        now: Instant,
    ) -> bool {
        if !self.is_protected_from(node, number, priority) {
            return false;
        }
        let head = self.protected_for(node).expect("it was found");
        let gone = stay.and_then(|(walltime, priority)| self.gone_by(node, now, walltime, priority));
        match self.kept_for(head, now) {
            None => false,
            Some(Kept::Until(start)) => gone.is_none_or(|gone| gone > start),
            Some(Kept::Open) => true,
        }
    }

    /// The first head, in the order of lines, that has waited too long and can be protected, with its nodes.
    pub(crate) fn head_to_protect(&self, heads: &Heads, now: Instant) -> Option<(AllocationNo, Vec<NodeNo>)> {
        heads.values().find_map(|rank| {
            let waits = &self.allocations[&rank.3];
            let minute = last_minute(now);
            let is_late = waits.queued_at.saturating_add(self.head_wait_max) < minute;
            if !is_late || !waits.protected_on.is_empty() {
                return None;
            }
            Some((waits.number, self.smallest_set(waits, heads, now)?))
        })
    }

    /// The smallest set of nodes that holds an allocation once everything on them has ended; then the one on which
    /// everything has ended first; then the lowest numbers.
    fn smallest_set(&self, waits: &Allocation, heads: &Heads, now: Instant) -> Option<Vec<NodeNo>> {
        let (spec, demand) = (&waits.spec, waits.demand());
        let taken: BTreeSet<Line> = self
            .nodes
            .iter()
            .filter(|(number, _)| self.protected_for(**number).is_some())
            .map(|(_, n)| Line::at(n))
            .collect();
        let reserved: BTreeSet<NodeNo> = self
            .allocations
            .values()
            .filter_map(|found| found.reservation.as_ref())
            .flat_map(|kept| kept.nodes())
            .collect();
        let may = |number: &NodeNo, node: &Node| {
            let line = Line::at(node);
            heads.get(&line).is_some_and(|head| head.3 == waits.number)
                && !taken.contains(&line)
                && !reserved.contains(number)
                && self.suits(node, &demand, spec)
                && self.lives_on(*number).all(|lease| self.firm_end(lease).is_some())
        };
        let nodes: Vec<NodeNo> =
            self.nodes.iter().filter(|(number, node)| may(number, node)).map(|(n, _)| *n).collect();
        let mut best: Option<(usize, Instant, Vec<NodeNo>)> = None;
        for chosen in 1u32..1 << nodes.len() {
            let set: Vec<NodeNo> = (0..nodes.len()).filter(|i| chosen >> i & 1 == 1).map(|i| nodes[i]).collect();
            if !self.would_hold(waits, &set) {
                continue;
            }
            let ends = set.iter().flat_map(|node| self.lives_on(*node)).filter_map(|lease| self.firm_end(lease)).max();
            // It has to be over before the next maintenance window of each of them.
            let start = ends.unwrap_or(now).max(now);
            if !set.iter().all(|node| self.ends_before_window(*node, start, spec.walltime)) {
                continue;
            }
            let ranked = (set.len(), start, set);
            if best.as_ref().is_none_or(|best| ranked < *best) {
                best = Some(ranked);
            }
        }
        let (.., set) = best?;
        let mut occupancy = Occupancy::of(self);
        set.iter().flat_map(|node| self.lives_on(*node)).for_each(|lease| occupancy.lift(lease, true));
        self.place_gang(&demand, spec, &occupancy, now, &|node| set.contains(&node)).is_ok().then_some(set)
    }

    /// Whether these nodes would hold all replicas if they were empty.
    fn would_hold(&self, waits: &Allocation, set: &[NodeNo]) -> bool {
        let spec = &waits.spec;
        let replicas_on = |node: &Node| {
            let holds = spec.asks.iter().map(|(class, quanta)| {
                let (unit, capacity) = (self.classes[class].quanta_per_unit, node.capacity(*class));
                match self.classes[class].has_devices() && quanta.0 <= unit {
                    true => capacity / unit * (unit / quanta.0),
                    false => capacity / quanta.0,
                }
            });
            holds.min().unwrap_or(0)
        };
        let nodes = || set.iter().map(|node| &self.nodes[node]);
        if let Some(domain) = spec.together.filter(|_| spec.replicas > 1) {
            let homes: BTreeSet<_> = nodes().map(|node| within(node, domain)).collect();
            if homes.len() > 1 || homes.contains(&None) {
                return false;
            }
        }
        let count = match spec.apart {
            None => nodes().map(replicas_on).sum(),
            Some(domain) => {
                let spots = nodes().filter(|node| replicas_on(node) > 0).filter_map(|node| within(node, domain));
                spots.collect::<BTreeSet<_>>().len() as u64
            }
        };
        count >= u64::from(spec.replicas)
    }

    pub(crate) fn head_protected(&mut self, body: &HeadProtected) -> Checked {
        let found = self.allocation(body.allocation)?;
        found.protected_on.clone_from(&body.nodes.0);
        Ok(())
    }

    pub(crate) fn queue_changed(&mut self, body: &QueueChanged) -> Checked {
        let wait = body.head_wait_max;
        demand!((Span(1)..=LIMIT_SPAN_MAX).contains(&wait), "settings", "a head_wait_max of {wait}");
        demand!(wait != self.head_wait_max, "settings", "head_wait_max was {wait} already");
        self.head_wait_max = wait;
        Ok(())
    }

    /// Ends protections: of those that no longer wait for capacity, and where a node has left service, was changed or
    /// has a new fence.
    pub(crate) fn follow_protections(&mut self, record: &Record) {
        let mut touched: BTreeSet<NodeNo> = BTreeSet::new();
        if let Body::NodePut(put) = &record.body {
            touched.insert(put.node);
        }
        if let Body::WindowPut(put) = &record.body {
            touched.extend(&put.nodes.0);
        }
        if let Body::Fenced(fenced) = &record.body {
            touched.extend(fenced.leases.0.iter().filter_map(|lease| self.lease(*lease)).map(|lease| lease.node));
        }
        // The set was made for what it asked for before.
        let changed = if let Body::AllocationChanged(changed) = &record.body { Some(changed.allocation) } else { None };
        let over = |found: &Allocation| {
            let serves = |node: &NodeNo| self.nodes.get(node).is_some_and(|node| node.is_open_to(found.claimer()));
            changed == Some(found.number)
                || !found.is_in_line()
                || found.protected_on.iter().any(|node| touched.contains(node) || !serves(node))
        };
        let protected = self.allocations.values().filter(|found| !found.protected_on.is_empty());
        let over: Vec<AllocationNo> = protected.filter(|found| over(found)).map(|found| found.number).collect();
        for number in over {
            self.allocations.get_mut(&number).expect("it was listed").protected_on.clear();
        }
    }
}

impl Guard<'_> {
    /// Whether a protected head keeps the work from a node.
    pub(crate) fn is_kept_from(&self, node: NodeNo, stay: Option<(Option<Span>, Priority)>) -> bool {
        self.world.is_kept_from(node, self.who, stay, self.now)
    }
}
