//! When the first that waits will start at the latest, and where: what backfill must not delay.
//!
//! Only firm ends count. An allocation ends by its walltime, renewed or not; a lease that is being torn down is gone,
//! or fenced, by its limit. A lease without a bound may be renewed for ever and promises nothing.

use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::lease::Phase;
use crate::node::Node;
use crate::placement::Tentative;
use crate::state::State;
use crate::view::View;
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo, Span, TeardownMode};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// How many ends are looked ahead; one that needs more has no promise.
const ENDS_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssuredStart {
    /// It starts at this instant, or before.
    pub start: Instant,
    /// On these nodes.
    pub nodes: BTreeSet<NodeNo>,
}

impl State {
    /// How long a node may take to give back what ended.
    fn clearing(&self, node: &Node) -> Span {
        match node.teardown {
            TeardownMode::Immediate => Span::ZERO,
            TeardownMode::Confirmed => self.settings.teardown_deadline,
        }
    }

    /// When a gang that starts now on this node is gone from it, at the latest.
    pub(crate) fn gone_by(&self, node: &Node, now: Instant, walltime: Option<Span>) -> Option<Instant> {
        Some(now.saturating_add(walltime?).saturating_add(self.clearing(node)))
    }
}

impl View<'_> {
    /// What the one that waits can count on: the first instant by which, of all that must end, enough has for it to
    /// fit. `None` if it needs what nobody must give back.
    pub fn assured_start(&self, waits: &Allocation, now: Instant) -> Option<AssuredStart> {
        let ask = Ask::of(waits, now);
        let mut tentative = Tentative::default();
        if let Some(nodes) = self.nodes_for(&ask, &tentative) {
            return Some(AssuredStart { start: now, nodes });
        }
        let mut ends = self.ending_by(now);
        let mut bounds = self.bounds.iter().take(ENDS_MAX).peekable();
        loop {
            // What ends by its bound ends no earlier than that.
            while let Some((bound, number)) =
                bounds.next_if(|(bound, _)| ends.peek().is_none_or(|Reverse((at, _))| bound <= at))
            {
                let leases = self.allocation(*number)?.lease_numbers().filter_map(|lease| self.lease(lease));
                for lease in leases.filter(|lease| lease.of == Some(*number) && lease.phase == Phase::Active) {
                    let node = self.node(lease.node).expect("a lease's node exists");
                    ends.push(Reverse((bound.saturating_add(self.clearing(node)).max(now), lease.number)));
                }
            }
            let Reverse((start, _)) = *ends.peek()?;
            let mut may_fit = false;
            while let Some(Reverse((at, number))) = ends.peek().copied()
                && at == start
            {
                ends.pop();
                let lease = self.lease(number).expect("it was just listed");
                let node = self.node(lease.node).expect("a lease's node exists");
                tentative.vacate(node, lease);
                may_fit |= self.fit(node, &ask, &tentative).is_some();
            }
            if may_fit && let Some(nodes) = self.nodes_for(&ask, &tentative) {
                return Some(AssuredStart { start, nodes });
            }
        }
    }

    /// What those can count on that go first in their pool and find no room: recounted from what waits.
    pub fn assured_starts(&self, now: Instant) -> Vec<(AllocationNo, AssuredStart)> {
        let mut waiting: Vec<&Allocation> =
            self.allocations_after(None).filter(|a| a.state.is_queued() && a.reservation.is_none()).collect();
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
    /// What is ending already, and by when it is gone; but for what was evicted for others.
    fn ending_by(&self, now: Instant) -> BinaryHeap<Reverse<(Instant, LeaseNo)>> {
        let reserved = self.queue.reserved.iter().filter_map(|number| self.allocation(*number)?.reservation.as_deref());
        let spoken_for: BTreeSet<LeaseNo> = reserved.flat_map(|kept| kept.victims.0.iter().copied()).collect();
        let mut ending = BinaryHeap::new();
        for node in self.ending.iter().filter_map(|node| self.node(*node)) {
            for lease in self.leases_on(node.number) {
                let ends = lease.phase == Phase::Revoking || lease.phase.is_tearing_down();
                if !ends || spoken_for.contains(&lease.number) {
                    continue;
                }
                let clearing = if lease.phase == Phase::Revoking { self.clearing(node) } else { Span::ZERO };
                ending.push(Reverse((lease.limit_at.saturating_add(clearing).max(now), lease.number)));
            }
        }
        ending
    }
}
