//! Waits until an allocation is placed.

use crate::client::Client;
use crate::error::Error;
use crate::retry::Backoff;
use leasehold_api::{AllocationDetail, AllocationId, Granted, Problem};
use std::time::Duration;
use tokio::time::Instant;

/// The first pause is short, because victims on nodes without agents end immediately.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// An allocation that was placed.
pub struct Placed {
    pub allocation: AllocationDetail,
    /// An instant before it was placed, by the monotonic clock of this machine.
    pub before: Instant,
}

impl Client {
    /// Polls until the allocation is placed or has ended. `seen` is called with each answer. Dropping the future leaves
    /// the allocation in the queue.
    pub async fn until_placed(
        &self,
        allocation: AllocationId,
        mut seen: impl FnMut(&AllocationDetail),
    ) -> Result<Placed, Error> {
        let mut backoff = Backoff::new(FIRST_PAUSE, PAUSE_MAX);
        let mut before = Instant::now();
        loop {
            let asked_at = Instant::now();
            let answer = self.show_allocation(allocation).await?;
            seen(&answer);
            let state = answer.allocation.state;
            if state.is_over() {
                let why = format!("alloc-{allocation} ended before it was placed: it is {state}");
                return Err(Problem::new(409, "allocation_over", why).into());
            }
            if !state.is_queued() {
                return Ok(Placed { allocation: answer, before });
            }
            before = asked_at;
            tokio::time::sleep(backoff.pause()).await;
        }
    }
}

impl Placed {
    /// The leases of its latest attempt, in the form of an immediate grant. The node is that of the first replica.
    pub fn granted(&self) -> Option<Granted> {
        let allocation = &self.allocation.allocation;
        let attempt = self.allocation.attempts.last()?;
        let first = attempt.replicas.first()?;
        Some(Granted {
            sequence: allocation.id.0,
            leases: attempt.replicas.iter().flat_map(|replica| replica.leases.clone()).collect(),
            node: first.node.clone(),
            pool: first.pool.clone(),
            priority: allocation.priority,
            granted_at: attempt.placed_at,
            expires_at: first.expires_at,
            correlation_id: allocation.correlation_id.clone(),
            over_soft_quota_ids: Vec::new(),
            capped_by_quota_id: None,
            capped_by_window_id: None,
        })
    }
}
