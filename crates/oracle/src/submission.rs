//! Submissions of allocations: what is valid, and the expected answer.

use crate::allocation::Allocation;
use crate::custody::Claimer;
use crate::foretell::{Caller, Foretold, Told};
use crate::gang::{NoGang, Occupancy, within};
use crate::quota::Demand;
use crate::world::{Quota, World};
use leasehold_model::body::{
    AllocationChanged, AllocationDenied, AllocationHoldCleared, AllocationHoldSet, AllocationSubmitted,
};
use leasehold_model::limits::{
    ALLOCATION_LEASES_MAX, CLASSES_PER_REQUEST_MAX, LABELS_PER_ALLOCATION_MAX, PENDING_MAX, PENDING_PER_TENANT_MAX,
    QUANTA_PER_NODE_MAX, TTL_MAX,
};
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, Body, DenyCause, Instant, LimitKind, Measure, NodeNo, NodeScope,
    PoolNo, Priority, ProjectNo, Span, TenantNo, UserNo, WhenOverQuota,
};
use std::collections::BTreeMap;

/// A report of the holder about its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Start,
    BeginCheckpoint,
    /// How long it took.
    Checkpoint(Span),
    /// With which exit status.
    Complete(Option<u32>),
    Cancel,
    Hold,
    Release,
    Change(Change),
}

/// What is changed of an allocation; what is absent stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub priority: Option<Priority>,
    pub pool: Option<Option<PoolNo>>,
    pub walltime: Option<Option<Span>>,
    pub ttl: Option<Option<Span>>,
    pub requeue: Option<bool>,
}

impl Change {
    fn of(&self, spec: &AllocationSpec) -> AllocationSpec {
        let mut spec = spec.clone();
        self.priority.into_iter().for_each(|priority| spec.priority = priority);
        self.pool.into_iter().for_each(|pool| spec.pool = pool);
        self.walltime.into_iter().for_each(|walltime| spec.walltime = walltime);
        self.ttl.into_iter().for_each(|ttl| spec.ttl = ttl);
        self.requeue.into_iter().for_each(|requeue| spec.requeue = requeue);
        spec
    }
}

impl World {
    /// The specification as it is recorded: classes with devices first, then by number; labels sorted.
    pub(crate) fn in_order(&self, spec: &AllocationSpec) -> AllocationSpec {
        let mut spec = spec.clone();
        let has_devices = |class: leasehold_model::ClassNo| {
            self.classes.get(&class).is_some_and(leasehold_model::ClassSpec::has_devices)
        };
        spec.asks.sort_by_key(|(class, _)| (!has_devices(*class), *class));
        spec.labels.sort();
        spec
    }

    /// Why the submission is invalid, if it is; the first fault in order.
    pub(crate) fn fault_of_spec(
        &self,
        tenant: TenantNo,
        project: Option<ProjectNo>,
        user: Option<UserNo>,
        spec: &AllocationSpec,
    ) -> Option<&'static str> {
        let Some(known) = self.tenants.get(&tenant) else { return Some("unknown_tenant") };
        let Some(project) = project else { return Some("project_required") };
        let own = |project: &ProjectNo| self.projects.get(project).is_some_and(|p| p.tenant == tenant);
        let own_user = |user: &UserNo| self.users.get(user).is_some_and(|u| u.tenant == tenant);
        let twice = |i: usize| spec.asks[..i].iter().any(|(class, _)| *class == spec.asks[i].0);
        let splits = |(class, quanta): &(leasehold_model::ClassNo, leasehold_model::Quanta)| {
            let unit = self.classes[class].quanta_per_unit;
            self.classes[class].has_devices() && quanta.0 > unit && !quanta.0.is_multiple_of(unit)
        };
        let lent = self.fault_of_lent(tenant, project, (spec.app_instance, spec.attachment, spec.source_project));
        let names_twice = |i: usize| spec.labels[..i].iter().any(|(key, _)| *key == spec.labels[i].0);
        let faults = [
            (!own(&project), "unknown_project"),
            (spec.source_project.is_some_and(|source| !own(&source)), "unknown_project"),
            (user.is_some_and(|user| !own_user(&user)), "unknown_user"),
            (lent.is_some(), lent.unwrap_or_default()),
            (spec.asks.is_empty(), "nothing_asked"),
            (spec.asks.len() > CLASSES_PER_REQUEST_MAX, "too_many_classes"),
        ];
        if let Some((_, word)) = faults.into_iter().find(|(wrong, _)| *wrong) {
            return Some(word);
        }
        for (class, quanta) in &spec.asks {
            let fault = [
                (!self.classes.contains_key(class), "unknown_class"),
                (quanta.0 == 0, "zero_quantity"),
                (quanta.0 > QUANTA_PER_NODE_MAX, "quantity_too_large"),
            ];
            if let Some((_, word)) = fault.into_iter().find(|(wrong, _)| *wrong) {
                return Some(word);
            }
            if splits(&(*class, *quanta)) {
                return Some("not_whole_devices");
            }
        }
        let walltime = spec.walltime.unwrap_or(Span(1));
        let claimer = user.map(|user| (tenant, user));
        let sensitive = spec.sensitive.then(|| self.fault_of_sensitive(claimer, None)).flatten();
        let faults = [
            ((0..spec.asks.len()).any(twice), "duplicate_class"),
            (spec.pool.is_some_and(|pool| !self.pools.contains_key(&pool)), "unknown_pool"),
            (spec.priority > known.settings.max_priority, "priority_above_max"),
            (sensitive == Some("sensitive_needs_user"), "sensitive_needs_user"),
            (sensitive == Some("sensitive_needs_claim"), "sensitive_needs_claim"),
            (spec.replicas == 0, "no_replicas"),
            (spec.leases() > ALLOCATION_LEASES_MAX as u64, "gang_too_many_leases"),
            (walltime == Span::ZERO || spec.ttl == Some(Span::ZERO), "zero_ttl"),
            (walltime > TTL_MAX, "walltime_too_long"),
            (spec.ttl.is_some_and(|ttl| ttl > self.longest(spec)), "ttl_too_long"),
            (spec.labels.len() > LABELS_PER_ALLOCATION_MAX, "too_many_labels"),
            ((0..spec.labels.len()).any(names_twice), "duplicate_label"),
            (spec.contradicts_itself(), "contradictory_affinity"),
        ];
        if let Some((_, word)) = faults.into_iter().find(|(wrong, _)| *wrong) {
            return Some(word);
        }
        let demand = Demand::of_gang(tenant, project, user, spec);
        self.never_within_burst(&demand, spec).then_some("walltime_beyond_burst")
    }

    /// Whether a burst quota could never let it start: it exceeds the base limit alone, and for longer than a burst. A
    /// temporary limit may still let it start, now or when it ends.
    fn never_within_burst(&self, demand: &Demand, spec: &AllocationSpec) -> bool {
        let Some(walltime) = spec.walltime else { return false };
        self.quotas.values().any(|quota| {
            [quota.put.limit, quota.limit()].into_iter().all(|limit| match limit {
                LimitKind::Burst { limit, burst_ttl, .. } => {
                    walltime > burst_ttl && self.is_beyond(quota, limit, demand, spec)
                }
                LimitKind::Hard { .. } | LimitKind::Soft { .. } => false,
            })
        })
    }

    fn pools_of<'a>(&'a self, spec: &'a AllocationSpec) -> impl Iterator<Item = PoolNo> + 'a {
        self.pools.keys().copied().filter(|pool| spec.pool.is_none_or(|own| own == *pool))
    }

    pub(crate) fn longest(&self, spec: &AllocationSpec) -> Span {
        let longest = self.pools_of(spec).map(|pool| self.grant_ttl_max(pool, spec.priority)).max();
        longest.unwrap_or(self.settings.ttl_max)
    }

    /// Why the allocation would not fit even on the empty cluster. Nodes that others have claimed count, because they
    /// will be released; open nodes do not count for sensitive work.
    fn impossible(&self, claimer: Option<Claimer>, spec: &AllocationSpec) -> Option<&'static str> {
        let mut by_domain: BTreeMap<_, (u64, std::collections::BTreeSet<_>)> = BTreeMap::new();
        let mut labelled = false;
        for node in self.nodes.values() {
            let in_pool = spec.pool.is_none_or(|pool| pool == node.put.pool);
            let in_reach = claimer.is_none() || node.custody.claimer() == claimer;
            if !in_pool || !in_reach || !spec.labels.iter().all(|label| node.put.labels.contains(label)) {
                continue;
            }
            labelled = true;
            let holds = |(class, quanta): &(leasehold_model::ClassNo, leasehold_model::Quanta)| {
                let (unit, capacity) = (self.classes[class].quanta_per_unit, node.capacity(*class));
                match self.classes[class].has_devices() && quanta.0 <= unit {
                    true => capacity / unit * (unit / quanta.0),
                    false => capacity / quanta.0,
                }
            };
            let here = spec.asks.iter().map(holds).min().unwrap_or(0);
            let together = match spec.together.filter(|_| spec.replicas > 1) {
                None => None,
                Some(domain) => match within(node, domain) {
                    None => continue,
                    here => here,
                },
            };
            let (replicas, spots) = by_domain.entry(together).or_default();
            *replicas += here;
            if here > 0 {
                spots.extend(spec.apart.and_then(|domain| within(node, domain)));
            }
        }
        let most = by_domain.values().map(|(replicas, spots)| match spec.apart {
            None => *replicas,
            Some(_) => spots.len() as u64,
        });
        if !labelled && !spec.labels.is_empty() {
            return Some("impossible_labels");
        }
        if most.max().unwrap_or(0) < u64::from(spec.replicas) {
            return Some("gang_too_large");
        }
        let possible = self.pools_of(spec).any(|pool| self.gang_ttl(pool, spec).is_some());
        (!possible).then_some("walltime_too_long")
    }

    /// Whether a gang is larger than the base limit of a quota that it cannot avoid (SEMANTICS 11).
    fn is_beyond_base(&self, demand: &Demand, spec: &AllocationSpec) -> bool {
        self.quotas.values().any(|quota| match quota.put.limit {
            LimitKind::Soft { .. } => false,
            LimitKind::Hard { limit } | LimitKind::Burst { limit, .. } => self.is_beyond(quota, limit, demand, spec),
        })
    }

    /// Whether a gang is larger than a limit of a quota that it cannot avoid.
    fn is_beyond(&self, quota: &Quota, limit: u64, demand: &Demand, spec: &AllocationSpec) -> bool {
        let scope = &quota.put.scope;
        let unavoidable = scope.pool.is_none() || scope.pool == spec.pool;
        // As if it were placed on one node: the request of one replica.
        let somewhere = (scope.pool.unwrap_or(PoolNo(u32::MAX)), NodeNo(u32::MAX));
        let place = quota.depends_on_node().then_some(somewhere);
        if !unavoidable || !self.counts(quota, demand, place) {
            return false;
        }
        let each = self.use_and_request(quota, demand, Some(somewhere), &[]).1;
        let alone = match (quota.put.measure, scope.node) {
            (Measure::Nodes, _) | (_, NodeScope::One(_)) => return false,
            (Measure::Allocations, _) | (_, NodeScope::Each) => each,
            (_, NodeScope::All) => each * u128::from(spec.replicas),
        };
        alone > u128::from(limit) * u128::from(self.unit_parts(quota))
    }

    pub(crate) fn foretell_submission(
        &self,
        caller: &Caller,
        spec: &AllocationSpec,
        when_over_quota: Option<WhenOverQuota>,
        now: Instant,
    ) -> Told {
        let tenant = caller.tenant.ok_or("tenant_required")?;
        if let Some(fault) = self.fault_of_spec(tenant, caller.project, caller.user, spec) {
            return Err(fault);
        }
        let project = caller.project.expect("it was looked at");
        let mut spec = self.in_order(spec);
        if self.is_downgraded(spec.source_project.unwrap_or(project)) {
            spec = self.downgraded_spec(&spec);
        }
        let demand = Demand::of_gang(tenant, project, caller.user, &spec);
        let guard = self.guard_for(&demand, spec.pool, now);
        if self.is_paused_everywhere(&demand, spec.pool) {
            return Err("pool_paused");
        }
        if let Some(fault) = self.fault_of_holder(&demand, spec.pool) {
            return Err(fault);
        }
        let allow = |node| guard.allows(node, Some((spec.walltime, spec.priority)));
        let placed = self.place_gang(&demand, &spec, &Occupancy::of(self), now, &allow);
        if placed == Err(NoGang::Room)
            && let Some(why) = self.impossible(demand.claimer, &spec)
        {
            return Err(why);
        }
        let one_of = |bodies: Vec<Body>| Ok(Foretold::OneOf { tenant: caller.tenant, bodies });
        if let Err(NoGang::Quota(causes)) = &placed {
            let denied = |cause: DenyCause| {
                let rules_version = leasehold_model::RULES_VERSION;
                AllocationDenied { spec: spec.clone(), rules_version, cause, when_over_quota }.into()
            };
            // An allocation that only a burst refuses waits. Which of several nodes is named is not predicted.
            let own = self.tenants[&tenant].settings.when_over_quota;
            let waits = when_over_quota.or(own) == Some(WhenOverQuota::Wait) && !self.is_beyond_base(&demand, &spec);
            let evicts = matches!(self.plan_own(&demand, &spec, &guard, now), Some(Ok(_)));
            let is_final = |cause: &&DenyCause| match **cause {
                DenyCause::Quota { .. } | DenyCause::KindQuota { .. } => !waits && !evicts,
                // Reserved money can be returned; spent money cannot.
                DenyCause::Ceiling { spent, requested, amount, .. } => spent.saturating_add(requested) > amount,
                _ => false,
            };
            let hard = causes.iter().filter(is_final);
            let mut bodies: Vec<Body> = hard.map(|cause| denied(*cause)).collect();
            if bodies.len() < causes.len() && !self.is_full(tenant) {
                bodies.push(AllocationSubmitted { spec: spec.clone(), when_over_quota, node: None }.into());
            }
            return if bodies.is_empty() { Err("too_many_pending") } else { one_of(bodies) };
        }
        if placed.is_err() && self.is_full(tenant) {
            return Err("too_many_pending");
        }
        one_of(vec![AllocationSubmitted { spec, when_over_quota, node: None }.into()])
    }

    /// Whether the queue is full.
    pub(crate) fn is_full(&self, tenant: TenantNo) -> bool {
        let waiting = || self.allocations.values().filter(|found| found.state.is_queued());
        let own = waiting().filter(|found| found.tenant == tenant).count() as u64;
        let limit = self.budgets.get(&tenant).and_then(|budgets| budgets.max_pending);
        own >= limit.unwrap_or(PENDING_PER_TENANT_MAX) || waiting().count() >= PENDING_MAX
    }

    /// The expected answer to a report: the allocation must belong to the caller and be in a suitable state.
    pub(crate) fn foretell_word(&self, caller: &Caller, number: AllocationNo, word: Word, now: Instant) -> Told {
        let visible = |found: &&Allocation| caller.tenant.is_none_or(|tenant| tenant == found.tenant);
        let own = |found: &&Allocation| caller.project.is_none_or(|project| project == found.project);
        let found = self.allocations.get(&number).filter(visible).filter(own).ok_or("allocation_not_found")?;
        if found.state.is_over() {
            return Err("allocation_over");
        }
        if word == Word::Cancel {
            return Ok(Foretold::Stands);
        }
        if let Word::Hold | Word::Release | Word::Change(_) = word {
            return self.foretell_pending(caller, found, word);
        }
        if !found.state.is_placed() {
            return Err("allocation_not_running");
        }
        let refused = match word {
            Word::Start if found.state != AllocationState::Staging => Some("allocation_not_staging"),
            Word::BeginCheckpoint if found.state != AllocationState::Running => Some("allocation_not_running"),
            Word::Checkpoint(_) if found.state == AllocationState::Staging => Some("allocation_not_running"),
            Word::Checkpoint(took) if took > now.since(found.placed_at) => Some("checkpoint_too_long"),
            Word::Complete(Some(256..)) => Some("bad_exit_status"),
            _ => None,
        };
        refused.map_or(Ok(Foretold::Stands), Err)
    }

    /// The expected answer to the report of an agent or an operator that work could not be started.
    pub(crate) fn foretell_failed_start(
        &self,
        caller: &Caller,
        number: AllocationNo,
        node: Option<NodeNo>,
        generation: Option<u64>,
    ) -> Told {
        if let Some(node) = node.filter(|_| generation.is_some()) {
            self.check_generation(node, generation)?;
        }
        let visible = |found: &&Allocation| caller.tenant.is_none_or(|tenant| tenant == found.tenant);
        let own = |found: &&Allocation| caller.project.is_none_or(|project| project == found.project);
        let found = self.allocations.get(&number).filter(visible).filter(own).ok_or("allocation_not_found")?;
        let held_on = |node: NodeNo| self.gang_of(found).any(|lease| lease.phase.is_held() && lease.node == node);
        match found.state {
            state if state.is_over() => Err("allocation_over"),
            state if !state.is_placed() => Err("allocation_not_running"),
            state if state != AllocationState::Staging => Err("allocation_not_staging"),
            _ if node.is_some_and(|node| !held_on(node)) => Err("allocation_not_on_node"),
            _ => Ok(Foretold::Stands),
        }
    }

    /// The expected answer to a command that only a waiting allocation accepts.
    fn foretell_pending(&self, caller: &Caller, found: &Allocation, word: Word) -> Told {
        let (allocation, by_operator) = (found.number, caller.tenant.is_none());
        if !found.state.is_queued() {
            return Err("allocation_not_waiting");
        }
        let body: Body = match (word, found.hold) {
            (Word::Hold, Some(_)) => return Err("allocation_on_hold"),
            (Word::Hold, None) => AllocationHoldSet { allocation, by_operator, reason: None }.into(),
            (Word::Release, None) => return Err("allocation_not_on_hold"),
            (Word::Release, Some(true)) if !by_operator => return Err("held_by_operator"),
            (Word::Release, Some(_)) => AllocationHoldCleared { allocation }.into(),
            (Word::Change(change), _) => {
                let spec = change.of(&found.spec);
                if spec == found.spec {
                    return Err("allocation_unchanged");
                }
                if let Some(fault) = self.fault_of_spec(found.tenant, Some(found.project), found.user, &spec) {
                    return Err(fault);
                }
                let demand = Demand::of_gang(found.tenant, found.project, found.user, &spec);
                let paused = self.is_paused_everywhere(&demand, spec.pool).then_some("pool_paused");
                let fault = paused.or_else(|| self.fault_of_holder(&demand, spec.pool));
                if let Some(fault) = fault.or_else(|| self.impossible(demand.claimer, &spec)) {
                    return Err(fault);
                }
                AllocationChanged { allocation, spec }.into()
            }
            _ => return Ok(Foretold::Stands),
        };
        Ok(Foretold::OneOf { tenant: Some(found.tenant), bodies: vec![body] })
    }
}
