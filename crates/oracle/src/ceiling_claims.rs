//! What claims of nodes count under the cost ceilings of projects (SEMANTICS 11, "Claims"). Sensitive leases add nothing
//! there; under the ceilings of app instances they still do.
//!
//! A claim costs the price of guaranteed priority while its node is in service. What it has cost is taken up to the last
//! whole minute. With an expected end it counts at least its cost up to then; what it has not cost yet is reserved.

use crate::ceiling::{Ceiling, Held, Scope};
use crate::claim::{Claim, Counted, Piece};
use crate::oracle::Oracle;
use crate::world::World;
use leasehold_model::body::RateCardPut;
use leasehold_model::{Amount, ClassNo, Instant, NodeNo, PoolNo, Priority, ProjectNo};
use std::collections::BTreeMap;

const MINUTE: u64 = 60_000_000_000;

/// What a claim of one node counts under a ceiling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimUse {
    pub(crate) spent: Amount,
    pub(crate) reserved: Amount,
    pub(crate) has_ended: bool,
}

impl World {
    /// The priority by which work is priced: sensitive work as guaranteed since rules version 4.
    pub(crate) fn priced_as(&self, priority: Priority, sensitive: bool) -> Priority {
        if sensitive && self.is_by_rules_4() { Priority::Guaranteed } else { priority }
    }

    /// Since when a ceiling counts the claim of a node instead of the sensitive work on it; none if it counts the work.
    pub(crate) fn left_to_claims_since(&self, scope: Scope, sensitive: bool) -> Option<Instant> {
        let (since, _) = self.claims_count_since().filter(|_| sensitive && scope.1.is_none())?;
        Some(since)
    }

    /// What each claim counts under a ceiling, ended ones included, by its record and node.
    pub(crate) fn claims_under(
        &self,
        scope: Scope,
        ceiling: &Ceiling,
        now: Instant,
    ) -> BTreeMap<(u64, NodeNo), ClaimUse> {
        let Some((since, _)) = self.claims_count_since().filter(|_| scope.1.is_none()) else { return BTreeMap::new() };
        let from = since.max(ceiling.since);
        let cards = self.cards_known(u64::MAX);
        let own = self.claims.iter().filter(|claim| claim.project == scope.0);
        own.map(|claim| ((claim.sequence, claim.node), self.claim_use(ceiling, claim, from, &cards, now))).collect()
    }

    fn claim_use(
        &self,
        ceiling: &Ceiling,
        claim: &Claim,
        from: Instant,
        cards: &[&RateCardPut],
        now: Instant,
    ) -> ClaimUse {
        let (mut spent, mut reserved) = (Amount::ZERO, Amount::ZERO);
        for Piece { from: begun, to, counted, .. } in claim.pieces() {
            let begun = begun.max(from);
            let up_to = |end: Instant| self.cost_of_node(claim.pool, &counted, (begun, end), ceiling, cards);
            let Some(to) = to else {
                let so_far = up_to(Instant(now.0 / MINUTE * MINUTE));
                let expected = claim.until.map_or(Amount::ZERO, up_to);
                spent = spent.saturating_add(so_far);
                reserved = expected.saturating_sub(so_far);
                continue;
            };
            spent = spent.saturating_add(up_to(to));
        }
        ClaimUse { spent, reserved, has_ended: claim.ended.is_some() }
    }

    /// The cost of capacity at guaranteed priority, rounded up for each class.
    fn cost_of_node(
        &self,
        pool: PoolNo,
        counted: &Counted,
        (from, to): (Instant, Instant),
        ceiling: &Ceiling,
        cards: &[&RateCardPut],
    ) -> Amount {
        let one = |(class, quanta): &(ClassNo, u64)| {
            let what = Held { class: *class, quanta: *quanta, pool, priority: Priority::Guaranteed };
            self.cost(what, from, to, ceiling.put.currency, cards)
        };
        counted.iter().map(one).sum()
    }

    /// Why the expected end or the cost of a claim is refused, if so. The quotas have allowed the claim already.
    pub(crate) fn fault_of_claim_cost(
        &self,
        project: ProjectNo,
        nodes: &[NodeNo],
        until: Option<Instant>,
        now: Instant,
    ) -> Option<&'static str> {
        if !self.is_by_rules_4() {
            return None;
        }
        if until.is_some_and(|until| until <= now) {
            return Some("claim_until_past");
        }
        if let Some(fault) = self.fault_of_claim_credit(project, nodes, until, now) {
            return Some(fault);
        }
        let (scope, ceiling) = self.hard(project, None, false).into_iter().next()?;
        let Some(until) = until else { return Some("claim_needs_until") };
        let requested = self.cost_of_claim(ceiling, nodes, until, now);
        self.judge(scope, ceiling, requested, now).map(|_| "claim_over_ceiling")
    }

    /// The cost of all nodes of a claim up to its expected end.
    fn cost_of_claim(&self, ceiling: &Ceiling, nodes: &[NodeNo], until: Instant, now: Instant) -> Amount {
        let cards = self.cards_known(u64::MAX);
        let one = |node: &NodeNo| {
            let put = &self.nodes[node].put;
            let whole: Counted = put.capacity.iter().map(|(class, quanta)| (*class, quanta.0)).collect();
            self.cost_of_node(put.pool, &whole, (now, until), ceiling, &cards)
        };
        nodes.iter().map(one).sum()
    }
}

impl Oracle {
    /// Whether the ceiling of a project refuses a claim with these figures: what it costs, what is used, and the
    /// ceiling.
    pub fn stands_against_claim(
        &self,
        project: ProjectNo,
        (nodes, until): (&[NodeNo], Instant),
        figures: (Amount, Amount, Amount),
        now: Instant,
    ) -> bool {
        let world = &self.world;
        world.hard(project, None, false).into_iter().any(|(scope, ceiling)| {
            let requested = world.cost_of_claim(ceiling, nodes, until, now);
            figures == (requested, world.used_in_all(scope, ceiling, now), ceiling.put.amount)
        })
    }
}
