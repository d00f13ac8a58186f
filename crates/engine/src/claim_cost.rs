//! What claims cost under the ceiling of their project (SEMANTICS 11, "Claims").
//!
//! A claimed node costs its whole capacity at the guaranteed price while it is in service. What it cost so far is
//! computed for the last whole minute, so that all decisions of a minute see the same. A claim with an expected end
//! reserves its cost up to then; it may cost more afterwards.

use crate::ceiling::{Ceiling, CeilingScope, Priced};
use crate::claims::{ChangedAt, ClaimedNode};
use crate::follow::Follower;
use crate::queue::minute;
use crate::state::State;
use leasehold_model::rate::Currency;
use leasehold_model::{Amount, ClassNo, Instant, NodeNo, PoolNo, Priority, ProjectNo};
use std::collections::BTreeMap;

/// The cost of one claimed node under one ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaimCost {
    /// The cost up to `from`.
    pub(crate) settled: Amount,
    /// When what the claim counts last changed.
    pub(crate) from: Instant,
}

/// What counts against a ceiling in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeilingUse {
    /// The cost of ended leases, and of claims so far.
    pub spent: Amount,
    /// What is reserved for held leases, and for claims up to their expected ends.
    pub reserved: Amount,
}

impl CeilingUse {
    pub fn total(&self) -> Amount {
        self.spent.saturating_add(self.reserved)
    }
}

impl State {
    /// What counts against a ceiling in the minute of `now`.
    pub fn ceiling_use(&self, ceiling: &Ceiling, now: Instant) -> CeilingUse {
        let mut used = CeilingUse { spent: ceiling.spent, reserved: ceiling.reserved };
        let at = Instant(minute(now) * 60_000_000_000);
        for (node, cost) in &ceiling.claims {
            let Some(claimed) = self.claimed_node(*node) else { continue };
            let until = |end: Instant| {
                let running = self.cost_of_claim(&claimed, cost.from, end.max(cost.from), ceiling.currency);
                cost.settled.saturating_add(running)
            };
            let so_far = until(at);
            let in_all = claimed.claim.until.map_or(so_far, |expected| until(expected.max(at)));
            used.spent = used.spent.saturating_add(so_far);
            used.reserved = used.reserved.saturating_add(in_all.saturating_sub(so_far));
        }
        used
    }

    /// Whether more than its amount counts against a ceiling in the minute of `now`.
    pub fn is_exceeded(&self, ceiling: &Ceiling, now: Instant) -> bool {
        self.ceiling_use(ceiling, now).total() > ceiling.amount
    }

    /// The cost of a claimed node while what it counts stays as it is.
    pub(crate) fn cost_of_claim(
        &self,
        claimed: &ClaimedNode,
        from: Instant,
        to: Instant,
        currency: Currency,
    ) -> Amount {
        self.guaranteed_cost(claimed.in_use(), claimed.pool, (from, to), currency)
    }

    fn guaranteed_cost(
        &self,
        quanta: &[(ClassNo, u64)],
        pool: PoolNo,
        (from, to): (Instant, Instant),
        currency: Currency,
    ) -> Amount {
        let one = |(class, quanta): &(ClassNo, u64)| {
            let what = Priced { class: *class, quanta: *quanta, pool, priority: Priority::Guaranteed };
            self.cost(what, from, to, currency)
        };
        quanta.iter().map(one).sum()
    }

    /// What claiming nodes costs from now until an instant.
    pub(crate) fn cost_of_claiming(
        &self,
        nodes: &[ClaimedNode],
        now: Instant,
        until: Instant,
        currency: Currency,
    ) -> Amount {
        // A drained node is resumed by the claim, so that its service does not matter.
        let quanta = |claimed: &ClaimedNode| claimed.quanta.clone().unwrap_or_default();
        nodes.iter().map(|one| self.guaranteed_cost(&quanta(one), one.pool, (now, until), currency)).sum()
    }

    /// The claims that count against a new ceiling, from now on.
    pub(crate) fn claims_from(&self, scope: CeilingScope, stamp: Instant) -> BTreeMap<NodeNo, ClaimCost> {
        let begun = ClaimCost { settled: Amount::ZERO, from: stamp };
        self.claims_under(scope).map(|node| (node, begun)).collect()
    }

    /// The claimed nodes that count against a ceiling.
    pub(crate) fn claims_under(&self, scope: CeilingScope) -> impl Iterator<Item = NodeNo> + '_ {
        let counts = move |claimed: &ClaimedNode| {
            scope.app_instance.is_none() && claimed.claim.project == scope.project && claimed.quanta.is_some()
        };
        self.nodes().filter_map(|node| self.claimed_node(node.number)).filter(counts).map(|claimed| claimed.node)
    }

    /// Counts the change of what a claimed node counts: the cost up to the change is final.
    pub(crate) fn count_claim_in_ceilings(
        &mut self,
        before: Option<&ClaimedNode>,
        after: Option<&ClaimedNode>,
        at: ChangedAt,
        to: &mut impl Follower,
    ) {
        let Some(claimed) = before.or(after) else { return };
        let (node, tenant) = (claimed.node, claimed.claim.by.tenant);
        let scope = project_scope(claimed.claim.project);
        let Some(ceiling) = self.ceilings.get(scope) else { return };
        let known = ceiling.claims.get(&node).copied();
        let settled = before.zip(known).map(|(before, known)| {
            let from = known.from.max(at.effective);
            let running = self.cost_of_claim(before, known.from, from, ceiling.currency);
            ClaimCost { settled: known.settled.saturating_add(running), from }
        });
        let goes_on = after.is_some_and(|after| after.quanta.is_some());
        let ceiling = self.ceilings.get_mut(scope).expect("it was just found");
        match settled {
            _ if goes_on => {
                let begun = ClaimCost { settled: Amount::ZERO, from: at.stamp };
                ceiling.claims.insert(node, settled.unwrap_or(begun));
            }
            Some(settled) => {
                ceiling.claims.remove(&node);
                ceiling.spent = ceiling.spent.saturating_add(settled.settled);
            }
            None => {}
        }
        to.headroom(self, tenant);
    }
}

pub(crate) fn project_scope(project: ProjectNo) -> CeilingScope {
    CeilingScope { project, app_instance: None }
}
