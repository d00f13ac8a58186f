//! Quotes: the outcome that a request would have now. Nothing changes.

use super::admission::RequestContext;
use crate::command::RequestLease;
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::{DenyCause, Identity, Instant, NodeNo, PoolNo, QuotaNo, Span, WindowNo};
use smallvec::SmallVec;

/// The outcome that a request would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quoted {
    Granted(Quote),
    /// The request would evict others and wait until their leases are torn down.
    Evicts(Evicts),
    Denied(DenyCause),
}

/// The grant that a request would get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub node: NodeNo,
    pub pool: PoolNo,
    /// The TTL that would be granted. It is shorter than requested if a burst quota ends or a maintenance window begins
    /// before.
    pub ttl: Span,
    pub capped_by: Option<QuotaNo>,
    pub capped_by_window: Option<WindowNo>,
    /// Soft quotas that it would exceed.
    pub over_soft: SmallVec<[QuotaNo; 1]>,
}

/// The eviction that a request would cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicts {
    pub node: NodeNo,
    pub pool: PoolNo,
    /// How many leases would be evicted.
    pub leases: usize,
}

impl View<'_> {
    /// The outcome of a request at `now`. The heads of the queue are recomputed, because only a scheduler remembers
    /// them.
    pub fn quote(&self, now: Instant, identity: &Identity, request: &RequestLease) -> Result<Quoted, Refusal> {
        let context = RequestContext::new(*self, now, identity);
        let asks = context.check(request)?;
        let lowered = context.lowered(request);
        let request = lowered.as_deref().unwrap_or(request);
        let heads = self.heads_before(&context.ask(request, &asks));
        let context = RequestContext { heads: &heads, ..context };
        Ok(match context.admit(request, &asks) {
            Ok((placed, terms)) => {
                let capped = terms.ttl(request.ttl, now);
                let (ttl, capped_by, capped_by_window) = self.capped_on(placed.node, capped, now);
                let (node, pool, over_soft) = (placed.node, placed.pool, terms.over_soft);
                Quoted::Granted(Quote { node, pool, ttl, capped_by, capped_by_window, over_soft })
            }
            Err(cause) => match context.eviction(request, &asks, cause)?.and_then(|(_, plan)| {
                let node = plan.places.first()?.node;
                let pool = self.node(node)?.pool;
                Some(Evicts { node, pool, leases: plan.victims.0.len() })
            }) {
                Some(evicts) => Quoted::Evicts(evicts),
                None => Quoted::Denied(cause),
            },
        })
    }
}
