//! Why something was granted, denied, made to wait or evicted: every check with its numbers, every node with its score
//! (SEMANTICS 5). For people who ask, not for the way of a request: it scores every node, one by one.

use crate::allocation::Allocation;
use crate::ceiling::{Ceiling, CeilingScope};
use crate::command::RequestLease;
use crate::custody::Claimer;
use crate::decide::admission::Look;
use crate::gang::{GangAsk, NoGang, NodeQuotas};
use crate::node::Node;
use crate::placement::{Candidate, Explained, Tentative};
use crate::preempt::Sacrifice;
use crate::queue::{Standing, Waits};
use crate::quota::Verdict;
use crate::refusal::Refusal;
use crate::state::State;
use leasehold_model::body::Asks;
use leasehold_model::rate::Currency;
use leasehold_model::{
    AllocationSpec, Amount, CeilingMode, DenyCause, Identity, Instant, LimitKind, ProjectNo, QuotaNo, TenantNo,
};

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
    pub quotas: Vec<QuotaCheck>,
    pub ceilings: Vec<CeilingCheck>,
    /// The nodes, for one replica.
    pub placement: Explained,
    pub deciding: Option<Deciding>,
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
    fn quota_checks(
        &self,
        tenant: TenantNo,
        project: ProjectNo,
        spec: &AllocationSpec,
        now: Instant,
    ) -> Vec<QuotaCheck> {
        let facts = Self::facts(spec, project);
        let check = |quota: &crate::quota::Quota| {
            let counts = quota.counts_allocation(project, spec.priority);
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
        self.quotas_of(tenant).filter_map(check).collect()
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

    /// Explains a request as it would be decided at `now`.
    pub fn explain_lease(
        &self,
        now: Instant,
        identity: &Identity,
        request: &RequestLease,
        top: usize,
    ) -> Result<Explanation, Refusal> {
        let look = Look::new(self, now, identity);
        let asks = look.check(request)?;
        let (tenant, project) = look.check_holder(request.source_project)?;
        let spec = request.as_allocation(&asks);
        let guard = self.guard(&self.queue.heads, tenant, now, request.priority, None);
        let allow = |node: &Node| {
            request.node.is_none_or(|named| named == node.number) && guard.as_ref().is_none_or(|guard| guard(node))
        };
        Ok(self.explain_spec(tenant, project, Claimer::of(identity, spec.sensitive), &spec, now, &allow, top))
    }

    /// Explains an allocation as it stands: what it waits for, or where a replica of it would go.
    pub fn explain_allocation(&self, found: &Allocation, now: Instant, top: usize) -> Explanation {
        let allow = |_: &Node| true;
        let mut explanation =
            self.explain_spec(found.tenant, found.project, found.claimer(), &found.spec, now, &allow, top);
        let waits = self.waiting_for(found, now);
        explanation.queue = waits.map(|waits| Place { standing: self.standing(found.tenant, now), waits });
        explanation
    }

    #[expect(clippy::too_many_arguments, reason = "the question in full")]
    fn explain_spec(
        &self,
        tenant: TenantNo,
        project: ProjectNo,
        claimer: Option<Claimer>,
        spec: &AllocationSpec,
        now: Instant,
        allow: &dyn Fn(&Node) -> bool,
        top: usize,
    ) -> Explanation {
        let ask = GangAsk { tenant, project, claimer, spec, now, allow };
        let of_nodes = self.gang_quotas(tenant, project, spec, now).map_or_else(|_| NodeQuotas::new(), |(_, of)| of);
        let suits = |node: &Node| self.suits(node, &ask);
        let wanted = Self::wanted(&ask, &of_nodes, Tentative::NOTHING, &[], &suits);
        let placement = self.explain(&wanted, top);
        let denied = match self.place_gang(&ask, &mut Tentative::default()) {
            Ok(_) => None,
            Err(NoGang::Quota(cause)) => Some(cause),
            Err(NoGang::Room) => Some(self.scarcest(&wanted)),
        };
        let evictions = if matches!(denied, Some(DenyCause::Capacity { .. })) {
            self.sacrifices(&ask, &of_nodes, top)
        } else {
            Vec::new()
        };
        Explanation {
            asks: spec.asks.clone(),
            quotas: self.quota_checks(tenant, project, spec, now),
            ceilings: self.ceiling_checks(project, spec, now),
            deciding: deciding(&placement.best),
            placement,
            denied,
            evictions,
            queue: None,
        }
    }
}
