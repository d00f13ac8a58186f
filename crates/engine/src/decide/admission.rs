//! Asking for a lease: validate, then quota, then capacity (SEMANTICS 4).

use super::Draft;
use super::places::check_labels;
use crate::command::RequestLease;
use crate::custody::Claimer;
use crate::gang::GangAsk;
use crate::node::Node;
use crate::placement::{Placed, Tentative, Wanted};
use crate::preempt::Plan;
use crate::queue::{Line, Rank};
use crate::quota::{Facts, Verdict};
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::body::{AllocationSubmitted, Asks, Denied, Granted, Particulars};
use leasehold_model::limits::{CLASSES_PER_REQUEST_MAX, QUANTA_PER_NODE_MAX};
use leasehold_model::{
    AllocationSpec, CeilingMode, DenyCause, Identity, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo, QuotaNo,
    RULES_VERSION, Span, TenantNo,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// What the quotas say besides yes or no.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub(crate) over_soft: SmallVec<[QuotaNo; 1]>,
    /// The earliest end that a burst quota allows, and which quota that is.
    until: Option<(Instant, QuotaNo)>,
}

impl Terms {
    pub(crate) fn add(&mut self, quota: QuotaNo, verdict: Verdict) -> Result<(), DenyCause> {
        match verdict {
            Verdict::Within => {}
            Verdict::OverSoft => self.over_soft.push(quota),
            Verdict::Until(end) => {
                if self.until.is_none_or(|(found, _)| end < found) {
                    self.until = Some((end, quota));
                }
            }
            Verdict::Refused(cause) => return Err(cause),
        }
        Ok(())
    }
}

impl Terms {
    /// Each soft quota once, in order.
    pub(crate) fn settle(&mut self) {
        self.over_soft.sort_unstable();
        self.over_soft.dedup();
    }

    /// What is left of a TTL, and which quota shortened it.
    pub(crate) fn ttl(&self, asked: Span, now: Instant) -> (Span, Option<QuotaNo>) {
        match self.until {
            Some((end, quota)) if end.since(now) < asked => (end.since(now), Some(quota)),
            _ => (asked, None),
        }
    }
}

impl Draft<'_> {
    pub(super) fn look(&self) -> Look<'_> {
        Look { view: self.view(), now: self.now, identity: self.identity, heads: &self.engine.scheduler.heads }
    }

    pub(super) fn request_lease(&mut self, request: &RequestLease) -> Result<(), Refusal> {
        let look = self.look();
        let (asks, admitted) = look.admit(request)?;
        match admitted {
            Ok((placed, terms)) => self.grant(request, placed, terms),
            Err(cause) => {
                if let Some((spec, _)) = look.eviction(request, &asks, cause) {
                    // The eviction is no part of this command: its answer is the requester's, the eviction is not.
                    self.emit(None, AllocationSubmitted { spec }, |record| {
                        record.hcl_entry = request.hcl_entry.clone();
                        record.dra_claim_id = request.dra_claim_id.clone();
                    });
                    return Ok(());
                }
                let denied = Denied {
                    pool: request.pool,
                    asks,
                    ttl: request.ttl,
                    priority: request.priority,
                    rules_version: RULES_VERSION,
                    cause,
                    particulars: Particulars {
                        sensitive: request.sensitive,
                        node: request.node,
                        labels: request.labels.clone(),
                        profile: request.profile,
                        app_instance: request.app_instance,
                    },
                };
                self.emit(None, denied, |record| {
                    record.hcl_entry = request.hcl_entry.clone();
                    record.dra_claim_id = request.dra_claim_id.clone();
                });
            }
        }
        Ok(())
    }

    /// A renewal may ask for what its pool allows; how long it lives in all is another question.
    pub(super) fn check_renewal_ttl(&self, ttl: Span, pool: PoolNo, priority: Priority) -> Result<(), Refusal> {
        if ttl == Span::ZERO {
            return Err(Refusal::ZeroTtl);
        }
        let of_pool = self.state().pool(pool).and_then(|pool| pool.ttl_max.of(priority));
        let limit = of_pool.unwrap_or(self.state().settings.ttl_max);
        if ttl > limit {
            return Err(Refusal::TtlTooLong { limit });
        }
        Ok(())
    }

    fn grant(&mut self, request: &RequestLease, placed: Placed, terms: Terms) {
        let (ttl, capped_by) = terms.ttl(request.ttl, self.now);
        let granted = Granted {
            first_lease: LeaseNo(self.state().next_lease),
            node: placed.node,
            pool: placed.pool,
            ttl,
            priority: request.priority,
            rules_version: RULES_VERSION,
            members: placed.members,
            sensitive: request.sensitive,
            control_plane: request.control_plane,
            correlation: request.correlation,
            allocation: request.allocation,
            app_instance: request.app_instance,
            attachment: request.attachment,
            source_project: request.source_project,
            over_soft: terms.over_soft,
            capped_by,
            profile: request.profile.filter(|_| placed.weighing.is_some()),
            weighing: placed.weighing,
            labels: request.labels.clone(),
        };
        self.emit(None, granted, |record| {
            record.hcl_entry = request.hcl_entry.clone();
            record.dra_claim_id = request.dra_claim_id.clone();
        });
    }
}

/// Where a request goes and on which terms, or why nowhere.
type Admission = Result<(Placed, Terms), DenyCause>;

/// What a request is judged by; judging changes nothing.
pub(crate) struct Look<'a> {
    pub(super) view: View<'a>,
    pub(super) now: Instant,
    pub(super) identity: &'a Identity,
    /// Those that wait and go first, to whom something may be promised.
    pub(super) heads: &'a BTreeMap<Line, Rank>,
}

impl<'a> Look<'a> {
    /// Where what is promised to those that wait does not matter.
    pub(crate) fn new(view: View<'a>, now: Instant, identity: &'a Identity) -> Self {
        const NONE: &BTreeMap<Line, Rank> = &BTreeMap::new();
        Self { view, now, identity, heads: NONE }
    }

    /// Validates; the asks come back in the order in which they are placed.
    pub(crate) fn check(&self, request: &RequestLease) -> Result<Asks, Refusal> {
        self.check_identity(request)?;
        let asks = self.check_asks(&request.asks)?;
        self.check_request_ttl(request)?;
        self.check_request_labels(request)?;
        Ok(asks)
    }

    /// Validates, then asks quotas and capacity.
    pub(super) fn admit(&self, request: &RequestLease) -> Result<(Asks, Admission), Refusal> {
        let asks = self.check(request)?;
        let tenant = self.identity.tenant.expect("it was checked");
        let project = self.identity.project.expect("it was checked");
        let admitted = self.admit_checked(tenant, project, request, &asks);
        Ok((asks, admitted))
    }

    fn check_identity(&self, request: &RequestLease) -> Result<(), Refusal> {
        let view = self.view;
        self.check_holder(request.source_project)?;
        self.check_pool(request.pool)?;
        if let Some(node) = request.node
            && view.node(node).is_none()
        {
            return Err(Refusal::UnknownNode { node });
        }
        if let (Some(node), Some(pool)) = (request.node, request.pool)
            && view.node(node).is_some_and(|found| found.pool != pool)
        {
            return Err(Refusal::NodeNotInPool { node, pool });
        }
        self.check_priority(request.priority)?;
        self.check_sensitive(request.sensitive, request.node)?;
        Ok(())
    }

    /// Who would hold it, and who asks, exist and belong together.
    pub(crate) fn check_holder(&self, source: Option<ProjectNo>) -> Result<(TenantNo, ProjectNo), Refusal> {
        let view = self.view;
        let number = self.identity.tenant.ok_or(Refusal::TenantRequired)?;
        view.tenant(number).ok_or(Refusal::UnknownTenant { tenant: number })?;
        let project = self.identity.project.ok_or(Refusal::ProjectRequired)?;
        let of_tenant = |no: ProjectNo| view.project(no).is_some_and(|p| p.tenant == number);
        if !of_tenant(project) {
            return Err(Refusal::UnknownProject { project });
        }
        if let Some(source) = source.filter(|source| !of_tenant(*source)) {
            return Err(Refusal::UnknownProject { project: source });
        }
        if let Some(user) = self.identity.user
            && view.user(user).is_none_or(|u| u.tenant != number)
        {
            return Err(Refusal::UnknownUser { user });
        }
        Ok((number, project))
    }

    pub(super) fn check_pool(&self, pool: Option<PoolNo>) -> Result<(), Refusal> {
        match pool {
            Some(pool) if self.view.pool(pool).is_none() => Err(Refusal::UnknownPool { pool }),
            _ => Ok(()),
        }
    }

    pub(super) fn check_priority(&self, priority: Priority) -> Result<(), Refusal> {
        let tenant = self.identity.tenant.and_then(|number| self.view.tenant(number));
        match tenant.map(|tenant| tenant.max_priority) {
            Some(limit) if priority > limit => Err(Refusal::PriorityAboveMax { limit }),
            _ => Ok(()),
        }
    }

    /// Sensitive work is some user's, and that user has a claim: on the node, where one is named.
    pub(super) fn check_sensitive(&self, sensitive: bool, node: Option<NodeNo>) -> Result<(), Refusal> {
        if !sensitive {
            return Ok(());
        }
        let claimer = Claimer::of(self.identity, sensitive).ok_or(Refusal::SensitiveNeedsUser)?;
        let has_claim = match node {
            None => self.view.claimed.has(claimer),
            Some(node) => self.view.claimed.nodes_of(claimer).any(|claimed| claimed == node),
        };
        if has_claim { Ok(()) } else { Err(Refusal::SensitiveNeedsClaim) }
    }

    /// The asks in order of class, with devices first: what is scarcest is looked for first.
    pub(super) fn check_asks(&self, asks: &Asks) -> Result<Asks, Refusal> {
        if asks.is_empty() {
            return Err(Refusal::NothingAsked);
        }
        if asks.len() > CLASSES_PER_REQUEST_MAX {
            return Err(Refusal::TooManyClasses { asked: asks.len(), limit: CLASSES_PER_REQUEST_MAX });
        }
        for (class, quanta) in asks {
            let class = *class;
            let spec = self.view.class(class).ok_or(Refusal::UnknownClass { class })?;
            if quanta.0 == 0 {
                return Err(Refusal::ZeroQuantity { class });
            }
            if quanta.0 > QUANTA_PER_NODE_MAX {
                return Err(Refusal::QuantityTooLarge { class, limit: QUANTA_PER_NODE_MAX });
            }
            let per_device = spec.quanta_per_unit;
            if spec.has_devices() && quanta.0 > per_device && !quanta.0.is_multiple_of(per_device) {
                return Err(Refusal::NotWholeDevices { class, per_device });
            }
        }
        let mut sorted = asks.clone();
        if sorted.len() > 1 {
            let has_devices = |class| self.view.class(class).is_some_and(|spec| spec.has_devices());
            sorted.sort_by_key(|(class, _)| (!has_devices(*class), *class));
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Refusal::DuplicateClass { class: pair[0].0 });
            }
        }
        Ok(sorted)
    }

    /// The TTL must be possible somewhere the request may go.
    fn check_request_ttl(&self, request: &RequestLease) -> Result<(), Refusal> {
        if request.ttl == Span::ZERO {
            return Err(Refusal::ZeroTtl);
        }
        let view = self.view;
        let named = request.pool.or_else(|| request.node.and_then(|node| view.node(node)).map(|node| node.pool));
        let pools = view.pools().filter(|(number, _)| named.is_none_or(|named| named == *number));
        let limit = pools.map(|(_, pool)| view.ttl_max(pool, request.priority)).max();
        let limit = limit.unwrap_or(view.settings.ttl_max);
        if request.ttl > limit {
            return Err(Refusal::TtlTooLong { limit });
        }
        Ok(())
    }

    /// Some node has what is asked for, even if it is drained or lost today.
    fn check_request_labels(&self, request: &RequestLease) -> Result<(), Refusal> {
        if request.labels.is_empty() {
            return Ok(());
        }
        check_labels(&request.labels)?;
        let mut nodes = self.view.nodes().filter(|node| {
            request.node.is_none_or(|named| named == node.number) && request.pool.is_none_or(|named| named == node.pool)
        });
        let has_all = |node: &Node| request.labels.iter().all(|label| node.labels.contains(label));
        if nodes.any(has_all) { Ok(()) } else { Err(Refusal::ImpossibleLabels) }
    }

    fn admit_checked(&self, tenant: TenantNo, project: ProjectNo, request: &RequestLease, asks: &Asks) -> Admission {
        let view = self.view;
        let facts: SmallVec<[Facts; 2]> = asks
            .iter()
            .map(|(class, quanta)| Facts { project, class: *class, priority: request.priority, quanta: quanta.0 })
            .collect();
        let mut terms = Terms::default();
        let mut node_quotas: SmallVec<[(QuotaNo, u64); 4]> = SmallVec::new();
        let tenant = view.tenant(tenant).expect("it was checked");
        for number in &tenant.quotas {
            let quota = view.quota(*number).expect("a listed quota exists");
            let asked = quota.asked(&facts);
            if quota.depends_on_node() {
                if asked > 0 {
                    node_quotas.push((*number, asked));
                }
            } else {
                terms.add(*number, quota.judge(asked, None, self.now))?;
            }
        }
        self.judge_cost(project, request, asks)?;
        let guard = view.guard(self.heads, tenant.number, self.now, request.priority, None);
        let wanted = Wanted {
            pool: request.pool,
            node: request.node,
            asks,
            node_quotas: &node_quotas,
            ttl: request.ttl,
            priority: request.priority,
            now: self.now,
            labels: &request.labels,
            profile: request.profile,
            peers: &[],
            tentative: Tentative::NOTHING,
            claimer: Claimer::of(self.identity, request.sensitive),
            allow: guard.as_deref(),
        };
        let placed = view.place(&wanted)?;
        for (quota, verdict) in &placed.verdicts {
            terms.add(*quota, *verdict)?;
        }
        terms.settle();
        Ok((placed, terms))
    }
}

impl Look<'_> {
    /// What a request becomes that finds no room but may evict: an allocation that waits for its victims (SEMANTICS 5).
    pub(super) fn eviction(
        &self,
        request: &RequestLease,
        asks: &Asks,
        cause: DenyCause,
    ) -> Option<(AllocationSpec, Plan)> {
        // One that names its node is meant for that node or not at all.
        if !matches!(cause, DenyCause::Capacity { .. }) || request.node.is_some() {
            return None;
        }
        let (tenant, project) = (self.identity.tenant?, self.identity.project?);
        let spec = request.as_allocation(asks);
        let claimer = Claimer::of(self.identity, spec.sensitive);
        let guard = self.view.guard(self.heads, tenant, self.now, spec.priority, None);
        let allow = |node: &Node| guard.as_ref().is_none_or(|guard| guard(node));
        let ask = GangAsk { tenant, project, claimer, spec: &spec, now: self.now, allow: &allow };
        let plan = self.view.plan_for(&ask)?.ok()?;
        Some((spec, plan))
    }

    /// Whether the ceilings over a request leave room for all that it may cost by its deadline.
    fn judge_cost(&self, project: ProjectNo, request: &RequestLease, asks: &Asks) -> Result<(), DenyCause> {
        let view = self.view;
        let pool = request.pool.or_else(|| request.node.and_then(|node| view.node(node)).map(|node| node.pool));
        let mut over = view.ceilings.of(project, request.app_instance).filter(|c| c.mode == CeilingMode::Hard);
        over.try_for_each(|ceiling| {
            let what = (pool, asks, request.priority);
            ceiling.judge(view.cost_of_request(what, request.ttl, self.now, ceiling.currency))
        })
    }
}
