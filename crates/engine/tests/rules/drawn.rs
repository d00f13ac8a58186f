//! Settings of pools, made of a number that was drawn.

use leasehold_model::body::PoolQueue;
use leasehold_model::{Span, Weights};

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
