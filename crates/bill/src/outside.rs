//! What a bill depends on and the records of its tenant do not say: the capacity of nodes, and for whom something was
//! evicted. A fold over a whole journal reads it there; one over the records of a tenant is told.

use crate::concern::Concern;
use crate::list::{ClaimedNode, ClaimedNodes};
use crate::sorted::Sorted;
use leasehold_model::{AllocationNo, Body, ClassNo, NodeNo, PoolNo, Quanta, Record, TenantNo};
use std::collections::BTreeMap;

/// Something that no record of the tenant says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    Claimed(ClaimedNode),
    /// The decision at this sequence was made for a request of the tenant itself.
    OwnEviction(u64),
}

/// What a journal says about nodes and allocations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    pub(crate) nodes: BTreeMap<NodeNo, (PoolNo, Vec<(ClassNo, Quanta)>)>,
    /// Who submitted the allocations that are not over.
    pub(crate) allocations: BTreeMap<u64, TenantNo>,
    /// The last decision to evict, and the tenant that it was made for.
    pub(crate) evictor: Option<(u64, TenantNo)>,
    pub(crate) outside: Vec<(TenantNo, Outside)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Journal(Journal),
    Stated(ClaimedNodes),
}

impl Default for Source {
    fn default() -> Self {
        Self::Journal(Journal::default())
    }
}

impl Journal {
    fn note(&mut self, record: &Record, concern: Concern) {
        self.outside.clear();
        let over = |allocation: AllocationNo| allocation.0;
        if let Body::NodePut(put) = &record.body {
            self.nodes.insert(put.node, (put.pool, put.capacity.clone()));
        } else if let Body::NodeDeleted(gone) = &record.body {
            self.nodes.remove(&gone.node);
        } else if let Body::AllocationSubmitted(_) = &record.body
            && let Concern::Tenant(tenant) = concern
        {
            self.allocations.insert(record.sequence, tenant);
        } else if let Body::PreemptionDecided(decided) = &record.body {
            self.decided(record, decided.allocation);
        } else if let Body::ReservationTakenOver(taken) = &record.body {
            self.decided(record, taken.allocation);
        } else if let Body::AllocationFailed(failed) = &record.body {
            self.allocations.remove(&over(failed.allocation));
        } else if let Body::AllocationCompleted(completed) = &record.body {
            self.allocations.remove(&over(completed.allocation));
        } else if let Body::AllocationCancelled(cancelled) = &record.body {
            self.allocations.remove(&over(cancelled.allocation));
        }
    }

    fn decided(&mut self, record: &Record, allocation: AllocationNo) {
        self.evictor = self.allocations.get(&allocation.0).map(|tenant| (record.sequence, *tenant));
    }
}

impl Source {
    #[inline]
    pub(crate) fn note(&mut self, record: &Record, concern: Concern) {
        if let Self::Journal(journal) = self {
            journal.note(record, concern);
        }
    }

    /// Whether the decision at a sequence was made for a request of this tenant.
    pub(crate) fn is_for_own(&mut self, by: u64, tenant: TenantNo) -> bool {
        match self {
            Self::Journal(journal) => {
                let is_own = journal.evictor == Some((by, tenant));
                if is_own {
                    journal.outside.push((tenant, Outside::OwnEviction(by)));
                }
                is_own
            }
            Self::Stated(stated) => stated.own_evictions.get(&by).is_some(),
        }
    }

    /// The node that a record of this tenant claims.
    pub(crate) fn claimed_node(&mut self, tenant: TenantNo, claim: u64, node: NodeNo) -> Option<ClaimedNode> {
        match self {
            Self::Journal(journal) => {
                let (pool, capacity) = journal.nodes.get(&node)?.clone();
                let found = ClaimedNode { claim, node, pool, capacity: Sorted::new(capacity) };
                journal.outside.push((tenant, Outside::Claimed(found.clone())));
                Some(found)
            }
            Self::Stated(stated) => stated.nodes.get(&(claim, node)).cloned(),
        }
    }

    pub(crate) fn take_outside(&mut self) -> Vec<(TenantNo, Outside)> {
        match self {
            Self::Journal(journal) => std::mem::take(&mut journal.outside),
            Self::Stated(_) => Vec::new(),
        }
    }
}
