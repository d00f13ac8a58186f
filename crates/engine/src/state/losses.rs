//! Lost nodes: until when their leases are billed (SEMANTICS 11, "Lost nodes").
//!
//! Whatever ended on a node after it was last seen is billed to that instant only. The engine forgets closed leases, so
//! it remembers for each node when something last ended there. If that was after the node was last seen, the loss is
//! open until the daemon has named all of it, which the books know.

use super::{State, entry_mut};
use crate::claims::ChangedAt;
use crate::follow::Follower;
use crate::heat;
use leasehold_model::body::{ClaimEndCorrected, EndsCorrected, LossSettled, NodeLost};
use leasehold_model::{Instant, NodeNo, Record};

type Folded = Result<(), &'static str>;

/// The rules version from which the ends of leases on lost nodes are corrected.
const CORRECTED_ENDS: u32 = 4;

/// The loss of a node on which something ended after it was last seen, and is not yet all named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLoss {
    pub node: NodeNo,
    pub last_seen: Instant,
}

impl State {
    /// The losses that are not settled, by the sequence of their records.
    pub fn open_losses(&self) -> impl Iterator<Item = (u64, OpenLoss)> + '_ {
        self.open_losses.iter().map(|(loss, open)| (*loss, *open))
    }

    pub(crate) fn open_loss(&self, loss: u64) -> Option<OpenLoss> {
        self.open_losses.get(&loss).copied()
    }

    pub(super) fn fold_lost(&mut self, record: &Record, lost: &NodeLost, to: &mut impl Follower) -> Folded {
        let at = ChangedAt { stamp: record.stamp, effective: lost.last_seen };
        self.set_node_state(lost.node, at, |node| node.lost = true, to)?;
        self.heat(lost.node, heat::LOST, record.stamp, to)?;
        self.drop_report(lost.node, record.stamp, to)?;
        let last_end = self.node(lost.node).ok_or("no such node")?.last_end;
        if self.follows_rules(CORRECTED_ENDS) && last_end > lost.last_seen {
            self.open_losses.insert(record.sequence, OpenLoss { node: lost.node, last_seen: lost.last_seen });
        }
        Ok(())
    }

    /// Leases that are still being torn down or fenced end earlier. What budgets and ceilings have counted for them
    /// stays counted, as it does for closed leases.
    pub(super) fn fold_ends_corrected(&mut self, record: &Record, corrected: &EndsCorrected) -> Folded {
        let open = self.open_loss(corrected.loss).ok_or("no such loss is open")?;
        self.note_use(record);
        for number in &corrected.leases.0 {
            let Some(slot) = self.leases.slot(*number) else { continue };
            let lease = self.leases.at_mut(slot);
            if lease.node != open.node || lease.phase.is_held() {
                return Err("the lease is on another node or still held");
            }
            lease.ended_at = lease.ended_at.min(record.effective_at).max(lease.granted_at);
        }
        Ok(())
    }

    pub(super) fn fold_claim_end_corrected(&mut self, record: &Record, corrected: &ClaimEndCorrected) -> Folded {
        self.note_use(record);
        self.open_loss(corrected.loss).filter(|open| open.node == corrected.node).ok_or("no such loss is open")?;
        Ok(())
    }

    pub(super) fn fold_loss_settled(&mut self, settled: &LossSettled) -> Folded {
        self.open_losses.remove(&settled.loss).ok_or("no such loss is open")?;
        Ok(())
    }

    /// Something ended on a node.
    #[inline]
    pub(super) fn note_end(&mut self, node: NodeNo, at: Instant) {
        let node = entry_mut(&mut self.nodes, node.0).expect("the node exists");
        node.last_end = node.last_end.max(at);
    }

    /// The node showed that it was running.
    pub(super) fn note_sign_of_life(&mut self, node: NodeNo, at: Instant) -> Folded {
        entry_mut(&mut self.nodes, node.0).ok_or("no such node")?.last_sign = at;
        Ok(())
    }
}
