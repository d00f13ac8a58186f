//! Why something was granted, denied, made to wait or evicted: every check with its numbers, every node with its score
//! (SEMANTICS 5). For people who ask, not for the way of a request: it scores every node, one by one.

mod placing;

pub use placing::ReplicaPlace;

use crate::allocation::Allocation;
use crate::ceiling::{Ceiling, CeilingScope};
use crate::command::RequestLease;
use crate::decide::admission::Look;
use crate::placement::{Candidate, Explained};
use crate::preempt::Sacrifice;
use crate::queue::{Standing, Waits};
use crate::quota::Verdict;
use crate::refusal::Refusal;
use crate::state::State;
use crate::view::View;
use leasehold_model::body::Asks;
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationSpec, Amount, CeilingMode, DenyCause, Identity, Instant, LimitKind, Profile, ProjectNo, QuotaNo,
};
use placing::Placing;

/// What one quota said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaCheck {
    pub quota: QuotaNo,
    pub used: u64,
    pub requested: u64,
    pub limit: LimitKind,
    pub said: QuotaSaid,
}

/// What one cost ceiling said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeilingCheck {
    pub scope: CeilingScope,
    pub mode: CeilingMode,
    pub currency: Currency,
    pub spent: Amount,
    pub reserved: Amount,
    pub requested: Amount,
    pub amount: Amount,
}

impl CeilingCheck {
    /// Whether what is asked for passes it.
    pub fn is_passed(&self) -> bool {
        let sum = self.spent.saturating_add(self.reserved).saturating_add(self.requested);
        self.requested > Amount::ZERO && sum > self.amount
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaSaid {
    Within,
    OverSoft,
    /// Granted, but no longer than this.
    Until(Instant),
    Refused(DenyCause),
    /// Its answer depends on the node: it stands with the candidates.
    ByNode,
}

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

impl State {
    fn quota_checks(&self, waits: &Allocation, is_gang: bool, now: Instant) -> Vec<QuotaCheck> {
        let (project, spec) = (waits.project, &waits.spec);
        let facts = Self::facts(spec, project);
        let check = |quota: &crate::quota::Quota| {
            let counts = is_gang && quota.counts_allocation(project, spec.priority);
            let each = if counts { 1 } else { quota.asked(&facts) };
            if each == 0 {
                return None;
            }
            let times = if counts { 1 } else { u64::from(spec.replicas) };
            let requested = each.saturating_mul(times);
            let said = match quota.judge(requested, None, now) {
                _ if quota.depends_on_node() => QuotaSaid::ByNode,
                Verdict::Within => QuotaSaid::Within,
                Verdict::OverSoft => QuotaSaid::OverSoft,
                Verdict::Until(until) => QuotaSaid::Until(until),
                Verdict::Refused(cause) => QuotaSaid::Refused(cause),
            };
            Some(QuotaCheck { quota: quota.number, used: quota.used, requested, limit: quota.limit, said })
        };
        self.quotas_of(waits.tenant).filter_map(check).collect()
    }

    fn ceiling_checks(&self, project: ProjectNo, spec: &AllocationSpec, now: Instant) -> Vec<CeilingCheck> {
        let check = |ceiling: &Ceiling| CeilingCheck {
            scope: ceiling.scope,
            mode: ceiling.mode,
            currency: ceiling.currency,
            spent: ceiling.spent,
            reserved: ceiling.reserved,
            requested: self.cost_of_gang(spec, now, ceiling.currency),
            amount: ceiling.amount,
        };
        self.ceilings.of(project, spec.app_instance).map(check).collect()
    }
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
        let look = Look::new(*self, now, identity);
        let asks = look.check(request)?;
        look.check_holder(request.source_project)?;
        let last = Allocation::to_come(identity, request.as_allocation(&asks), now);
        let last = last.expect("a request that was checked has a holder");
        let placing = Placing::new(*self, &last, request.node, now);
        Ok(self.explain_placing(&placing, None, false, top))
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
        let last = Allocation::to_come(identity, spec.clone(), now)?;
        Some(self.explain_placing(&Placing::new(*self, &last, None, now), replica, true, top))
    }

    /// Explains an allocation as it stands: what it waits for, or where a replica of it would go.
    pub fn explain_allocation(
        &self,
        found: &Allocation,
        now: Instant,
        replica: Option<u32>,
        top: usize,
    ) -> Explanation {
        let mut explanation = self.explain_placing(&Placing::new(*self, found, None, now), replica, true, top);
        explanation.queue = self.place_in_queue(found, now);
        explanation
    }

    /// Explains one that starts, or waits to start, where its victims make room: nothing is chosen for it any more, but
    /// its quotas and ceilings are asked again.
    pub fn explain_kept(&self, found: &Allocation, now: Instant) -> Explanation {
        Explanation {
            asks: found.spec.asks.clone(),
            profile: found.spec.profile,
            quotas: self.quota_checks(found, true, now),
            ceilings: self.ceiling_checks(found.project, &found.spec, now),
            replica_count: found.spec.replicas,
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

    fn explain_placing(&self, placing: &Placing<'_>, replica: Option<u32>, is_gang: bool, top: usize) -> Explanation {
        let (waits, now) = (placing.waits, placing.now);
        let spec = &waits.spec;
        let found = placing.place();
        let (placement, number) = placing.nodes_for(&found, replica, top);
        let evictions = match found.denied {
            Some(DenyCause::Capacity { .. }) => placing.sacrifices(top),
            _ => Vec::new(),
        };
        Explanation {
            asks: spec.asks.clone(),
            profile: spec.profile,
            quotas: self.quota_checks(waits, is_gang, now),
            ceilings: self.ceiling_checks(waits.project, spec, now),
            replica_count: spec.replicas,
            replica: number,
            deciding: deciding(&placement.best).filter(|_| found.denied.is_none()),
            placement,
            replicas: if spec.replicas > 1 { placing.replicas(&found) } else { Vec::new() },
            denied: found.denied,
            evictions,
            queue: None,
        }
    }
}
