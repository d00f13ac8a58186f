//! Where requests would be placed by the placement index alone, for its tests and benchmarks.

use super::admission::RequestContext;
use crate::command::RequestLease;
use crate::gang::NoGang;
use crate::placement::{Explained, Tentative, Wanted};
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::{DenyCause, Identity, Instant, NodeNo};

impl View<'_> {
    /// Scores every node for a request. Returns the best `top` candidates with their scores, and for the other nodes how
    /// many were excluded for each reason.
    pub fn explain_request(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
        top: usize,
    ) -> Result<Explained, Refusal> {
        let context = RequestContext::new(*self, now, identity);
        let asks = context.check(request)?;
        let lowered = context.lowered(request);
        let request = lowered.as_deref().unwrap_or(request);
        let ask = context.ask(request, &asks);
        Ok(self.explain(&Wanted::one(&ask, &self.node_quotas(&ask)), &|_| None, top))
    }

    /// Where `members` equal requests would be placed together, each one near those before it. All are placed or none.
    pub fn quote_gang(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
        members: usize,
    ) -> Result<Result<Vec<NodeNo>, DenyCause>, Refusal> {
        let context = RequestContext::new(*self, now, identity);
        let asks = context.check(request)?;
        let ask = context.ask(request, &asks);
        let node_quotas = self.node_quotas(&ask);
        let mut tentative = Tentative::default();
        let mut peers = Vec::with_capacity(members);
        for _ in 0..members {
            let placed = match self.best_place(&ask, &node_quotas, &tentative, &peers, None) {
                Ok(placed) => placed,
                Err(NoGang::Quota(cause)) => return Ok(Err(cause)),
                Err(NoGang::Room) => {
                    let wanted = Wanted { peers: &peers, tentative: &tentative, ..Wanted::one(&ask, &node_quotas) };
                    return Ok(Err(self.scarcest(&wanted)));
                }
            };
            tentative.take(self, &placed, &node_quotas);
            peers.push(placed.node);
        }
        Ok(Ok(peers))
    }
}
