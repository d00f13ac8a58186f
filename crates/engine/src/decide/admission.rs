//! Deciding a request for a lease: validation, then quotas, then capacity (SEMANTICS 4).

use super::inventory::check_labels;
use super::{Draft, Engine};
use crate::admission::{Missing, Terms};
use crate::ask::Ask;
use crate::command::RequestLease;
use crate::custody::Claimer;
use crate::node::Node;
use crate::placement::Placed;
use crate::preempt::Plan;
use crate::queue::{Line, Rank};
use crate::refusal::Refusal;
use crate::view::View;
use leasehold_model::body::{AllocationSubmitted, Asks, Denied, Granted, Particulars};
use leasehold_model::limits::{CLASSES_PER_REQUEST_MAX, PENDING_MAX, PENDING_PER_TENANT_MAX, QUANTA_PER_NODE_MAX};
use leasehold_model::{
    AllocationNo, AllocationSpec, DenyCause, Identity, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo,
    RULES_VERSION, Span, TenantNo,
};
use std::collections::BTreeMap;

impl Draft<'_> {
    pub(super) fn request_context(&self) -> RequestContext<'_> {
        RequestContext {
            view: self.view(),
            now: self.now,
            identity: self.identity,
            heads: &self.engine.scheduler.heads,
        }
    }

    pub(super) fn request_lease(&mut self, request: &RequestLease) -> Result<(), Refusal> {
        let asks = self.request_context().check(request)?;
        let context = self.request_context();
        let lowered = context.lowered(request);
        let request = lowered.as_deref().unwrap_or(request);
        match context.admit(request, &asks) {
            Ok((placed, terms)) => self.grant(request, placed, terms),
            Err(cause) => {
                let Engine { state, placement, .. } = &mut *self.engine;
                if matches!(cause, DenyCause::Capacity { .. }) {
                    placement.refresh_eviction_bounds(state);
                }
                let context = self.request_context();
                if let Some((spec, plan)) = context.eviction(request, &asks, cause)? {
                    let is_first = context.heads.is_empty() && plan.headroom.is_none();
                    let number = AllocationNo(self.state().size());
                    // The eviction is no part of this command, because the requester must not see the records of
                    // others.
                    self.emit(
                        None,
                        AllocationSubmitted { spec, when_over_quota: None, node: request.node },
                        |record| {
                            record.hcl_entry = request.hcl_entry.clone();
                            record.dra_claim_id = request.dra_claim_id.clone();
                        },
                    );
                    if is_first {
                        let Engine { state, scheduler, .. } = &mut *self.engine;
                        scheduler.keep_plan(state, number, plan);
                    }
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
                        correlation: request.correlation,
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

    /// Checks the TTL of a renewal against the pool. The limit on the lifetime is checked elsewhere.
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
        self.state().warm_grant(self.identity.tenant, placed.node);
        let (mut ttl, mut capped_by) = terms.ttl(request.ttl, self.now);
        let mut capped_by_window = None;
        if !self.state().windows.is_empty() {
            (ttl, capped_by, capped_by_window) = self.state().capped_on(placed.node, (ttl, capped_by), self.now);
        }
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
            capped_by_window,
        };
        self.emit(None, granted, |record| {
            record.hcl_entry = request.hcl_entry.clone();
            record.dra_claim_id = request.dra_claim_id.clone();
        });
    }
}

/// What a request is checked and decided against. It is read-only.
pub(crate) struct RequestContext<'a> {
    pub(super) view: View<'a>,
    pub(super) now: Instant,
    pub(super) identity: &'a Identity,
    /// The heads of the lines, which may have an assured start.
    pub(super) heads: &'a BTreeMap<Line, Rank>,
}

impl<'a> RequestContext<'a> {
    /// A context in which assured starts do not matter.
    pub(crate) fn new(view: View<'a>, now: Instant, identity: &'a Identity) -> Self {
        const NONE: &BTreeMap<Line, Rank> = &BTreeMap::new();
        Self { view, now, identity, heads: NONE }
    }

    /// Validates a request. Returns its asks in the order in which they are placed.
    pub(crate) fn check(&self, request: &RequestLease) -> Result<Asks, Refusal> {
        self.check_identity(request)?;
        let asks = self.check_asks(&request.asks)?;
        self.check_request_ttl(request)?;
        self.check_request_labels(request)?;
        self.check_named_holder(&self.ask(request, &asks))?;
        Ok(asks)
    }

    /// Where a quota counts by user or app instance, requests must name them (SEMANTICS 11).
    pub(super) fn check_named_holder(&self, ask: &Ask<'_>) -> Result<(), Refusal> {
        if self.view.is_paused_everywhere(ask) {
            return Err(Refusal::PoolPaused { project: ask.project });
        }
        match self.view.missing_holder(ask) {
            None => Ok(()),
            Some((quota, Missing::User)) => Err(Refusal::QuotaNeedsUser { quota }),
            Some((quota, Missing::AppInstance)) => Err(Refusal::QuotaNeedsAppInstance { quota }),
        }
    }

    /// The ask of a request that has passed `check`.
    pub(crate) fn ask<'r>(&self, request: &'r RequestLease, asks: &'r Asks) -> Ask<'r> {
        Ask::of_request(self.identity, request, asks, self.now).expect("check has found the holder")
    }

    /// Applies quotas and looks for capacity. The request must have passed `check`.
    pub(super) fn admit(&self, request: &RequestLease, asks: &Asks) -> Result<(Placed, Terms), DenyCause> {
        let mut ask = self.ask(request, asks);
        let guard = self.view.guard(self.heads, &ask);
        ask.allow = guard.as_deref();
        self.view.place_lease(&ask)
    }

    fn check_identity(&self, request: &RequestLease) -> Result<(), Refusal> {
        let view = self.view;
        self.check_holder(request.source_project)?;
        if request.attachment.is_some() {
            return Err(Refusal::AttachmentNeedsAllocation);
        }
        self.check_app(request.into())?;
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

    /// The request with the lowest priority, if prepaid credit is to be spared.
    #[inline]
    pub(crate) fn lowered(&self, request: &RequestLease) -> Option<Box<RequestLease>> {
        if self.view.prepaids.is_empty() {
            return None;
        }
        let (tenant, project) = (self.identity.tenant?, self.identity.project?);
        let priority = self.view.priority_now(tenant, project, request.priority);
        (priority != request.priority).then(|| {
            let of_node = || request.node.and_then(|node| self.view.node(node)).map(|node| node.pool);
            let ttl = request.ttl.min(self.view.longest_ttl(request.pool.or_else(of_node), priority));
            Box::new(RequestLease { priority, ttl, ..request.clone() })
        })
    }

    /// Checks that the tenant, the project and the user exist and belong together.
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
        match tenant.map(|tenant| tenant.settings.max_priority) {
            Some(limit) if priority > limit => Err(Refusal::PriorityAboveMax { limit }),
            _ => Ok(()),
        }
    }

    /// Sensitive work needs a user who has claimed a node, and if the request names a node, that one.
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

    /// Checks the asks and sorts them by class. Classes with devices come first, because they are the scarcest.
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

    /// At least one pool that the request may use must allow the TTL.
    fn check_request_ttl(&self, request: &RequestLease) -> Result<(), Refusal> {
        if request.ttl == Span::ZERO {
            return Err(Refusal::ZeroTtl);
        }
        let view = self.view;
        let named = request.pool.or_else(|| request.node.and_then(|node| view.node(node)).map(|node| node.pool));
        let limit = view.longest_ttl(named, request.priority);
        if request.ttl > limit {
            return Err(Refusal::TtlTooLong { limit });
        }
        Ok(())
    }

    /// At least one node must have the labels, even if it is drained or lost at present.
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

    /// Whether an allocation that a quota denies may evict leases of its own tenant instead (SEMANTICS 11).
    pub(super) fn evicts_own(&self, ask: &Ask<'_>) -> bool {
        self.view.evicts_own(ask.tenant) && {
            let spare = self.view.sparing(self.heads, ask);
            matches!(self.view.plan_own(&Ask { allow: spare.as_deref(), ..*ask }), Some(Ok(_)))
        }
    }

    /// The allocation that a request becomes if it finds no capacity, or no headroom in a quota, but may evict, with the
    /// plan of the eviction. The allocation waits for its victims (SEMANTICS 5), on the node that the request names, if it
    /// names one. It is refused if no more of the tenant's allocations may wait.
    pub(super) fn eviction(
        &self,
        request: &RequestLease,
        asks: &Asks,
        cause: DenyCause,
    ) -> Result<Option<(AllocationSpec, Plan)>, Refusal> {
        let may_evict = match cause {
            DenyCause::Capacity { .. } => self.view.could_evict(&self.ask(request, asks)),
            DenyCause::Quota { .. } | DenyCause::KindQuota { .. } => {
                self.identity.tenant.is_some_and(|tenant| self.view.evicts_own(tenant))
            }
            DenyCause::BurstOver { .. } | DenyCause::Ceiling { .. } | DenyCause::Prepaid { .. } => false,
        };
        if !may_evict {
            return Ok(None);
        }
        let spec = request.as_allocation(asks);
        let Some(ask) = Ask::of_spec(self.identity, &spec, self.now) else { return Ok(None) };
        let tenant = ask.tenant;
        let ask = Ask { node: request.node, ..ask };
        // Nothing is evicted on nodes where a higher-ranked allocation has an assured start.
        let spare = self.view.sparing(self.heads, &ask);
        let spared = Ask { allow: spare.as_deref(), ..ask };
        let finds_no_room = matches!(cause, DenyCause::Capacity { .. });
        let plan = if finds_no_room { self.view.plan_for(&spared, None) } else { self.view.plan_own(&spared) };
        drop(spare);
        let Some(Ok(plan)) = plan else { return Ok(None) };
        self.check_pending(tenant)?;
        Ok(Some((spec, plan)))
    }

    /// One more allocation of a tenant may wait.
    pub(super) fn check_pending(&self, tenant: TenantNo) -> Result<(), Refusal> {
        let queue = &self.view.queue;
        let own = self.view.tenant(tenant).and_then(|tenant| tenant.budgets.max_pending);
        let limit = own.unwrap_or(PENDING_PER_TENANT_MAX);
        let is_full = queue.pending(tenant) >= limit || queue.len() >= PENDING_MAX;
        if is_full { Err(Refusal::TooManyPending { limit }) } else { Ok(()) }
    }
}
