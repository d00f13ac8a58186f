//! Claims on nodes for sensitive work, their release, and the wipe that follows.

use super::Draft;
use crate::claim_cost::project_scope;
use crate::claims::{ClaimFacts, ClaimedNode};
use crate::command::{ClaimNodes, ReportWipe};
use crate::custody::{Claim, Claimer, Custody};
use crate::lease::Phase;
use crate::quota::Verdict;
use crate::refusal::Refusal;
use leasehold_model::body::{
    NodeQuarantined, NodeResumed, NodeWiped, Nodes, NodesClaimed, NodesReleased, QuarantineCleared,
};
use leasehold_model::limits::NODES_PER_CLAIM_MAX;
use leasehold_model::{
    Amount, CeilingMode, DenyCause, Fraction, Instant, NodeNo, ProjectNo, QuarantineCause, TenantNo,
};
use std::collections::BTreeMap;

impl Draft<'_> {
    /// Claims all of the nodes or none. There is no waiting list for claims. An operator may claim drained nodes, which
    /// are resumed by the same command, so that nothing else gets onto them (SEMANTICS 11).
    pub(super) fn claim_nodes(&mut self, claim: &ClaimNodes, by_operator: bool) -> Result<(), Refusal> {
        let (tenant, project) = self.request_context().check_holder(None)?;
        let user = self.identity.user.ok_or(Refusal::SensitiveNeedsUser)?;
        let (nodes, until) = (in_rising_order(&claim.nodes)?, claim.until);
        for number in &nodes.0 {
            self.check_claimable(*number, Claimer { tenant, user }, by_operator)?;
        }
        self.check_sensitive_pool(&nodes)?;
        let by = Claimer { tenant, user };
        let claim = Claim { by, project, since: self.now, sequence: self.state().size(), until, counts_cores: false };
        let claimed: Vec<ClaimedNode> =
            nodes.0.iter().filter_map(|node| self.state().claimed_as(claim, *node)).collect();
        self.check_claim_quotas(tenant, &claimed)?;
        self.check_claim_cost(project, until, &claimed)?;
        let is_drained = |node: &NodeNo| self.state().node(*node).is_some_and(|node| node.drained);
        let drained: Vec<NodeNo> = nodes.0.iter().copied().filter(is_drained).collect();
        self.plain(NodesClaimed { nodes, until });
        drained.into_iter().for_each(|node| self.plain(NodeResumed { node, reason: None }));
        Ok(())
    }

    fn check_claimable(&self, node: NodeNo, by: Claimer, by_operator: bool) -> Result<(), Refusal> {
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        let not_ready = |state| Err(Refusal::NodeNotReady { node, state });
        match found.custody {
            Custody::Open => {}
            Custody::Claimed(claim) if claim.by == by => {
                return Err(Refusal::NodeAlready { node, state: "claimed by this user" });
            }
            Custody::Claimed(_) => return Err(Refusal::NodeClaimed { node }),
            Custody::Wiping { .. } => return not_ready("being wiped"),
            Custody::Quarantined { .. } => return not_ready("quarantined"),
        }
        if found.lost {
            return not_ready("lost");
        }
        if let Some(window) = self.state().window_of(node) {
            return Err(Refusal::NodeInWindow { node, window });
        }
        if found.drained && !by_operator {
            return not_ready("drained");
        }
        if found.has_leases() || found.is_reserved() {
            return Err(Refusal::NodeInUse { node });
        }
        Ok(())
    }

    fn check_sensitive_pool(&self, nodes: &Nodes) -> Result<(), Refusal> {
        let (used, requested) = (self.state().claimed.sensitive_pool(), nodes.0.len() as u64);
        match self.state().settings.sensitive_pool_size {
            Some(limit) if used + requested > limit => Err(Refusal::SensitivePoolFull { used, requested, limit }),
            _ => Ok(()),
        }
    }

    /// A claimed node counts whole, whether or not anything runs on it.
    fn check_claim_quotas(&self, tenant: TenantNo, claimed: &[ClaimedNode]) -> Result<(), Refusal> {
        let facts: Vec<ClaimFacts> = claimed.iter().map(|one| self.state().facts_of_claim(one)).collect();
        for quota in self.state().quotas_of(tenant) {
            let whole = |count| Fraction::new(u128::from(count), 1);
            let (used, requested, limit) = match quota.judge_claim(&facts) {
                Verdict::Refused(DenyCause::Quota { used, requested, limit, .. }) => {
                    (whole(used), whole(requested), limit)
                }
                Verdict::Refused(DenyCause::KindQuota { used, requested, limit, .. }) => (used, requested, limit),
                _ => continue,
            };
            return Err(Refusal::ClaimOverQuota { tenant, quota: quota.number, used, requested, limit });
        }
        Ok(())
    }

    /// Under a hard ceiling, a claim reserves its cost up to its expected end.
    fn check_claim_cost(
        &self,
        project: ProjectNo,
        until: Option<Instant>,
        claimed: &[ClaimedNode],
    ) -> Result<(), Refusal> {
        if let Some(until) = until.filter(|until| *until <= self.now) {
            return Err(Refusal::ClaimUntilPast { until });
        }
        let state = self.state();
        if let Some(found) = state.project(project) {
            self.check_prepaid_claim((found.tenant, project), until, claimed)?;
        }
        let of = project_scope(project);
        let Some(ceiling) = state.ceiling(of).filter(|ceiling| ceiling.mode == CeilingMode::Hard) else {
            return Ok(());
        };
        let until = until.ok_or(Refusal::ClaimNeedsUntil { of })?;
        let requested = state.cost_of_claiming(claimed, self.now, until, ceiling.currency);
        let used = state.ceiling_use(ceiling, self.now).total();
        if requested > Amount::ZERO && used.saturating_add(requested) > ceiling.amount {
            let (amount, currency) = (ceiling.amount, ceiling.currency);
            return Err(Refusal::ClaimOverCeiling { of, requested, used, amount, currency });
        }
        Ok(())
    }

    pub(super) fn release_nodes(&mut self, nodes: &[NodeNo]) -> Result<(), Refusal> {
        let nodes = in_rising_order(nodes)?;
        let mut ends: BTreeMap<u64, (Claim, Vec<NodeNo>)> = BTreeMap::new();
        for number in &nodes.0 {
            let claim = self.own_claim(*number)?;
            let is_other = |(first, _): &(Claim, _)| (first.by, first.project) != (claim.by, claim.project);
            ends.entry(claim.sequence).or_insert_with(|| (claim, Vec::new())).1.push(*number);
            if ends.values().any(is_other) {
                return Err(Refusal::ClaimsDiffer);
            }
            // Fenced leases do not prevent a release: they stay fenced under the next custodian.
            let on = self.state().leases_on(*number);
            if on.iter().any(|lease| lease.phase != Phase::Fenced) {
                return Err(Refusal::NodeHasLeases { node: *number });
            }
        }
        for (sequence, (claim, nodes)) in ends {
            self.emit_for(&claim.identity(), NodesReleased { nodes: Nodes(nodes), claim: Some(sequence) });
        }
        Ok(())
    }

    /// The claim on a node, if the caller may act for its holder. Claims of others are answered like missing ones.
    fn own_claim(&self, node: NodeNo) -> Result<Claim, Refusal> {
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        let asker = self.identity;
        let is_own = |claim: &Claim| {
            asker.tenant.is_none_or(|tenant| tenant == claim.by.tenant)
                && asker.project.is_none_or(|project| project == claim.project)
                && asker.user.is_none_or(|user| user == claim.by.user)
        };
        found.custody.claim().filter(is_own).ok_or(Refusal::NodeNotClaimed { node })
    }

    pub(super) fn report_wipe(&mut self, report: &ReportWipe) -> Result<(), Refusal> {
        let node = report.node;
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        let ended = found.custody.ended_claim();
        if let Some(generation) = report.generation {
            self.check_generation(node, generation)?;
        }
        let ended = ended.ok_or(Refusal::NodeNotWiping { node })?;
        let (identity, claim) = (ended.identity(), Some(ended.sequence));
        match report.clean {
            true => self.emit_for(&identity, NodeWiped { node, claim }),
            false => self.emit_for(&identity, NodeQuarantined { node, cause: QuarantineCause::WipeFailed, claim }),
        }
        Ok(())
    }

    pub(super) fn clear_quarantine(&mut self, node: NodeNo) -> Result<(), Refusal> {
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if !matches!(found.custody, Custody::Quarantined { .. }) {
            return Err(Refusal::NodeNotQuarantined { node });
        }
        self.plain(QuarantineCleared { node });
        Ok(())
    }
}

/// Sorts the nodes of a command, and checks that there are not too many of them and none is named twice.
pub(super) fn in_rising_order(nodes: &[NodeNo]) -> Result<Nodes, Refusal> {
    if nodes.is_empty() {
        return Err(Refusal::NoNodes);
    }
    if nodes.len() > NODES_PER_CLAIM_MAX {
        return Err(Refusal::TooManyNodes { named: nodes.len(), limit: NODES_PER_CLAIM_MAX });
    }
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Refusal::DuplicateNode { node: pair[0] }),
        None => Ok(Nodes(sorted)),
    }
}
