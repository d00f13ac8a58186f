//! Usage over any window, by a pass over all leases (SEMANTICS 2 and 7).

use crate::lease::Lease;
use crate::oracle::Oracle;
use leasehold_model::{ClassNo, Instant, TenantNo};
use std::collections::BTreeMap;
use std::ops::Range;

/// The half-open billed interval of a lease, as known at `now`.
fn billed(lease: &Lease, now: Instant) -> Range<Instant> {
    let end = lease.billed_to.or(lease.ended_at).unwrap_or(lease.expires_at.min(now));
    lease.granted_at..end.max(lease.granted_at)
}

impl Oracle {
    /// Σ quanta × nanoseconds of `window` per tenant and class; zeros are omitted.
    pub fn usage(&self, window: Range<Instant>, now: Instant) -> BTreeMap<(TenantNo, ClassNo), u128> {
        let mut usage = BTreeMap::new();
        for lease in &self.world.leases {
            let billed = billed(lease, now);
            let from = billed.start.max(window.start);
            let overlap = billed.end.min(window.end).since(from);
            if overlap.0 > 0 {
                let sum: &mut u128 = usage.entry((lease.tenant, lease.class)).or_default();
                *sum += u128::from(lease.quanta) * u128::from(overlap.0);
            }
        }
        usage
    }
}
