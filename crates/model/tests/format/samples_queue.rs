//! Samples of the kinds about waiting and changed allocations, claims and lost nodes, and of later fields.

use super::{NEW_YEAR, gang, leases, name, prices_per_hour_and_day, quota_in_full};
use leasehold_model::body::*;
use leasehold_model::*;
use smallvec::smallvec;

pub(super) fn bodies() -> Vec<Body> {
    vec![
        HeadProtected {
            allocation: AllocationNo(300),
            rules_version: 4,
            nodes: [NodeNo(1), NodeNo(2), NodeNo(300)].into_iter().collect(),
        }
        .into(),
        ProjectPoolPut { project: ProjectNo(300), pool: PoolNo(1), access: PoolAccess::Paused }.into(),
        QueueChanged { head_wait_max: Span::from_secs(3600) }.into(),
        NodesClaimed { nodes: [NodeNo(2)].into_iter().collect(), until: Some(Instant(4_600_000_000_000)) }.into(),
        AllocationFailed {
            allocation: AllocationNo(300),
            end: AttemptEnd::FailedStart,
            exit_status: None,
            storage_written: 0,
        }
        .into(),
        EndsCorrected {
            loss: 300,
            leases: [LeaseNo(11), LeaseNo(12)].into_iter().collect(),
            belongs_to: BelongsTo { allocation: Some(AllocationNo(9)), correlation: Correlation::Derived(9) },
        }
        .into(),
        ClaimEndCorrected { loss: 300, node: NodeNo(7), claim: 290 }.into(),
        LossSettled { loss: 300, node: NodeNo(7) }.into(),
        AllocationHoldSet { allocation: AllocationNo(300), by_operator: false, reason: None }.into(),
        AllocationHoldSet { allocation: AllocationNo(300), by_operator: true, reason: Some(name("wait for data")) }
            .into(),
        AllocationHoldCleared { allocation: AllocationNo(300) }.into(),
        AllocationChanged { allocation: AllocationNo(300), spec: gang() }.into(),
        RateCardPut { card: 300, pool: None, from: NEW_YEAR, prices: prices_per_hour_and_day() }.into(),
        NodeEmpty { node: NodeNo(300), since: NEW_YEAR }.into(),
        QuotaPut { evict_own_lower: true, ..quota_in_full() }.into(),
        PreemptionDecided {
            allocation: AllocationNo(300),
            priority: Priority::Standard,
            rules_version: 4,
            places: vec![ReplicaPlacement {
                node: NodeNo(300),
                members: smallvec![Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b11 }],
            }],
            victims: leases(&[7, 42]),
            headroom: Some(QuotaNo(5)),
        }
        .into(),
        Restored { records: 300, copied_at: NEW_YEAR }.into(),
        WindowAnnounced {
            window: WindowNo(2),
            from: Instant(1_000_000_000),
            until: Instant(4_600_000_000_000),
            reason: None,
            leases: [LeaseNo(11), LeaseNo(12)].into_iter().collect(),
            belongs_to: BelongsTo { allocation: None, correlation: Correlation::Derived(9) },
            cancelled: Some(true),
        }
        .into(),
    ]
}
