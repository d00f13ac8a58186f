//! Explains why something was granted, denied, queued or evicted: every check with its numbers, every node with its
//! score (SEMANTICS 5). It scores every node one by one, which is too slow for deciding.

mod placing;

pub use placing::ReplicaPlace;

use crate::admission::{CeilingCheck, QuotaCheck};
use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::command::RequestLease;
use crate::decide::admission::RequestContext;
use crate::placement::{Candidate, Explained};
use crate::preempt::PossibleEviction;
use crate::prepaid::PrepaidCheck;
use crate::queue::{Standing, Waits};
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::body::Asks;
use leasehold_model::{AllocationSpec, DenyCause, Identity, Instant, Profile};
use placing::Placing;

/// What made the difference between the chosen node and the runner-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deciding {
    Pressure,
    Fit,
    Locality,
    Fragmentation,
    /// The runner-up is hotter.
    Heat,
    /// The scores are equal: the lower number wins.
    Number,
    /// There was no other candidate.
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

/// A decision with all of its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub asks: Asks,
    /// The sensitivity profile of the workload, if one was used.
    pub profile: Option<Profile>,
    pub quotas: Vec<QuotaCheck>,
    pub ceilings: Vec<CeilingCheck>,
    pub prepaid: Vec<PrepaidCheck>,
    /// How many replicas are requested.
    pub replica_count: u32,
    /// The replica that `placement` is for, counted from one. Each replica takes capacity from those after it.
    pub replica: u32,
    /// The nodes, as that replica finds them.
    pub placement: Explained,
    /// What decided between the two best nodes; `None` if nothing is placed.
    pub deciding: Option<Deciding>,
    /// Where the first replicas of a gang are placed; empty if the gang cannot start, or has one replica.
    pub replicas: Vec<ReplicaPlace>,
    /// Why it cannot be placed, if so.
    pub denied: Option<DenyCause>,
    /// What would have to be evicted, on the nodes with the lowest eviction cost, lowest first.
    pub evictions: Vec<PossibleEviction>,
    /// Only for a waiting allocation.
    pub queue: Option<QueueStanding>,
}

/// The rank of a waiting allocation, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStanding {
    pub standing: Standing,
    pub waits: Waits,
}

/// The term by which the best candidate leads most over the next one.
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
        let lowered = context.lowered(request);
        let request = lowered.as_deref().unwrap_or(request);
        Ok(self.explain_ask(context.ask(request, &asks), None, top))
    }

    /// Explains a gang as it would be decided if it were submitted at `now`. `replica` is the replica whose nodes are
    /// shown, the first by default. `None` if the identity has no tenant or project.
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

    /// Explains an allocation in its current state: what it waits for, or where a replica would be placed.
    pub fn explain_allocation(
        &self,
        found: &Allocation,
        now: Instant,
        replica: Option<u32>,
        top: usize,
    ) -> Explanation {
        let mut explanation = self.explain_ask(Ask::of(found, now), replica, top);
        explanation.queue = self.queue_standing(found, now);
        explanation
    }

    /// Explains an allocation that starts, or waits to start, on the capacity of its victims: its nodes are already
    /// chosen, but its quotas and ceilings are checked again.
    pub fn explain_kept(&self, found: &Allocation, now: Instant) -> Explanation {
        let ask = Ask::of(found, now);
        Explanation {
            asks: ask.asks.clone(),
            profile: ask.profile,
            quotas: self.quota_checks(&ask),
            ceilings: self.ceiling_checks(&ask),
            prepaid: self.prepaid_checks(&ask),
            replica_count: ask.replicas,
            replica: 1,
            placement: Explained::default(),
            deciding: None,
            replicas: Vec::new(),
            denied: None,
            evictions: Vec::new(),
            queue: self.queue_standing(found, now),
        }
    }

    /// The rank of a waiting allocation and what it waits for; `None` if it does not wait.
    pub fn queue_standing(&self, found: &Allocation, now: Instant) -> Option<QueueStanding> {
        let waits = self.waiting_for(found, now)?;
        let (_, std::cmp::Reverse(standing), ..) = self.rank_of(found, now);
        Some(QueueStanding { standing, waits })
    }

    fn explain_ask(&self, ask: Ask<'_>, replica: Option<u32>, top: usize) -> Explanation {
        let placing = Placing::new(*self, ask);
        let found = placing.place();
        let (placement, number) = placing.nodes_for(&found, replica, top);
        let evictions = match found.denied {
            Some(DenyCause::Capacity { .. }) => placing.possible_evictions(top),
            _ => Vec::new(),
        };
        Explanation {
            asks: ask.asks.clone(),
            profile: ask.profile,
            quotas: self.quota_checks(&ask),
            ceilings: self.ceiling_checks(&ask),
            prepaid: self.prepaid_checks(&ask),
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
