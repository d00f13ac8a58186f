//! What a claim counts in quotas and budgets since rules version 4 (SEMANTICS 11, "Claims"): the whole capacity of the
//! node without its fenced quanta, at guaranteed priority, for the claiming user, project and tenant.
//!
//! Quotas count it as long as the node is claimed. Budgets and cost ceilings count it while the node is in service, so
//! everything that a claim ever counted is kept, ended claims included.

use crate::custody::{Claimer, Custody};
use crate::lease::Phase;
use crate::quota::{Who, has_holder, has_priority, is_within};
use crate::world::{Node, Quota, World};
use leasehold_model::{
    Body, ClassNo, HolderScope, Instant, LimitKind, Measure, NodeNo, NodeScope, PoolNo, Priority, ProjectNo, QuotaNo,
    QuotaScope, Record, TenantNo, UserNo,
};
use std::ops::Range;

/// Quanta of each class that count; empty while the node is out of service.
pub(crate) type Counted = Vec<(ClassNo, u64)>;

/// One node from its claim to its release.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) node: NodeNo,
    pub(crate) pool: PoolNo,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) user: UserNo,
    /// The sequence of the record that made it.
    pub(crate) sequence: u64,
    pub(crate) since: Instant,
    pub(crate) on_pool_without_gpus: bool,
    pub(crate) until: Option<Instant>,
    /// When it was released, and by which record.
    pub(crate) ended: Option<(Instant, u64)>,
    /// Its node turned out to be lost before its end: its idle capacity is billed up to this instant only.
    pub(crate) billed_to: Option<Instant>,
    /// What it counts, from which effective instant on and by which record, in the order of records.
    changes: Vec<(Instant, u64, Counted)>,
}

/// An interval in which a claim counted the same; without an end if it still does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: Instant,
    pub(crate) to: Option<Instant>,
    pub(crate) counted: Counted,
    /// The record that ended it.
    pub(crate) ended_by: Option<u64>,
}

impl Claim {
    /// What it counted, piece by piece. Each change settles everything before it: one that takes effect earlier than the
    /// previous one does so at the instant of the previous one.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, by, counted) in &self.changes {
            let mut from = *at;
            if let Some(last) = pieces.last_mut() {
                from = from.max(last.from);
                (last.to, last.ended_by) = (Some(from), Some(*by));
            }
            pieces.push(Piece { from: from.max(self.since), to: None, counted: counted.clone(), ended_by: None });
        }
        if let (Some(last), Some((at, by))) = (pieces.last_mut(), self.ended) {
            (last.to, last.ended_by) = (Some(at.max(last.from)), Some(by));
        }
        pieces
    }
}

/// Whether a scope has everything that a user claims for a project, apart from classes and nodes.
fn has_claims_of(scope: &QuotaScope, (tenant, user): Claimer, project: ProjectNo) -> bool {
    scope.tenant == tenant
        && scope.project.is_none_or(|of| of == project)
        && has_priority(scope, Priority::Guaranteed)
        && has_holder(scope, (Some(user), None))
}

impl World {
    /// Whether the rules of version 4 are in force: those of the running process, or of this program before the first
    /// start.
    pub(crate) fn is_by_rules_4(&self) -> bool {
        self.rules_version.is_none_or(|version| version >= 4)
    }

    /// Since which instant and record claims count; none if they do not.
    pub(crate) fn claims_count_since(&self) -> Option<(Instant, u64)> {
        let since = self.rules_4_since.unwrap_or((Instant(0), 0));
        self.is_by_rules_4().then_some(since)
    }

    /// The capacity of a node without its fenced quanta.
    fn unfenced_capacity(&self, node: &Node) -> Counted {
        let fenced = |class: ClassNo| {
            let here = self.leases_on(node.put.node, class).filter(|lease| lease.phase == Phase::Fenced);
            here.map(|lease| lease.quanta).sum::<u64>()
        };
        node.put.capacity.iter().map(|(class, quanta)| (*class, quanta.0 - fenced(*class))).collect()
    }

    /// What a claim of this node counts in budgets and ceilings: nothing while the node is out of service.
    fn counted_in_service(&self, node: NodeNo) -> Counted {
        let node = &self.nodes[&node];
        if node.is_in_service() { self.unfenced_capacity(node) } else { Counted::new() }
    }

    pub(crate) fn claim_begins(&mut self, record: &Record, node: NodeNo) {
        let Custody::Claimed { tenant, project, user, since, sequence, until } = self.nodes[&node].custody else {
            unreachable!("it was just claimed")
        };
        self.claims.push(Claim {
            node,
            pool: self.nodes[&node].put.pool,
            tenant,
            project,
            user,
            sequence,
            since,
            on_pool_without_gpus: !self.has_gpus(self.nodes[&node].put.pool),
            until,
            ended: None,
            billed_to: None,
            changes: vec![(record.stamp, record.sequence, self.counted_in_service(node))],
        });
    }

    pub(crate) fn claim_ends(&mut self, record: &Record, node: NodeNo) {
        let open = self.claims.iter_mut().find(|claim| claim.node == node && claim.ended.is_none());
        open.expect("a claimed node").ended = Some((record.stamp, record.sequence));
    }

    /// After each record: writes down what claims count from now on. A loss takes effect when the node was last seen,
    /// a fence when it was due, everything else at the stamp.
    pub(crate) fn follow_claims(&mut self, record: &Record) {
        let at = if let Body::NodeLost(lost) = &record.body {
            lost.last_seen
        } else if let Body::Fenced(_) = &record.body {
            record.effective_at
        } else {
            record.stamp
        };
        for place in (0..self.claims.len()).filter(|place| self.claims[*place].ended.is_none()).collect::<Vec<_>>() {
            let now = self.counted_in_service(self.claims[place].node);
            let changes = &mut self.claims[place].changes;
            if changes.last().is_none_or(|(.., before)| *before != now) {
                changes.push((at, record.sequence, now));
            }
        }
    }

    /// What a claimed node counts in a quota on quanta, in the parts in which the quota counts.
    fn claimed_quanta_on(&self, quota: &Quota, node: &Node) -> u128 {
        let counted = self.unfenced_capacity(node).into_iter();
        let counted = counted.filter(|(class, _)| self.has_class(&quota.put.scope, *class));
        counted.map(|(class, quanta)| self.in_parts(quota, class, quanta)).sum()
    }

    /// Whether a quota on nodes counts the claim of a node: if it has any class of the quota.
    fn has_class_on(&self, scope: &QuotaScope, node: &Node) -> bool {
        node.put.capacity.iter().any(|(class, _)| self.has_class(scope, *class))
    }

    /// The claimed nodes in the scope of a quota, by rules version 4.
    fn claimed_in_scope<'a>(&'a self, quota: &'a Quota, who: Who) -> impl Iterator<Item = &'a Node> {
        let scope = &quota.put.scope;
        self.nodes.values().filter(move |node| match node.custody {
            Custody::Claimed { tenant, project, user, .. } => {
                has_claims_of(scope, (tenant, user), project)
                    && (scope.further.user != Some(HolderScope::Each) || who.0 == Some(user))
                    && is_within(scope, (node.put.pool, node.put.node))
            }
            Custody::Open | Custody::Wiping { .. } | Custody::Quarantined { .. } => false,
        })
    }

    /// What claims count in a quota, on one node if one is given; zero before rules version 4.
    pub(crate) fn claimed_part(&self, quota: &Quota, on: Option<NodeNo>, who: Who) -> u128 {
        if !self.is_by_rules_4() {
            return 0;
        }
        let claimed = self.claimed_in_scope(quota, who).filter(|node| on.is_none_or(|on| on == node.put.node));
        match quota.put.measure {
            Measure::Quanta => claimed.map(|node| self.claimed_quanta_on(quota, node)).sum(),
            Measure::Nodes => claimed.filter(|node| self.has_class_on(&quota.put.scope, node)).count() as u128,
            Measure::Leases | Measure::Allocations => 0,
        }
    }

    /// The claimed nodes that a quota on nodes counts, by rules version 4.
    pub(crate) fn claimed_nodes(&self, quota: &Quota, who: Who) -> Vec<NodeNo> {
        let claimed = self.claimed_in_scope(quota, who);
        claimed.filter(|node| self.has_class_on(&quota.put.scope, node)).map(|node| node.put.node).collect()
    }

    /// The quota that refuses a claim by rules version 4, if any. It is tested against the limit in force; a claim
    /// never uses a burst, and a soft limit never refuses.
    pub(crate) fn quota_against_claim(&self, by: Claimer, project: ProjectNo, nodes: &[NodeNo]) -> Option<QuotaNo> {
        let who = (Some(by.1), None);
        let refuses = |quota: &Quota| {
            let scope = &quota.put.scope;
            let limit = match quota.limit() {
                LimitKind::Hard { limit } | LimitKind::Burst { limit, .. } => limit,
                LimitKind::Soft { .. } => return false,
            };
            if !has_claims_of(scope, by, project) {
                return false;
            }
            let over = |used: u128, requested: u128| {
                requested > 0 && used + requested > u128::from(limit) * u128::from(self.unit_parts(quota))
            };
            let within = nodes.iter().map(|node| &self.nodes[node]);
            let within = within.filter(|node| is_within(scope, (node.put.pool, node.put.node)));
            match quota.put.measure {
                Measure::Quanta if scope.node == NodeScope::Each => within
                    .into_iter()
                    .any(|node| over(self.used(quota, Some(node.put.node), who), self.claimed_quanta_on(quota, node))),
                Measure::Quanta => {
                    let requested = within.map(|node| self.claimed_quanta_on(quota, node)).sum();
                    over(self.used(quota, None, who), requested)
                }
                Measure::Nodes => {
                    let requested = within.filter(|node| self.has_class_on(scope, node)).count();
                    over(self.used(quota, None, who), requested as u128)
                }
                Measure::Leases | Measure::Allocations => false,
            }
        };
        self.quotas.iter().find(|(_, quota)| refuses(quota)).map(|(number, _)| *number)
    }

    /// The intervals in which claims of a tenant, or of all, counted something in budgets.
    ///
    /// With each, whether its pool had no GPUs when it was claimed.
    pub(crate) fn claimed_time(&self, of: Option<TenantNo>) -> Vec<(NodeNo, bool, Range<u64>, Counted)> {
        let Some((since, _)) = self.claims_count_since() else { return Vec::new() };
        let mut times = Vec::new();
        for claim in self.claims.iter().filter(|claim| of.is_none_or(|of| of == claim.tenant)) {
            for piece in claim.pieces().into_iter().filter(|piece| !piece.counted.is_empty()) {
                let from = piece.from.max(since).0;
                let to = piece.to.map_or(u64::MAX, |to| to.0).max(from);
                times.push((claim.node, claim.on_pool_without_gpus, from..to, piece.counted));
            }
        }
        times
    }
}
