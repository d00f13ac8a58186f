//! What a request would come to, if it were made now. Nothing changes.

use super::admission::Look;
use crate::allocation::Allocation;
use crate::command::RequestLease;
use crate::queue::{Line, Rank};
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::{DenyCause, Identity, Instant, NodeNo, PoolNo, QuotaNo, Span};
use smallvec::SmallVec;
use std::collections::BTreeMap;

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
        let heads = self.heads_before_request(now, identity, request)?;
        let look = Look { view: *self, now, identity, heads: &heads };
        let (asks, admitted) = look.admit(request)?;
        Ok(match admitted {
            Ok((placed, terms)) => {
                let (ttl, capped_by) = terms.ttl(request.ttl, now);
                let over_soft = terms.over_soft;
                Quoted::Granted(Quote { node: placed.node, pool: placed.pool, ttl, capped_by, over_soft })
            }
            Err(cause) => match look.eviction(request, &asks, cause).and_then(|(_, plan)| {
                let node = plan.places.first()?.node;
                let pool = self.node(node)?.pool;
                Some(Evicts { node, pool, leases: plan.victims.0.len() })
            }) {
                Some(evicts) => Quoted::Evicts(evicts),
                None => Quoted::Denied(cause),
            },
        })
    }

    /// Who stands first in the lines that a request would pass.
    fn heads_before_request(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
    ) -> Result<BTreeMap<Line, Rank>, Refusal> {
        if self.queue.len() == 0 {
            return Ok(BTreeMap::new());
        }
        let asks = Look::new(*self, now, identity).check(request)?;
        let last = Allocation::to_come(identity, request.as_allocation(&asks), now);
        Ok(last.map_or_else(BTreeMap::new, |last| self.heads_before(&last, now)))
    }
}
