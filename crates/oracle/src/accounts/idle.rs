//! Idle capacity of claimed nodes, which the claimer pays at guaranteed priority (SEMANTICS 10), recomputed between
//! any two neighbouring instants at which something changed on the node.

use super::capacity::NodeEvent;
use super::tenure::NO_LEASE;
use super::{Accounts, Tenure};
use leasehold_model::{ClassNo, Instant, Name, NodeNo, Priority, ProjectNo, Record, TenantNo, UserNo};

/// A node from its claim to its release.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    node: NodeNo,
    /// The sequence of its record.
    sequence: u64,
    tenant: TenantNo,
    project: ProjectNo,
    user: Option<UserNo>,
    tag: Option<Name>,
    from: Instant,
    to: Instant,
    /// The state of nodes when the claim ended; what is noticed later does not change it.
    known: usize,
}

/// What a lease held was lost with its node, if its end was corrected: a claim does not pay for it as idle capacity.
fn taken_until(lease: &Tenure) -> Instant {
    lease.ended.unwrap_or(lease.to)
}

impl Accounts {
    pub(super) fn claimed(&mut self, record: &Record, node: NodeNo) {
        let tenant = record.identity.tenant.expect("a claim has a tenant");
        self.claims.push(Claim {
            node,
            sequence: record.sequence,
            tenant,
            project: record.identity.project.expect("a claim has a project"),
            user: record.identity.user,
            tag: self.tags.get(&tenant).cloned(),
            from: record.stamp,
            to: Instant::MAX,
            known: usize::MAX,
        });
    }

    pub(super) fn unclaimed(&mut self, stamp: Instant, node: NodeNo) {
        let open = self.claims.iter_mut().find(|claim| claim.node == node && claim.to == Instant::MAX);
        let open = open.expect("a node that was claimed");
        (open.to, open.known) = (stamp, self.nodes.len());
    }

    /// The node was last seen before the claim ended.
    pub(super) fn claim_corrected(&mut self, sequence: u64, node: NodeNo, last_seen: Instant) {
        let claim = self.claims.iter_mut().find(|claim| claim.sequence == sequence && claim.node == node);
        let claim = claim.expect("a claim that ended");
        claim.to = claim.to.min(last_seen.max(claim.from));
    }

    /// The idle intervals of all claims, as if they were leases.
    pub(super) fn idle_tenures(&self) -> Vec<Tenure> {
        self.claims.iter().flat_map(|claim| self.idle_of(claim)).collect()
    }

    fn idle_of(&self, claim: &Claim) -> Vec<Tenure> {
        let puts = self.nodes.iter().filter(|(at, node, _)| *node == claim.node && *at <= claim.from);
        let mut put = puts.filter_map(|(_, _, event)| match event {
            NodeEvent::Put(put) => Some(put),
            _ => None,
        });
        // Pool and capacity of a claimed node cannot change.
        let put = put.next_back().expect("a claimed node was put");
        let outages = self.outages(claim);
        let mut idle = Vec::new();
        for (class, capacity) in &put.capacity {
            let leases: Vec<&Tenure> =
                self.tenures.values().filter(|lease| lease.node == claim.node && lease.class == *class).collect();
            let mut instants = vec![claim.from, claim.to];
            instants.extend(outages.iter().flat_map(|(from, to)| [*from, *to]));
            for lease in &leases {
                instants.extend([lease.from, taken_until(lease)]);
                instants.extend(lease.fence_due.into_iter().chain(lease.closed_at));
            }
            instants.retain(|at| *at >= claim.from && *at <= claim.to);
            instants.sort_unstable();
            instants.dedup();
            for pair in instants.windows(2) {
                let at = pair[0];
                let is_taken = |lease: &&&Tenure| {
                    let held = lease.from <= at && at < taken_until(lease);
                    let fenced = lease.fence_due.is_some_and(|due| due <= at);
                    held || fenced && at < lease.closed_at.unwrap_or(Instant::MAX)
                };
                let taken: u64 = leases.iter().filter(is_taken).map(|lease| lease.quanta).sum();
                let is_out = outages.iter().any(|(from, to)| *from <= at && at < *to);
                let quanta = capacity.0.checked_sub(taken).expect("a node has what it holds");
                if quanta > 0 && !is_out {
                    idle.push(Self::idle_tenure(claim, put.pool, *class, quanta, (at, pair[1])));
                }
            }
        }
        idle
    }

    fn idle_tenure(
        claim: &Claim,
        pool: leasehold_model::PoolNo,
        class: ClassNo,
        quanta: u64,
        (from, to): (Instant, Instant),
    ) -> Tenure {
        let held = Tenure::new(NO_LEASE, (claim.tenant, claim.project), (pool, claim.node, class), (from, to));
        let priority = Priority::Guaranteed;
        Tenure { user: claim.user, tag: claim.tag.clone(), priority, priced_as: priority, quanta, ..held }
    }

    /// The intervals in which the node was drained, or lost (from when it was last seen).
    fn outages(&self, claim: &Claim) -> Vec<(Instant, Instant)> {
        let mut outages: Vec<(Instant, Instant)> = Vec::new();
        let (mut drained, mut lost) = (None, None);
        let known = self.nodes.iter().take(claim.known);
        for (at, _, event) in known.filter(|(_, node, _)| *node == claim.node) {
            match event {
                NodeEvent::Drained(true) => drained = Some(*at),
                NodeEvent::Drained(false) => outages.extend(drained.take().map(|from| (from, *at))),
                NodeEvent::Lost(Some(last_seen)) => lost = Some(*last_seen),
                NodeEvent::Lost(None) => outages.extend(lost.take().map(|from| (from, *at))),
                // A claimed node has no maintenance windows.
                NodeEvent::Put(_) | NodeEvent::Deleted | NodeEvent::Unclean(_) | NodeEvent::InWindow(_) => {}
            }
        }
        outages.extend(drained.into_iter().chain(lost).map(|from| (from, Instant::MAX)));
        outages
    }
}
