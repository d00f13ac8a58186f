//! Settings of the system, of pools, and of projects on pools, made of numbers that were drawn.

use leasehold_engine::command::{PutQuota, SetPoolAccess};
use leasehold_engine::{Command, Settings};
use leasehold_model::body::PoolQueue;
use leasehold_model::{LimitKind, Measure, PoolAccess, PoolNo, ProjectNo, QuotaScope, Span, Weights};

/// Kept, cleared, or new and mostly possible.
pub(crate) fn weights(drawn: Option<u64>) -> Option<Option<Weights>> {
    let drawn = u16::try_from(drawn?).expect("small");
    match drawn % 3 {
        0 => None,
        1 => Some(None),
        _ => Some(Some(Weights { pressure: drawn, fit: 100, locality: 300, fragmentation: 600 - drawn - drawn % 2 })),
    }
}

/// Kept, or limits that histories reach.
pub(crate) fn queue(drawn: Option<u64>) -> Option<PoolQueue> {
    let drawn = drawn?;
    let requeue_limit = u32::try_from(drawn % 5).expect("small");
    Some(PoolQueue { min_runtime_before_eviction: Span::from_secs(drawn % 3 * 10), requeue_limit })
}

/// How a project is admitted to a pool.
pub(crate) fn access(project: u32, drawn: u64) -> Command {
    let access = PoolAccess::ALL[usize::try_from(drawn % 3).expect("small")];
    let pool = PoolNo(u32::try_from(drawn / 3 % 3).expect("small"));
    Command::SetPoolAccess(SetPoolAccess { project: ProjectNo(project), pool, access })
}

pub(crate) fn settings(teardown: u64, window: u64) -> Settings {
    Settings {
        teardown_deadline: Span::from_secs(teardown),
        idempotency_window: Span::from_secs(window),
        heat_half_life: Span::from_secs(1 + teardown),
        sensitive_pool_size: Some(teardown % 7).filter(|size| *size > 0),
        // Mostly so short that heads are protected.
        head_wait_max: Span::from_secs(1 + window % 7 * 60),
        ..Settings::default()
    }
}

/// A new quota; most of those with an even limit let requests evict.
pub(crate) fn new_quota(scope: QuotaScope, measure: u8, limit: LimitKind) -> PutQuota {
    let evict_own_lower = Some(limit.limit().is_multiple_of(2)).filter(|evicts| *evicts);
    PutQuota { evict_own_lower, ..PutQuota::new(None, scope, Measure::ALL[usize::from(measure)], limit) }
}
