//! What claims count (SEMANTICS 11, "Claims"): a claimed node counts its whole capacity once, as guaranteed, to the user,
//! the project and the tenant that claimed it, in quotas, budgets and cost ceilings. Leases on it add nothing there.
//!
//! What a claimed node counts changes with its custody, with fences and, for budgets and ceilings, with its service.
//! Each such change of a node is wrapped in [`State::recount_claim`], which counts the difference.

use crate::custody::{Claim, Claimer};
use crate::follow::Follower;
use crate::lease::Lease;
use crate::quota::Facts;
use crate::state::{State, entry, entry_mut};
use crate::timer::Entry;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, Priority};
use smallvec::SmallVec;

/// The rules version from which claims count like this. Before it they counted in some quotas on nodes only.
const WHOLE_CLAIMS: u32 = 4;

/// What a claimed node counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedNode {
    pub(crate) claim: Claim,
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    /// Its capacity without what is fenced, by class. `None` under earlier rules.
    pub(crate) quanta: Option<SmallVec<[(ClassNo, u64); 4]>>,
    pub(crate) in_service: bool,
}

impl ClaimedNode {
    /// What it counts in budgets and cost ceilings: nothing while the node is out of service.
    pub(crate) fn in_use(&self) -> &[(ClassNo, u64)] {
        self.quanta.as_deref().filter(|_| self.in_service).unwrap_or_default()
    }
}

/// A claimed node as quotas see it. The facts of its classes are `None` under earlier rules.
pub(crate) struct ClaimFacts {
    pub(crate) claim: Claim,
    pub(crate) at: (PoolNo, NodeNo),
    pub(crate) classes: Option<SmallVec<[Facts; 4]>>,
}

/// When a change is recorded, and when it took effect.
#[derive(Clone, Copy)]
pub(crate) struct ChangedAt {
    pub(crate) stamp: Instant,
    pub(crate) effective: Instant,
}

impl From<Instant> for ChangedAt {
    fn from(stamp: Instant) -> Self {
        Self { stamp, effective: stamp }
    }
}

impl State {
    /// Whether claimed nodes count whole, and leases on them nothing.
    pub(crate) fn counts_whole_claims(&self) -> bool {
        self.follows_rules(WHOLE_CLAIMS)
    }

    /// Whether a lease is counted by the claim on its node.
    #[inline]
    pub(crate) fn is_counted_by_claim(&self, lease: &Lease) -> bool {
        lease.sensitive && self.counts_whole_claims()
    }

    /// What a node counts if this claim is on it.
    pub(crate) fn claimed_as(&self, claim: Claim, node: NodeNo) -> Option<ClaimedNode> {
        let found = self.node(node)?;
        let quanta = self
            .counts_whole_claims()
            .then(|| found.classes.iter().map(|class| (class.class, class.capacity - class.fenced)).collect());
        Some(ClaimedNode { claim, node, pool: found.pool, quanta, in_service: found.is_in_service() })
    }

    /// What a node counts; `None` unless it is claimed.
    pub(crate) fn claimed_node(&self, node: NodeNo) -> Option<ClaimedNode> {
        self.claimed_as(self.node(node)?.custody.claim()?, node)
    }

    pub(crate) fn facts_of_claim(&self, claimed: &ClaimedNode) -> ClaimFacts {
        let claim = claimed.claim;
        let facts = |(class, quanta): &(ClassNo, u64)| {
            let spec = self.class(*class).expect("a node's class exists");
            Facts {
                project: claim.project,
                user: Some(claim.by.user),
                app_instance: None,
                class: *class,
                kind: spec.kind,
                quanta_per_unit: spec.quanta_per_unit,
                priority: Priority::Guaranteed,
                quanta: *quanta,
            }
        };
        let classes = claimed.quanta.as_ref().map(|quanta| quanta.iter().map(facts).collect());
        ClaimFacts { claim, at: (claimed.pool, claimed.node), classes }
    }

    /// Makes a change of a node, and counts what it changes of a claim there.
    pub(crate) fn recount_claim<F: Follower, T>(
        &mut self,
        node: NodeNo,
        at: ChangedAt,
        to: &mut F,
        change: impl FnOnce(&mut Self, &mut F) -> T,
    ) -> T {
        let before = self.claimed_node(node);
        let done = change(self, to);
        let after = self.claimed_node(node);
        self.count_change(before.as_ref(), after.as_ref(), at, to);
        done
    }

    /// Counts the difference between what a node counted before and counts now.
    fn count_change(
        &mut self,
        before: Option<&ClaimedNode>,
        after: Option<&ClaimedNode>,
        at: ChangedAt,
        to: &mut impl Follower,
    ) {
        let Some(claimed) = before.or(after).filter(|_| before != after) else { return };
        // What was counted before the last change was counted at other levels, and stays counted.
        let node = entry_mut(&mut self.nodes, claimed.node.0).expect("a claimed node exists");
        let at = ChangedAt { effective: at.effective.max(node.claim_counted_since).min(at.stamp), ..at };
        node.claim_counted_since = if before.is_some() { at.effective } else { at.stamp };
        self.count_claim_in_quotas(before, after, at.stamp, to);
        self.count_claim_in_budgets(before, after, at, to);
        self.count_claim_in_ceilings(before, after, at, to);
        self.count_claim_in_prepaid(before, after, at, to);
    }

    fn count_claim_in_quotas(
        &mut self,
        before: Option<&ClaimedNode>,
        after: Option<&ClaimedNode>,
        stamp: Instant,
        to: &mut impl Follower,
    ) {
        let Some(Claimer { tenant, user }) = before.or(after).map(|claimed| claimed.claim.by) else { return };
        let (out, into) = (before.map(|b| self.facts_of_claim(b)), after.map(|a| self.facts_of_claim(a)));
        let quotas = &entry(&self.tenants, tenant.0).expect("a claimer's tenant exists").quotas;
        for quota in quotas {
            let quota = entry_mut(&mut self.quotas, quota.0).expect("a listed quota exists");
            quota.settle_overage_of_use(stamp);
            quota.mark(quota.holder(Some(user), None), stamp);
            let left = out.as_ref().is_some_and(|facts| quota.tally_claim(facts, false));
            let came = into.as_ref().is_some_and(|facts| quota.tally_claim(facts, true));
            if let Some(due) = (left || came).then(|| quota.settle_episode(stamp)).flatten() {
                to.comes_due(Entry::burst(quota.number, due));
            }
        }
        to.headroom(self, tenant);
    }

    /// A process with other rules starts: `change` sets them, and what claims and the leases on claimed nodes count is
    /// counted by the new rules from here on.
    pub(crate) fn change_rules<F: Follower>(&mut self, stamp: Instant, to: &mut F, change: impl FnOnce(&mut Self)) {
        let counted_before = self.counts_whole_claims();
        let nodes: Vec<NodeNo> = self.nodes().filter(|node| node.custody.claim().is_some()).map(|n| n.number).collect();
        let before: Vec<Option<ClaimedNode>> = nodes.iter().map(|node| self.claimed_node(*node)).collect();
        let mut leases: Vec<Lease> = self.leases.in_any_order().filter(|lease| lease.sensitive).cloned().collect();
        leases.sort_unstable_by_key(|lease| lease.number);
        change(self);
        if counted_before || !self.counts_whole_claims() {
            return;
        }
        for lease in &leases {
            self.stop_counting(lease, stamp, to);
        }
        for (node, before) in nodes.into_iter().zip(before) {
            let after = self.claimed_node(node);
            self.count_change(before.as_ref(), after.as_ref(), stamp.into(), to);
        }
    }
}
