//! Protection of a head that has waited too long (SEMANTICS 11): a set of nodes on which nothing of equal or lower
//! priority starts unless it is certain to end before the head can start.
//!
//! One record names the set. It is the smallest one that would hold the head when everything on it has ended; of
//! several, the one on which everything has ended first, then the one with the lowest node numbers. A set is made only
//! of nodes on which every lease has a certain end, and on which no maintenance window would cut the head off.

use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::assured_start::Stay;
use crate::follow::Follower;
use crate::gang::{DomainId, domain_of};
use crate::lease::{Lease, Phase};
use crate::node::Node;
use crate::placement::Tentative;
use crate::queue::{Line, Rank, minute_begin};
use crate::state::State;
use crate::view::View;
use leasehold_model::body::HeadProtected;
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo};
use std::collections::{BTreeMap, BTreeSet};

/// What the protection of a head means for others at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Its quotas or ceilings do not let it start, so that it holds nobody up.
    None,
    /// Others must have ended by then.
    Until(Instant),
    /// When it can start is not known: nobody else of its priority may start there.
    Open,
}

/// A node that could belong to a set.
#[derive(Clone, Debug)]
struct Candidate {
    node: NodeNo,
    /// How many replicas it holds when everything on it has ended.
    replicas: u64,
    /// When everything on it has ended; now if nothing is there.
    ends: Instant,
    /// The head must have started by then, because of a maintenance window.
    start_by: Instant,
    /// The domain in which there may be only one replica.
    apart: Option<DomainId>,
}

/// A set with what it is compared by: its size, its latest end, its numbers.
type Ranked = (usize, Instant, Vec<NodeNo>);

impl State {
    /// When a lease has certainly given back its capacity. `None` if it may be renewed forever, or is fenced.
    pub(crate) fn certain_end(&self, lease: &Lease) -> Option<Instant> {
        let node = self.node(lease.node)?;
        match lease.phase {
            Phase::Active => {
                let of = lease.of.and_then(|of| self.allocation(of)).filter(|of| of.has_lease(lease.number));
                let walltime = of.and_then(Allocation::bound);
                let lifetime = self.lifetime_of(lease).map(|(reached, _)| reached.max(lease.expires_at));
                Some(walltime.into_iter().chain(lifetime).min()?.saturating_add(self.clearing(node)))
            }
            Phase::Revoking => Some(lease.limit_at.saturating_add(self.clearing(node))),
            Phase::Releasing | Phase::Expired | Phase::TearingDown => Some(lease.limit_at),
            Phase::Fenced => None,
        }
    }

    /// When everything on a node has certainly ended; zero if nothing is there. An error names a lease without a
    /// certain end, the one with the lowest number.
    fn node_ends(&self, node: NodeNo) -> Result<Instant, LeaseNo> {
        let (mut ends, mut uncertain) = (Instant(0), None);
        for lease in self.chain_of(node) {
            match self.certain_end(lease) {
                Some(end) => ends = ends.max(end),
                None => uncertain = Some(uncertain.map_or(lease.number, |found: LeaseNo| found.min(lease.number))),
            }
        }
        uncertain.map_or(Ok(ends), Err)
    }

    /// Whether capacity on a node is reserved for an allocation whose victims are being torn down.
    fn is_reserved(&self, node: NodeNo) -> bool {
        let reserved = self.queue.reserved.iter().filter_map(|number| self.allocation(*number));
        reserved.flat_map(Allocation::reserved_on).any(|on| on == node)
    }

    /// The head for which a node is protected.
    pub(crate) fn protected_for(&self, node: NodeNo) -> Option<&Allocation> {
        if self.queue.protected_nodes.is_empty() {
            return None;
        }
        self.allocation(*self.queue.protected_nodes.get(&node)?)
    }

    /// The other allocation, of at least this priority, for which a node is protected.
    pub(crate) fn protected_against(&self, node: NodeNo, stay: Stay) -> Option<&Allocation> {
        self.protected_for(node).filter(|head| head.number != stay.number && head.spec.priority >= stay.priority)
    }

    /// Whether an allocation has waited for so long that it is protected as soon as it is a head. Counted in whole
    /// minutes, so that within a minute only events make a difference.
    pub(crate) fn waited_too_long(&self, waits: &Allocation, now: Instant) -> bool {
        minute_begin(now).since(waits.queued_at) > self.settings.head_wait_max
    }

    /// A head is protected on a set of nodes.
    pub(crate) fn fold_protected(
        &mut self,
        protected: &HeadProtected,
        to: &mut impl Follower,
    ) -> Result<(), &'static str> {
        let number = protected.allocation;
        let found = self.allocation(number).filter(|found| found.state.is_queued() && found.reservation.is_none());
        let found = found.ok_or("the allocation is not waiting for capacity")?;
        if !found.protected_on.is_empty() {
            return Err("the allocation is protected already");
        }
        let nodes = &protected.nodes.0;
        if nodes.iter().any(|node| self.node(*node).is_none() || self.queue.protected_nodes.contains_key(node)) {
            return Err("a node that does not exist or is protected already");
        }
        self.set_protection(number, nodes.clone(), to);
        Ok(())
    }

    /// Sets or clears the protection of a waiting allocation, which moves it to another shape.
    fn set_protection(&mut self, number: AllocationNo, nodes: Vec<NodeNo>, to: &mut impl Follower) {
        let found = self.allocations.get_mut(number).expect("the caller has found it");
        let waits = found.state.is_queued() && found.reservation.is_none();
        let before = found.clone();
        found.protected_on.clone_from(&nodes);
        let after = found.clone();
        self.queue.protected_nodes.retain(|_, head| *head != number);
        self.queue.protected_nodes.extend(nodes.into_iter().map(|node| (node, number)));
        if waits {
            let (from, key) = (self.queue.key(&before), self.queue.key(&after));
            self.queue.step_out(&from, &before);
            self.queue.line_up(&key, &after);
            to.regrouped(&from, &key, &after);
        }
        to.recheck_queue();
    }

    /// The protection of an allocation ends, because it starts, has a reservation or no longer waits. It must have left
    /// its shape.
    pub(crate) fn end_protection(&mut self, number: AllocationNo, to: &mut impl Follower) {
        let Some(found) = self.allocations.get_mut(number).filter(|found| !found.protected_on.is_empty()) else {
            return;
        };
        found.protected_on.clear();
        self.queue.protected_nodes.retain(|_, head| *head != number);
        to.recheck_queue();
    }

    /// A node leaves service, has changed or has a fence: a set that it belongs to no longer serves its purpose.
    pub(crate) fn end_protection_on(&mut self, node: NodeNo, to: &mut impl Follower) {
        if let Some(head) = self.queue.protected_nodes.get(&node).copied() {
            self.set_protection(head, Vec::new(), to);
        }
    }
}

impl View<'_> {
    /// What the protection of a head means for others.
    pub(crate) fn protection_of(&self, head: &Allocation, now: Instant) -> Effect {
        if self.admission(&Ask::of(head, now)).is_err() {
            return Effect::None;
        }
        let ends = head.protected_on.iter().map(|node| self.node_ends(*node));
        match ends.collect::<Result<Vec<Instant>, LeaseNo>>() {
            Ok(ends) => Effect::Until(ends.into_iter().max().unwrap_or(now).max(now)),
            Err(_) => Effect::Open,
        }
    }

    /// The nodes on which a head would be protected, in order of number.
    pub(crate) fn set_to_protect(
        &self,
        waits: &Allocation,
        lines: &BTreeSet<Line>,
        now: Instant,
    ) -> Option<Vec<NodeNo>> {
        let ask = Ask::of(waits, now);
        let mut homes: BTreeMap<Option<DomainId>, Vec<Candidate>> = BTreeMap::new();
        for node in self.nodes().filter(|node| self.may_be_protected(node, &ask, lines)) {
            let (Some(candidate), Some(home)) = (self.protectable(node, &ask), self.home_of(node, &ask)) else {
                continue;
            };
            homes.entry(home).or_default().push(candidate);
        }
        let wanted = u64::from(ask.replicas);
        let sets = homes.into_values().filter_map(|nodes| match ask.apart {
            None => smallest(nodes, wanted),
            Some(_) => smallest_apart(nodes, wanted),
        });
        let (_, start, nodes) = sets.min()?;
        // Quotas that depend on the node may still forbid it.
        let mut vacated = Tentative::default();
        for node in nodes.iter().filter_map(|node| self.node(*node)) {
            self.chain_of(node.number).for_each(|lease| vacated.vacate(node, lease));
        }
        let inside = |node: &Node| nodes.binary_search(&node.number).is_ok();
        let fits = self.place_gang(&Ask { allow: Some(&inside), start, ..ask }, &mut vacated).is_ok();
        fits.then_some(nodes)
    }

    /// A lease that keeps a head from being protected: the one with the lowest number that has no certain end, on the
    /// nodes that could belong to its set.
    pub(crate) fn lease_without_end(
        &self,
        waits: &Allocation,
        lines: &BTreeSet<Line>,
        now: Instant,
    ) -> Option<LeaseNo> {
        let ask = Ask::of(waits, now);
        let nodes = self.nodes().filter(|node| self.may_be_protected(node, &ask, lines));
        nodes.filter_map(|node| self.node_ends(node.number).err()).min()
    }

    /// Whether a node could belong to the set of an ask, whatever runs on it: no other set has it, and nothing is
    /// reserved on it.
    fn may_be_protected(&self, node: &Node, ask: &Ask<'_>, lines: &BTreeSet<Line>) -> bool {
        lines.contains(&Line::at(node))
            && self.suits(node, ask)
            && !self.queue.protected_nodes.contains_key(&node.number)
            && !self.is_reserved(node.number)
    }

    fn protectable(&self, node: &Node, ask: &Ask<'_>) -> Option<Candidate> {
        let ends = self.node_ends(node.number).ok()?.max(ask.now);
        let start_by = node.latest_start(ask.walltime)?;
        let holds = ask.asks.iter().map(|(class, quanta)| node.class(*class).map_or(0, |class| class.holds(*quanta)));
        let replicas = holds.min().unwrap_or(0);
        let apart = ask.apart.and_then(|domain| domain_of(node, domain));
        let counts = replicas > 0 && ends <= start_by && (ask.apart.is_none() || apart.is_some());
        counts.then_some(Candidate { node: node.number, replicas, ends, start_by, apart })
    }

    /// The domain that all replicas must share; an inner `None` if there is no such rule, an outer one if the node has
    /// no such domain.
    fn home_of(&self, node: &Node, ask: &Ask<'_>) -> Option<Option<DomainId>> {
        ask.home().map_or(Some(None), |domain| domain_of(node, domain).map(Some))
    }
}

/// The nodes on which a head could start at one instant after the other: those that are empty by then, and on which it
/// would end before the next maintenance window.
struct Sweep<'a> {
    by_end: std::iter::Peekable<std::vec::IntoIter<&'a Candidate>>,
    by_window: std::iter::Peekable<std::vec::IntoIter<&'a Candidate>>,
}

impl<'a> Sweep<'a> {
    fn of(nodes: &'a [Candidate]) -> Self {
        let sorted = |key: fn(&Candidate) -> Instant| {
            let mut nodes: Vec<&Candidate> = nodes.iter().collect();
            nodes.sort_unstable_by_key(|one| key(one));
            nodes.into_iter().peekable()
        };
        Self { by_end: sorted(|one| one.ends), by_window: sorted(|one| one.start_by) }
    }

    /// The next instant at which a node becomes empty, with the nodes that come and go until then.
    fn next(&mut self) -> Option<(Instant, Vec<&'a Candidate>, Vec<&'a Candidate>)> {
        let start = self.by_end.peek()?.ends;
        let come = std::iter::from_fn(|| self.by_end.next_if(|one| one.ends <= start)).collect();
        let go = std::iter::from_fn(|| self.by_window.next_if(|one| one.start_by < start)).collect();
        Some((start, come, go))
    }
}

/// The smallest set that holds `wanted` replicas.
fn smallest(nodes: Vec<Candidate>, wanted: u64) -> Option<Ranked> {
    let mut sweep = Sweep::of(&nodes);
    let mut usable = Replicas::default();
    let mut best: Option<(usize, Instant)> = None;
    while let Some((start, come, go)) = sweep.next() {
        come.iter().for_each(|one| usable.add(one.replicas));
        go.iter().for_each(|one| usable.remove(one.replicas));
        if let Some(size) = usable.needed(wanted)
            && best.is_none_or(|(smallest, _)| size < smallest)
        {
            best = Some((size, start));
        }
    }
    let (size, start) = best?;
    // Of those, the lowest numbers: a node is taken if the best of the later ones can provide the rest.
    let nodes: Vec<&Candidate> = nodes.iter().filter(|one| one.is_usable(start)).collect();
    let mut later = Replicas::default();
    nodes.iter().for_each(|one| later.add(one.replicas));
    let (mut set, mut held) = (Vec::with_capacity(size), 0);
    for one in nodes {
        later.remove(one.replicas);
        let left = size - set.len() - 1;
        if held + one.replicas + later.most(left) >= wanted {
            held += one.replicas;
            set.push(one.node);
        }
        if set.len() == size {
            break;
        }
    }
    Some((size, start, set))
}

impl Candidate {
    /// Whether a head could start there at an instant.
    fn is_usable(&self, start: Instant) -> bool {
        self.ends <= start && start <= self.start_by
    }
}

/// Nodes, counted by how many replicas they hold.
#[derive(Default)]
struct Replicas(BTreeMap<u64, usize>);

impl Replicas {
    fn add(&mut self, replicas: u64) {
        *self.0.entry(replicas).or_default() += 1;
    }

    fn remove(&mut self, replicas: u64) {
        let count = self.0.get_mut(&replicas).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.0.remove(&replicas);
        }
    }

    /// The most replicas that `count` of them hold.
    fn most(&self, mut count: usize) -> u64 {
        let mut held = 0u64;
        for (replicas, there) in self.0.iter().rev() {
            let taken = count.min(*there);
            held = held.saturating_add(replicas.saturating_mul(taken as u64));
            count -= taken;
        }
        held
    }

    /// How many of them hold `wanted` replicas, at least.
    fn needed(&self, wanted: u64) -> Option<usize> {
        let (mut left, mut count) = (wanted, 0);
        for (replicas, there) in self.0.iter().rev() {
            let enough = usize::try_from(left.div_ceil(*replicas)).ok()?;
            if enough <= *there {
                return Some(count + enough);
            }
            (left, count) = (left - replicas * *there as u64, count + there);
        }
        None
    }
}

/// The smallest set if no two replicas may share a domain: one node in each of as many domains.
fn smallest_apart(nodes: Vec<Candidate>, wanted: u64) -> Option<Ranked> {
    let size = usize::try_from(wanted).ok()?;
    let mut sweep = Sweep::of(&nodes);
    let mut usable: BTreeMap<&DomainId, usize> = BTreeMap::new();
    let start = loop {
        let (start, come, go) = sweep.next()?;
        for one in come.iter().filter_map(|one| one.apart.as_ref()) {
            *usable.entry(one).or_default() += 1;
        }
        for one in go.iter().filter_map(|one| one.apart.as_ref()) {
            *usable.entry(one).or_default() -= 1;
        }
        usable.retain(|_, count| *count > 0);
        if usable.len() >= size {
            break start;
        }
    };
    let (mut set, mut used) = (Vec::with_capacity(size), BTreeSet::new());
    for one in nodes.iter().filter(|one| one.is_usable(start)) {
        if set.len() < size && used.insert(&one.apart) {
            set.push(one.node);
        }
    }
    Some((size, start, set))
}

/// The lines of which an allocation is the head, without those in which another is protected already.
pub(crate) fn own_lines(state: &State, heads: &BTreeMap<Line, Rank>, number: AllocationNo) -> BTreeSet<Line> {
    let taken: BTreeSet<Line> =
        state.queue.protected_nodes.keys().filter_map(|node| state.node(*node)).map(Line::at).collect();
    let own = heads.iter().filter(|(line, head)| head.3 == number && !taken.contains(line));
    own.map(|(line, _)| *line).collect()
}
