//! Scopes of quotas from random bits.

use leasehold_engine::State;
use leasehold_model::{
    ClassNo, FurtherScope, HolderScope, NodeNo, NodeScope, PoolNo, Priority, QuotaScope, ResourceKind, TenantNo,
};

pub(crate) fn quota_scope(tenant: TenantNo, bits: u8, state: &State) -> QuotaScope {
    let bit = |n: u8| bits >> n & 1 == 1;
    let project = state.projects().find(|(_, project)| project.tenant == tenant).map(|(number, _)| number);
    QuotaScope {
        tenant,
        project: project.filter(|_| bit(0) && bit(1)),
        class: Some(ClassNo(u16::from(bits >> 2 & 1))).filter(|_| !bit(3) || !bit(1)),
        pool: bit(4).then_some(PoolNo(u32::from(bit(0)))).filter(|_| bit(5)),
        node: match bits >> 5 {
            0 => NodeScope::Each,
            1 => NodeScope::One(NodeNo(1)),
            _ => NodeScope::All,
        },
        priority: Some(Priority::Standard).filter(|_| bit(6) && bit(4)),
        further: FurtherScope {
            kind: Some(ResourceKind::Gpu).filter(|_| bit(3) && bit(1)),
            user: bit(7).then_some(HolderScope::Each).filter(|_| bit(2)),
            app_instance: None,
            and_above: bit(6) && bit(4) && bit(2),
        },
    }
}
