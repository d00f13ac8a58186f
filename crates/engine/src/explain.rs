//! Why something was granted, denied, made to wait or evicted: every check with its numbers, every node with its score
//! (SEMANTICS 5). For people who ask, not for the way of a request: it scores every node, one by one.

mod placing;

pub use placing::ReplicaPlace;

use crate::admission::{CeilingCheck, QuotaCheck};
use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::command::RequestLease;
use crate::decide::admission::RequestContext;
use crate::placement::{Candidate, Explained};
use crate::preempt::Sacrifice;
use crate::queue::{Standing, Waits};
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::body::Asks;
use leasehold_model::{AllocationSpec, DenyCause, Identity, Instant, Profile};
use placing::Placing;

/// What made the winner win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deciding {
    Pressure,
    Fit,
    Locality,
    Fragmentation,
    /// The runner-up is hotter.
    Heat,
    /// They are worth the same: the lower number wins.
    Number,
    /// There was no other.
    Alone,
}

impl Deciding {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pressure => "pressure",
            Self::Fit => "fit",
            Self::Locality => "locality",
            Self::Fragmentation => "fragmentation",
            Self::Heat => "heat",
            Self::Number => "number",
            Self::Alone => "alone",
        }
    }
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub asks: Asks,
    /// What the workload was known to depend on, if anything was.
    pub profile: Option<Profile>,
    pub quotas: Vec<QuotaCheck>,
    pub ceilings: Vec<CeilingCheck>,
    /// How many replicas are asked for.
    pub replica_count: u32,
    /// For which of them the nodes are told, counted from one: each finds what those before it leave.
    pub replica: u32,
    /// The nodes, for that replica.
    pub placement: Explained,
    /// What made the winner win; nothing where nothing is placed.
    pub deciding: Option<Deciding>,
    /// Where the replicas of a gang go, the first ones of many; none of one that cannot start.
    pub replicas: Vec<ReplicaPlace>,
    /// What would stand in the way of one that finds no place.
    pub denied: Option<DenyCause>,
    /// What would have to fall on the nodes where that hurts least, the best first.
    pub evictions: Vec<Sacrifice>,
    /// Only of an allocation that waits.
    pub queue: Option<Place>,
}

/// Where one that waits stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub standing: Standing,
    pub waits: Waits,
}

/// By which of its terms the best candidate beat the next.
fn deciding(best: &[Candidate]) -> Option<Deciding> {
    let [first, rest @ ..] = best else { return None };
    let Some(next) = rest.first() else { return Some(Deciding::Alone) };
    if first.score == next.score {
        return Some(Deciding::Number);
    }
    let weighed = |c: &Candidate| {
        let weights = c.weighing.weights();
        [
            (u64::from(weights.pressure) * c.pressure, Deciding::Pressure),
            (u64::from(weights.fit) * c.fit, Deciding::Fit),
            (u64::from(weights.locality) * c.locality, Deciding::Locality),
            (u64::from(weights.fragmentation) * c.fragmentation, Deciding::Fragmentation),
        ]
    };
    let (ours, theirs) = (weighed(first), weighed(next));
    let sum = |terms: &[(u64, Deciding)]| terms.iter().map(|(term, _)| term).sum::<u64>();
    if sum(&ours) <= sum(&theirs) {
        return Some(Deciding::Heat);
    }
    let lead = ours.iter().zip(&theirs).map(|((our, term), (their, _))| (our.saturating_sub(*their), *term));
    lead.max_by_key(|(lead, _)| *lead).map(|(_, term)| term)
}

impl View<'_> {
    /// Explains a request as it would be decided at `now`.
    pub fn explain_lease(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
        top: usize,
    ) -> Result<Explanation, Refusal> {
        let context = RequestContext::new(*self, now, identity);
        let asks = context.check(request)?;
        Ok(self.explain_ask(context.ask(request, &asks), None, top))
    }

    /// Explains a gang as it would be decided if it were submitted at `now`: one of its replicas, the first unless
    /// another is named. `None` if it would be nobody's.
    pub fn explain_gang(
        &self,
        now: Instant,
        identity: &Identity,
        spec: &AllocationSpec,
        replica: Option<u32>,
        top: usize,
    ) -> Option<Explanation> {
        Some(self.explain_ask(Ask::of_spec(identity, spec, now)?, replica, top))
    }

    /// Explains an allocation as it stands: what it waits for, or where a replica of it would go.
    pub fn explain_allocation(
        &self,
        found: &Allocation,
        now: Instant,
        replica: Option<u32>,
        top: usize,
    ) -> Explanation {
        let mut explanation = self.explain_ask(Ask::of(found, now), replica, top);
        explanation.queue = self.place_in_queue(found, now);
        explanation
    }

    /// Explains one that starts, or waits to start, where its victims make room: nothing is chosen for it any more, but
    /// its quotas and ceilings are asked again.
    pub fn explain_kept(&self, found: &Allocation, now: Instant) -> Explanation {
        let ask = Ask::of(found, now);
        Explanation {
            asks: ask.asks.clone(),
            profile: ask.profile,
            quotas: self.quota_checks(&ask),
            ceilings: self.ceiling_checks(&ask),
            replica_count: ask.replicas,
            replica: 1,
            placement: Explained::default(),
            deciding: None,
            replicas: Vec::new(),
            denied: None,
            evictions: Vec::new(),
            queue: self.place_in_queue(found, now),
        }
    }

    /// Where an allocation stands that waits.
    pub fn place_in_queue(&self, found: &Allocation, now: Instant) -> Option<Place> {
        let waits = self.waiting_for(found, now)?;
        Some(Place { standing: self.standing(found.tenant, now), waits })
    }

    fn explain_ask(&self, ask: Ask<'_>, replica: Option<u32>, top: usize) -> Explanation {
        let placing = Placing::new(*self, ask);
        let found = placing.place();
        let (placement, number) = placing.nodes_for(&found, replica, top);
        let evictions = match found.denied {
            Some(DenyCause::Capacity { .. }) => placing.sacrifices(top),
            _ => Vec::new(),
        };
        Explanation {
            asks: ask.asks.clone(),
            profile: ask.profile,
            quotas: self.quota_checks(&ask),
            ceilings: self.ceiling_checks(&ask),
            replica_count: ask.replicas,
            replica: number,
            deciding: deciding(&placement.best).filter(|_| found.denied.is_none()),
            placement,
            replicas: if ask.replicas > 1 { placing.replicas(&found) } else { Vec::new() },
            denied: found.denied,
            evictions,
            queue: None,
        }
    }
}
