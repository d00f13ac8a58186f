//! Lost nodes, and what ended on them after they were last seen (SEMANTICS 11, "Lost nodes").

use super::Draft;
use crate::command::{EndedLease, LoseNode, SettleLoss};
use crate::holder::Holder;
use crate::refusal::Refusal;
use leasehold_model::body::{ClaimEndCorrected, EndsCorrected, LossSettled, NodeLost};
use leasehold_model::{Identity, LeaseNo};
use std::collections::BTreeMap;

impl Draft<'_> {
    /// Declares a node lost. Its leases end at the instant it was last seen.
    pub(super) fn lose_node(&mut self, lost: &LoseNode) -> Result<(), Refusal> {
        let node = lost.node;
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if found.lost {
            return Err(Refusal::NodeAlready { node, state: "lost" });
        }
        if lost.last_seen > self.now {
            return Err(Refusal::LastSeenInFuture);
        }
        if lost.last_seen < found.last_sign {
            return Err(Refusal::SeenSince { node, at: found.last_sign });
        }
        self.plain(NodeLost { node, last_seen: lost.last_seen });
        self.end_all_on(node, lost.last_seen);
        Ok(())
    }

    /// Records what ended on a lost node after it was last seen, in one record for each holder.
    pub(super) fn settle_loss(&mut self, settle: &SettleLoss) -> Result<(), Refusal> {
        let loss = settle.loss;
        let open = self.state().open_loss(loss).ok_or(Refusal::NoOpenLoss { loss })?;
        let mut groups: BTreeMap<Holder, Vec<LeaseNo>> = BTreeMap::new();
        for ended in &settle.leases {
            // A closed lease is not in the state; one that is must fit.
            let fits = |lease: &crate::lease::Lease| lease.node == open.node && !lease.phase.is_held();
            if ended.lease.0 >= self.state().next_lease || !self.state().lease(ended.lease).is_none_or(fits) {
                return Err(Refusal::LeaseElsewhere { lease: ended.lease, node: open.node });
            }
            groups.entry(holder(ended)).or_default().push(ended.lease);
        }
        for (holder, mut leases) in groups {
            leases.sort_unstable();
            leases.dedup();
            let (leases, belongs_to) = (leases.into_iter().collect(), holder.belongs_to);
            let body = EndsCorrected { loss, leases, belongs_to };
            self.emit_shaped(&holder.identity(), body, |record| record.effective_at = open.last_seen);
        }
        for ended in &settle.claims {
            let (tenant, project, user) = (Some(ended.tenant), Some(ended.project), Some(ended.user));
            let identity = Identity { tenant, project, user, ..Identity::default() };
            let body = ClaimEndCorrected { loss, node: open.node, claim: ended.claim };
            self.emit_shaped(&identity, body, |record| record.effective_at = open.last_seen);
        }
        if settle.complete {
            self.plain(LossSettled { loss, node: open.node });
        }
        Ok(())
    }
}

fn holder(ended: &EndedLease) -> Holder {
    let EndedLease { tenant, project, user, workload, belongs_to, .. } = ended.clone();
    Holder { tenant, project, user, workload, belongs_to }
}
