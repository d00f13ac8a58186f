//! Folding claims on nodes, their release and the wipe.

use super::{State, entry, entry_mut};
use crate::claims::ClaimedNode;
use crate::custody::{Claim, Claimer, Custody};
use crate::follow::Follower;
use crate::timer::Entry;
use leasehold_model::body::{NodeQuarantined, NodesClaimed, NodesReleased};
use leasehold_model::limits::WIPE_DEADLINE;
use leasehold_model::{Instant, NodeNo, Record};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_claimed(&mut self, record: &Record, claimed: &NodesClaimed, to: &mut impl Follower) -> Folded {
        let identity = &record.identity;
        let by = Claimer {
            tenant: identity.tenant.ok_or("a claim without a tenant")?,
            user: identity.user.ok_or("a claim without a user")?,
        };
        let project = identity.project.ok_or("a claim without a project")?;
        self.tenant(by.tenant).ok_or("no such tenant")?;
        self.project(project).ok_or("no such project")?;
        self.user(by.user).ok_or("no such user")?;
        for node in &claimed.nodes.0 {
            let pool = self.node(*node).ok_or("no such node")?.pool;
            let claim = Claim {
                by,
                project,
                since: record.stamp,
                sequence: record.sequence,
                until: claimed.until,
                counts_cores: !self.has_gpus(pool),
            };
            let is_open = |custody| custody == Custody::Open;
            self.pass_node(*node, Custody::Claimed(claim), record.stamp, is_open, to)?;
        }
        Ok(())
    }

    pub(super) fn fold_nodes_released(
        &mut self,
        record: &Record,
        released: &NodesReleased,
        to: &mut impl Follower,
    ) -> Folded {
        self.note_use(record);
        for node in &released.nodes.0 {
            let custody = self.node(*node).ok_or("no such node")?.custody;
            let claim = custody.claim().ok_or("the node is not claimed")?;
            self.pass_node(*node, Custody::wiping(claim, record.stamp), record.stamp, |_| true, to)?;
            self.note_end(*node, record.stamp);
            let due = self.node(*node).and_then(|node| node.custody.wipe_due());
            due.into_iter().for_each(|due| to.comes_due(Entry::wipe(*node, due)));
        }
        Ok(())
    }

    pub(super) fn fold_wiped(&mut self, node: NodeNo, stamp: Instant, to: &mut impl Follower) -> Folded {
        self.pass_node(node, Custody::Open, stamp, |custody| custody.wipe_due().is_some(), to)
    }

    pub(super) fn fold_quarantined(
        &mut self,
        record: &Record,
        quarantined: &NodeQuarantined,
        to: &mut impl Follower,
    ) -> Folded {
        let custody = Custody::Quarantined { cause: quarantined.cause, since: record.effective_at };
        self.pass_node(quarantined.node, custody, record.stamp, |custody| custody.wipe_due().is_some(), to)
    }

    pub(super) fn fold_quarantine_cleared(&mut self, node: NodeNo, stamp: Instant, to: &mut impl Follower) -> Folded {
        self.pass_node(node, Custody::Open, stamp, |custody| matches!(custody, Custody::Quarantined { .. }), to)
    }

    fn pass_node(
        &mut self,
        number: NodeNo,
        next: Custody,
        stamp: Instant,
        may: impl FnOnce(Custody) -> bool,
        to: &mut impl Follower,
    ) -> Folded {
        let from = self.node(number).ok_or("no such node")?.custody;
        if !may(from) {
            return Err("the node is in another custody state");
        }
        self.set_node_state(number, stamp.into(), |node| node.custody = next, to)?;
        self.claimed.change(number, from, next);
        Ok(())
    }

    /// Restarts the deadlines of wipes at startup, as `restart_limits` does for leases.
    pub(super) fn restart_wipes(&mut self, stamp: Instant) {
        for node in self.nodes.iter_mut().flatten() {
            if let Custody::Wiping { limit_at, .. } = &mut node.custody {
                *limit_at = stamp.saturating_add(WIPE_DEADLINE);
            }
        }
    }

    /// Whether some claim satisfies `which`.
    pub(crate) fn has_claims(&self, which: impl Fn(Claim) -> bool) -> bool {
        let nodes = self.claimed.claimers().flat_map(|claimer| self.claimed.nodes_of(claimer));
        nodes.filter_map(|node| self.node(node)?.custody.claim()).any(which)
    }

    /// Rebuilds the index of claims from the nodes.
    pub(crate) fn rebuild_claims(&mut self) {
        let all: Vec<(NodeNo, Custody)> = self.nodes().map(|node| (node.number, node.custody)).collect();
        for (number, custody) in all {
            self.claimed.change(number, Custody::Open, custody);
        }
    }

    /// Counts all claims in the quotas. The leases must be decoded already, because fenced capacity does not count.
    pub(crate) fn count_claims_in_quotas(&mut self) {
        let nodes: Vec<NodeNo> = self.nodes().map(|node| node.number).collect();
        let claimed: Vec<ClaimedNode> = nodes.into_iter().filter_map(|node| self.claimed_node(node)).collect();
        for claimed in claimed {
            let facts = self.facts_of_claim(&claimed);
            let tenant = entry(&self.tenants, claimed.claim.by.tenant.0).expect("it was checked");
            for quota in &tenant.quotas {
                let quota = entry_mut(&mut self.quotas, quota.0).expect("a listed quota exists");
                quota.tally_claim(&facts, true);
            }
        }
    }
}
