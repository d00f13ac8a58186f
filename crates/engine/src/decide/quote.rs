//! What a request would come to, if it were made now. Nothing changes.

use super::admission::RequestContext;
use crate::command::RequestLease;
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::{DenyCause, Identity, Instant, NodeNo, PoolNo, QuotaNo, Span};
use smallvec::SmallVec;

/// What would become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quoted {
    Granted(Quote),
    /// Others must make room first; it would wait until they have.
    Evicts(Evicts),
    Denied(DenyCause),
}

/// A grant that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub node: NodeNo,
    pub pool: PoolNo,
    /// What would be held: shorter than asked if a burst quota ends it.
    pub ttl: Span,
    pub capped_by: Option<QuotaNo>,
    /// Soft quotas that it would pass.
    pub over_soft: SmallVec<[QuotaNo; 1]>,
}

/// An eviction that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicts {
    pub node: NodeNo,
    pub pool: PoolNo,
    /// How many leases would fall.
    pub leases: usize,
}

impl View<'_> {
    /// Judges a request as it would be if it were made at `now`. Who stands first in the queue is found anew, since
    /// only a scheduler remembers it.
    pub fn quote(&self, now: Instant, identity: &Identity, request: &RequestLease) -> Result<Quoted, Refusal> {
        let context = RequestContext::new(*self, now, identity);
        let asks = context.check(request)?;
        let heads = self.heads_before(&context.ask(request, &asks));
        let context = RequestContext { heads: &heads, ..context };
        Ok(match context.admit(request, &asks) {
            Ok((placed, terms)) => {
                let (ttl, capped_by) = terms.ttl(request.ttl, now);
                let over_soft = terms.over_soft;
                Quoted::Granted(Quote { node: placed.node, pool: placed.pool, ttl, capped_by, over_soft })
            }
            Err(cause) => match context.eviction(request, &asks, cause).and_then(|(_, plan)| {
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
