//! A fold over a journal as bytes, so that the next month can begin where this one ended.

use crate::common::Common;
use crate::fold::Fold;
use crate::list::{CommonList, TenantList};
use crate::outside::{Journal, Source};
use crate::sorted::{Keyed, Sorted, keyed};
use leasehold_model::codec::{DecodeError, Field};
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, Quanta, TenantNo, fields};

fields! {
    pub struct SavedNode { pub node: NodeNo, pub pool: PoolNo, pub capacity: Sorted<(ClassNo, Quanta)> }
}
fields! {
    pub struct SavedAllocation { pub allocation: u64, pub tenant: TenantNo }
}
fields! {
    pub struct SavedFold {
        pub next: u64,
        pub last_stamp: Instant,
        pub common: CommonList,
        pub tenants: Sorted<TenantList>,
        pub nodes: Sorted<SavedNode>,
        pub allocations: Sorted<SavedAllocation>,
        pub evictor: Option<(u64, TenantNo)>,
    }
}

keyed! {
    TenantList, TenantNo, |item| item.tenant;
    SavedNode, NodeNo, |item| item.node;
    SavedAllocation, u64, |item| item.allocation;
}

impl Fold {
    /// All that a fold over a journal has to know to go on.
    ///
    /// # Panics
    /// If it was made from the lists of a tenant.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Source::Journal(journal) = &self.source else { panic!("only a fold over a whole journal is saved") };
        let nodes = journal.nodes.iter().map(|(node, (pool, capacity))| SavedNode {
            node: *node,
            pool: *pool,
            capacity: Sorted::new(capacity.iter().copied()),
        });
        let allocations = journal.allocations.iter();
        SavedFold {
            next: self.next,
            last_stamp: self.last_stamp,
            common: self.common_list(),
            tenants: Sorted::new(self.tenants().map(|tenant| self.tenant_list(tenant))),
            nodes: Sorted::new(nodes),
            allocations: Sorted::new(
                allocations.map(|(allocation, tenant)| SavedAllocation { allocation: *allocation, tenant: *tenant }),
            ),
            evictor: journal.evictor,
        }
        .to_bytes()
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let saved = SavedFold::from_bytes(bytes)?;
        let nodes = saved.nodes.into_iter().map(|node| (node.node, (node.pool, node.capacity.into_iter().collect())));
        let allocations = saved.allocations.into_iter().map(|of| (of.allocation, of.tenant));
        let journal = Journal {
            nodes: nodes.collect(),
            allocations: allocations.collect(),
            evictor: saved.evictor,
            ..Journal::default()
        };
        let mut fold = Self {
            next: saved.next,
            last_stamp: saved.last_stamp,
            common: Common::of(saved.common),
            source: Source::Journal(journal),
            ..Self::default()
        };
        fold.put_lists(saved.tenants.into_iter().map(|list| (list.key(), list)).collect());
        Ok(fold)
    }
}
