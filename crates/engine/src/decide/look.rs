//! Looking at what would be decided: where requests would go and why. Nothing changes.

use super::admission::Look;
use crate::command::RequestLease;
use crate::custody::Claimer;
use crate::placement::{Explained, Placed, Tentative, Wanted};
use crate::quota::Facts;
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::body::Asks;
use leasehold_model::{DenyCause, Identity, Instant, NodeNo, QuotaNo};
use smallvec::SmallVec;

impl View<'_> {
    /// Scores every node for a request: the best `top` with their terms, and how many are none of
    /// the candidates, by why.
    pub fn explain_request(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
        top: usize,
    ) -> Result<Explained, Refusal> {
        let asks = Look::new(*self, now, identity).check(request)?;
        let node_quotas = self.node_quotas(identity, request, &asks);
        Ok(self.explain(&wanted(identity, request, now, &asks, &node_quotas), &|_| None, top))
    }

    /// Where so many of the same request would go together, each near those before it; all or none.
    pub fn quote_gang(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
        members: usize,
    ) -> Result<Result<Vec<NodeNo>, DenyCause>, Refusal> {
        let asks = Look::new(*self, now, identity).check(request)?;
        let node_quotas = self.node_quotas(identity, request, &asks);
        let mut tentative = Tentative::default();
        let mut peers = Vec::with_capacity(members);
        for _ in 0..members {
            let wanted =
                Wanted { peers: &peers, tentative: &tentative, ..wanted(identity, request, now, &asks, &node_quotas) };
            let placed: Placed = match self.place(&wanted) {
                Ok(placed) => placed,
                Err(cause) => return Ok(Err(cause)),
            };
            tentative.take(self, &placed, &node_quotas);
            peers.push(placed.node);
        }
        Ok(Ok(peers))
    }

    /// Quotas whose answer depends on the node, with what is asked of each.
    fn node_quotas(&self, identity: &Identity, request: &RequestLease, asks: &Asks) -> SmallVec<[(QuotaNo, u64); 4]> {
        let (Some(tenant), Some(project)) = (identity.tenant, identity.project) else { return SmallVec::new() };
        let facts = asks.iter().map(|(class, quanta)| Facts {
            project,
            class: *class,
            priority: request.priority,
            quanta: quanta.0,
        });
        let facts: SmallVec<[Facts; 2]> = facts.collect();
        let quotas = self.quotas_of(tenant).filter(|quota| quota.depends_on_node());
        quotas.map(|quota| (quota.number, quota.asked(&facts))).filter(|(_, asked)| *asked > 0).collect()
    }
}

fn wanted<'a>(
    identity: &Identity,
    request: &'a RequestLease,
    now: Instant,
    asks: &'a Asks,
    node_quotas: &'a [(QuotaNo, u64)],
) -> Wanted<'a> {
    Wanted {
        pool: request.pool,
        node: request.node,
        asks,
        node_quotas,
        ttl: request.ttl,
        priority: request.priority,
        now,
        labels: &request.labels,
        profile: request.profile,
        peers: &[],
        tentative: Tentative::NOTHING,
        claimer: Claimer::of(identity, request.sensitive),
        allow: None,
    }
}
