//! The assured start of a waiting allocation: when it starts at the latest, and on which nodes. Backfill must not delay
//! the assured start of the head of a line.
//!
//! Only ends that are certain count. The leases of an allocation with a walltime end by then, renewed or not; those in a
//! pool with a longest lifetime end by then; a teardown is confirmed or fenced by its deadline. A lease without such a
//! bound may be renewed forever and is not counted on.

use crate::allocation::Allocation;
use crate::ask::{Allow, Ask};
use crate::lease::{Lease, Phase};
use crate::node::Node;
use crate::placement::Tentative;
use crate::state::State;
use crate::view::View;
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo, Priority, Span, TeardownMode};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// How many ends of walltimes, and of longest lifetimes, are considered. An allocation that needs more has no assured
/// start.
const ENDS_MAX: usize = 4096;

/// For how long work may stay on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) walltime: Option<Span>,
    pub(crate) priority: Priority,
    /// The allocation that would stay there.
    pub(crate) number: AllocationNo,
    /// Whether others would be evicted for it.
    pub(crate) evicts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssuredStart {
    /// The allocation starts at this instant or before.
    pub start: Instant,
    /// It starts on these nodes.
    pub nodes: BTreeSet<NodeNo>,
}

impl State {
    /// How long the teardown on a node may take.
    pub(crate) fn clearing(&self, node: &Node) -> Span {
        match node.teardown {
            TeardownMode::Immediate => Span::ZERO,
            TeardownMode::Confirmed => self.settings.teardown_deadline,
        }
    }

    /// When work that starts now on this node has released it at the latest. `None` if it has neither a walltime nor a
    /// longest lifetime.
    pub(crate) fn gone_by(&self, node: &Node, now: Instant, stay: Stay) -> Option<Instant> {
        let lifetime = self.pool(node.pool).and_then(|pool| pool.lifetime_max.of(stay.priority));
        let longest = stay.walltime.into_iter().chain(lifetime).min()?;
        Some(now.saturating_add(longest).saturating_add(self.clearing(node)))
    }

    /// When a lease ends at the latest because of its pool's longest lifetime, if that is before the walltime of its
    /// allocation.
    fn lifetime_end(&self, lease: &Lease) -> Option<Instant> {
        let (reached, _) = self.lifetime_of(lease)?;
        let end = reached.max(lease.expires_at);
        let of = lease.of.and_then(|of| self.allocation(of)).filter(|of| of.has_lease(lease.number));
        let bound = of.and_then(Allocation::bound);
        bound.is_none_or(|bound| end < bound).then_some(end)
    }
}

impl View<'_> {
    /// The first instant by which enough leases must have ended for a waiting allocation to fit. `None` if it needs
    /// capacity that nobody has to release.
    pub fn assured_start(&self, waits: &Allocation, now: Instant) -> Option<AssuredStart> {
        let own = Ask::of(waits, now);
        let is_open = |node: &Node| self.protected_against(node.number, own.stay()).is_none();
        let guards = !self.queue.protected_nodes.is_empty();
        let ask = Ask { allow: Some(&is_open as Allow<'_>).filter(|_| guards), ..own };
        let mut tentative = Tentative::default();
        if let Some(nodes) = self.nodes_for(&ask, &tentative) {
            return Some(AssuredStart { start: now, nodes });
        }
        let mut ends = self.ending_by(now);
        let mut bounds = self.bounds.iter().take(ENDS_MAX).peekable();
        let mut lifetimes = self.lifetimes.iter().take(ENDS_MAX).peekable();
        loop {
            // Leases end no earlier than the walltime of their allocation or their longest lifetime, so it is enough to
            // add those that come next.
            while let Some((bound, number)) =
                bounds.next_if(|(bound, _)| ends.peek().is_none_or(|Reverse((at, _))| bound <= at))
            {
                let leases = self.allocation(*number)?.lease_numbers().filter_map(|lease| self.lease(lease));
                let ends_by_walltime = |lease: &&Lease| {
                    lease.of == Some(*number) && lease.phase == Phase::Active && self.lifetime_end(lease).is_none()
                };
                for lease in leases.filter(ends_by_walltime) {
                    let node = self.node(lease.node).expect("a lease's node exists");
                    ends.push(Reverse((bound.saturating_add(self.clearing(node)).max(now), lease.number)));
                }
            }
            while let Some((_, number)) =
                lifetimes.next_if(|(reached, _)| ends.peek().is_none_or(|Reverse((at, _))| reached <= at))
            {
                let lease = self.lease(*number).expect("the index has only held leases");
                let node = self.node(lease.node).expect("a lease's node exists");
                let matters = lease.phase == Phase::Active && ask.pool.is_none_or(|pool| pool == node.pool);
                if let Some(end) = self.lifetime_end(lease).filter(|_| matters) {
                    ends.push(Reverse((end.saturating_add(self.clearing(node)).max(now), lease.number)));
                }
            }
            let Reverse((start, _)) = *ends.peek()?;
            let mut may_fit = false;
            while let Some(Reverse((at, number))) = ends.peek().copied()
                && at == start
            {
                ends.pop();
                let lease = self.lease(number).expect("it was listed above");
                let node = self.node(lease.node).expect("a lease's node exists");
                tentative.vacate(node, lease);
                may_fit |= self.fit(node, &ask, &tentative).is_some();
            }
            if may_fit && let Some(nodes) = self.nodes_for(&Ask { start, ..ask }, &tentative) {
                return Some(AssuredStart { start, nodes });
            }
        }
    }

    /// The assured starts of the first waiting allocation of each line, recomputed from the queue.
    pub fn assured_starts(&self, now: Instant) -> Vec<(AllocationNo, AssuredStart)> {
        let mut waiting: Vec<&Allocation> = self.allocations_after(None).filter(|a| a.is_in_line()).collect();
        waiting.sort_by_key(|found| self.rank_of(found, now));
        let mut first = BTreeSet::new();
        let heads = waiting.into_iter().filter(|found| first.insert((found.claimer(), found.spec.pool)));
        heads.filter_map(|found| Some((found.number, self.assured_start(found, now)?))).collect()
    }

    fn nodes_for(&self, ask: &Ask<'_>, tentative: &Tentative) -> Option<BTreeSet<NodeNo>> {
        let gang = self.place_gang(ask, &mut tentative.clone()).ok()?;
        Some(gang.places.into_iter().map(|place| place.node).collect())
    }
}

impl State {
    /// The leases that are ending, with the latest instant of their teardown. Victims of evictions for others are left
    /// out.
    fn ending_by(&self, now: Instant) -> BinaryHeap<Reverse<(Instant, LeaseNo)>> {
        let reserved = self.queue.reserved.iter().filter_map(|number| self.allocation(*number)?.reservation.as_deref());
        let reserved_victims: BTreeSet<LeaseNo> = reserved.flat_map(|kept| kept.victims.0.iter().copied()).collect();
        let mut ending = BinaryHeap::new();
        for node in self.ending.iter().filter_map(|node| self.node(*node)) {
            for lease in self.leases_on(node.number) {
                let ends = lease.phase == Phase::Revoking || lease.phase.is_tearing_down();
                if !ends || reserved_victims.contains(&lease.number) {
                    continue;
                }
                let clearing = if lease.phase == Phase::Revoking { self.clearing(node) } else { Span::ZERO };
                ending.push(Reverse((lease.limit_at.saturating_add(clearing).max(now), lease.number)));
            }
        }
        ending
    }
}
