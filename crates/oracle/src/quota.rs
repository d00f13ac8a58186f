//! Quotas: use is recomputed from all leases each time (SEMANTICS 4).

use crate::allocation::Allocation;
use crate::custody::Claimer;
use crate::lease::Lease;
use crate::world::{Beyond, Episode, Quota, World};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, ClassNo, DenyCause, Fraction, HolderScope, Instant, LeaseNo,
    LimitKind, Measure, NodeNo, NodeScope, PoolNo, Priority, ProjectNo, QuotaNo, QuotaScope, Span, TenantNo, UserNo,
};
use std::collections::BTreeSet;

/// The ruling of one quota on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Passes,
    /// Allowed above a soft limit.
    OverSoft,
    /// Allowed above the base limit of a burst quota, until the burst is over.
    Until(Instant),
    Refused(DenyCause),
}

/// The burst part of a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) base: u64,
    pub(crate) ttl: Span,
}

pub(crate) fn burst_of(quota: &Quota) -> Option<Burst> {
    match quota.limit() {
        LimitKind::Burst { limit, burst_ttl, .. } => Some(Burst { base: limit, ttl: burst_ttl }),
        LimitKind::Hard { .. } | LimitKind::Soft { .. } => None,
    }
}

/// The user and the app instance of some work.
pub(crate) type Who = (Option<UserNo>, Option<AppInstanceNo>);

impl Quota {
    /// The limit in force: the temporary one while there is one.
    pub(crate) fn limit(&self) -> LimitKind {
        self.put.temporary.map_or(self.put.limit, |temporary| temporary.limit)
    }

    /// Whether it counts the work of these, apart from others if it counts each one on its own.
    pub(crate) fn is_shared_by(&self, one: Who, other: Who) -> bool {
        let further = &self.put.scope.further;
        (further.user != Some(HolderScope::Each) || one.0 == other.0)
            && (further.app_instance != Some(HolderScope::Each) || one.1 == other.1)
    }

    /// As whom it counts the work of these.
    pub(crate) fn counted_as(&self, (user, app): Who) -> Who {
        let further = &self.put.scope.further;
        (
            user.filter(|_| further.user == Some(HolderScope::Each)),
            app.filter(|_| further.app_instance == Some(HolderScope::Each)),
        )
    }

    /// Whether it counts an allocation of its tenant in the use of these.
    pub(crate) fn counts_placed(&self, found: &Allocation, who: Who) -> bool {
        let (scope, of) = (&self.put.scope, (found.user, found.spec.app_instance));
        found.state.is_placed()
            && scope.project.is_none_or(|project| project == found.payer())
            && has_priority(scope, found.spec.priority)
            && has_holder(scope, of)
            && self.is_shared_by(who, of)
    }

    /// Whether the ruling depends on the node; such quotas filter the candidates (SEMANTICS 4).
    pub(crate) fn depends_on_node(&self) -> bool {
        let scope = &self.put.scope;
        scope.pool.is_some() || scope.node != NodeScope::All || self.put.measure == Measure::Nodes
    }
}

fn is_held_by<T: PartialEq>(scope: &Option<HolderScope<T>>, holder: &Option<T>) -> bool {
    match (scope, holder) {
        (None, _) | (Some(HolderScope::Each), Some(_)) => true,
        (Some(HolderScope::One(one)), Some(holder)) => one == holder,
        (Some(_), None) => false,
    }
}

/// Whether a scope has this priority.
pub(crate) fn has_priority(scope: &QuotaScope, priority: Priority) -> bool {
    match (scope.priority, scope.further.and_above) {
        (None, _) => true,
        (Some(only), false) => only == priority,
        (Some(lowest), true) => lowest <= priority,
    }
}

/// Whether a scope has the work of a user and an app instance.
pub(crate) fn has_holder(scope: &QuotaScope, who: Who) -> bool {
    is_held_by(&scope.further.user, &who.0) && is_held_by(&scope.further.app_instance, &who.1)
}

/// A request, as quotas see it: the asks once, or once for each replica of a gang.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    /// On whom it counts.
    pub(crate) payer: ProjectNo,
    pub(crate) priority: Priority,
    pub(crate) asks: Vec<(ClassNo, u64)>,
    /// `None` for a lease request.
    pub(crate) replicas: Option<u32>,
    /// The claimer whose nodes it uses; `None` if it is not sensitive.
    pub(crate) claimer: Option<Claimer>,
    /// The only node that it may use.
    pub(crate) node: Option<NodeNo>,
    /// The specification of a gang; `None` for a lease request.
    pub(crate) spec: Option<AllocationSpec>,
    pub(crate) who: Who,
    /// Its number, if it was submitted.
    pub(crate) number: Option<AllocationNo>,
    /// Leases that would be evicted for it, to make headroom in a quota.
    pub(crate) evicts: Option<(QuotaNo, Vec<LeaseNo>)>,
}

/// The pool and node of a replica.
pub(crate) type NodeInPool = (PoolNo, NodeNo);

pub(crate) fn is_within(scope: &QuotaScope, (pool, node): NodeInPool) -> bool {
    scope.pool.is_none_or(|of| of == pool)
        && match scope.node {
            NodeScope::All | NodeScope::Each => true,
            NodeScope::One(of) => of == node,
        }
}

impl World {
    /// Whether a lease is in a scope. Since rules version 4 sensitive leases are in none: the claim of their node counts.
    pub(crate) fn covers(&self, scope: &QuotaScope, lease: &Lease) -> bool {
        !(lease.sensitive && self.is_by_rules_4())
            && scope.tenant == lease.tenant
            && scope.project.is_none_or(|project| project == lease.payer)
            && self.has_class(scope, lease.class)
            && scope.pool.is_none_or(|pool| pool == lease.pool)
            && has_priority(scope, lease.priority)
            && has_holder(scope, (lease.user, lease.app_instance))
            && match scope.node {
                NodeScope::All | NodeScope::Each => true,
                NodeScope::One(node) => node == lease.node,
            }
    }

    pub(crate) fn has_class(&self, scope: &QuotaScope, class: ClassNo) -> bool {
        scope.class.is_none_or(|own| own == class)
            && scope.further.kind.is_none_or(|kind| self.classes[&class].kind == kind)
    }

    /// A number that is divided by the `quanta_per_unit` of every class of the quota's kind: in this many parts of a
    /// billing unit it is counted. One if the quota is not on a kind.
    pub(crate) fn unit_parts(&self, quota: &Quota) -> u64 {
        let Some(kind) = quota.put.scope.further.kind.filter(|_| quota.put.measure == Measure::Quanta) else {
            return 1;
        };
        let sizes: BTreeSet<u64> =
            self.classes.values().filter(|spec| spec.kind == kind).map(|spec| spec.quanta_per_unit).collect();
        sizes.into_iter().product()
    }

    /// Quanta of a class in the parts in which a quota counts.
    pub(crate) fn in_parts(&self, quota: &Quota, class: ClassNo, quanta: u64) -> u128 {
        let per_unit = if quota.put.scope.further.kind.is_some() { self.classes[&class].quanta_per_unit } else { 1 };
        u128::from(quanta) * u128::from(self.unit_parts(quota) / per_unit)
    }

    fn counted(&self, quota: &Quota, on: Option<NodeNo>, who: Who) -> Vec<&Lease> {
        let counts = |l: &&Lease| l.phase.counts_for_quota() && on.is_none_or(|node| node == l.node);
        let shares = |l: &&Lease| quota.is_shared_by(who, (l.user, l.app_instance));
        self.leases.iter().filter(counts).filter(shares).filter(|l| self.covers(&quota.put.scope, l)).collect()
    }

    /// The use of a quota by these, on one node if one is given. Fenced capacity does not count.
    pub(crate) fn used(&self, quota: &Quota, on: Option<NodeNo>, who: Who) -> u128 {
        let leases = || self.counted(quota, on, who);
        match quota.put.measure {
            Measure::Quanta => {
                let leased = leases().iter().map(|lease| self.in_parts(quota, lease.class, lease.quanta)).sum::<u128>();
                leased + self.claimed_part(quota, on, who)
            }
            Measure::Leases => leases().len() as u128,
            Measure::Nodes => self.nodes_counted(quota, who).len() as u128,
            Measure::Allocations => self.allocations_counted(quota, who),
        }
    }

    /// Nodes with leases, and claimed nodes.
    pub(crate) fn nodes_counted(&self, quota: &Quota, who: Who) -> BTreeSet<NodeNo> {
        let leased = self.counted(quota, None, who).into_iter().map(|lease| lease.node);
        leased.chain(self.nodes_claimed_under(quota, who)).collect()
    }

    /// Allocations that hold capacity are counted whole.
    fn allocations_counted(&self, quota: &Quota, who: Who) -> u128 {
        let scope = &quota.put.scope;
        let of_tenant = self.allocations.values().filter(|found| found.tenant == scope.tenant);
        of_tenant.filter(|found| quota.counts_placed(found, who)).count() as u128
    }

    /// Everybody whose work a quota may count apart from that of others.
    pub(crate) fn everybody(&self, quota: &Quota) -> BTreeSet<Who> {
        let further = &quota.put.scope.further;
        let only = |(user, app): Who| {
            (
                user.filter(|_| further.user == Some(HolderScope::Each)),
                app.filter(|_| further.app_instance == Some(HolderScope::Each)),
            )
        };
        let of_leases = self.leases.iter().map(|lease| (lease.user, lease.app_instance));
        let of_allocations = self.allocations.values().map(|found| (found.user, found.spec.app_instance));
        let of_claims = self.users.keys().map(|user| (Some(*user), None));
        of_leases.chain(of_allocations).chain(of_claims).chain([(None, None)]).map(only).collect()
    }

    /// Why a request lacks a name that quotas count by, if it does (SEMANTICS 11).
    pub(crate) fn fault_of_holder(&self, demand: &Demand, pool: Option<PoolNo>) -> Option<&'static str> {
        let (user, app) = demand.who;
        self.quotas.values().find_map(|quota| {
            let scope = &quota.put.scope;
            let could_count = !self.is_left_to_claims(quota, demand)
                && scope.tenant == demand.tenant
                && scope.project.is_none_or(|project| project == demand.payer)
                && demand.asks.iter().any(|(class, _)| self.has_class(scope, *class))
                && has_priority(scope, demand.priority)
                && (quota.put.measure != Measure::Allocations || demand.replicas.is_some())
                && (scope.pool.is_none() || pool.is_none() || scope.pool == pool);
            match &scope.further {
                _ if !could_count => None,
                further if further.user.is_some() && user.is_none() => Some("quota_needs_user"),
                further if further.app_instance.is_some() && app.is_none() => Some("quota_needs_app_instance"),
                _ => None,
            }
        })
    }

    /// Whether a quota counts the claims of the nodes that a request uses instead of the request (SEMANTICS 11).
    fn is_left_to_claims(&self, quota: &Quota, demand: &Demand) -> bool {
        self.is_by_rules_4() && demand.claimer.is_some() && quota.put.measure != Measure::Allocations
    }

    /// Whether a quota counts a request; for quotas that depend on nodes, if it is placed there.
    pub(crate) fn counts(&self, quota: &Quota, demand: &Demand, place: Option<NodeInPool>) -> bool {
        let scope = &quota.put.scope;
        !self.is_left_to_claims(quota, demand)
            && scope.tenant == demand.tenant
            && scope.project.is_none_or(|project| project == demand.payer)
            && demand.asks.iter().any(|(class, _)| self.has_class(scope, *class))
            && has_priority(scope, demand.priority)
            && has_holder(scope, demand.who)
            && (quota.put.measure != Measure::Allocations || demand.replicas.is_some())
            && place.map_or(scope.pool.is_none() && scope.node == NodeScope::All, |at| is_within(scope, at))
    }

    /// The ruling on one more replica on a node when others are on `taken`; or on the whole request, if the quota does
    /// not depend on nodes. `None` if the quota does not apply.
    pub(crate) fn rule(
        &self,
        number: QuotaNo,
        quota: &Quota,
        demand: &Demand,
        place: Option<NodeInPool>,
        taken: &[NodeInPool],
        now: Instant,
    ) -> Option<Ruling> {
        if !self.counts(quota, demand, place) {
            return None;
        }
        let (used, requested) = self.use_and_request(quota, demand, place, taken);
        let over = |limit: u64| used + requested > u128::from(limit) * u128::from(self.unit_parts(quota));
        let refused = |limit| Ruling::Refused(self.denial(number, quota, used, requested, limit));
        Some(match quota.limit() {
            LimitKind::Hard { limit } if over(limit) => refused(limit),
            LimitKind::Soft { limit } if over(limit) => Ruling::OverSoft,
            LimitKind::Burst { burst_limit, .. } if over(burst_limit) => refused(burst_limit),
            LimitKind::Burst { limit, burst_ttl, .. } if over(limit) => {
                let started_at = quota.episode.map_or(now, |episode| episode.started_at);
                let ends_at = started_at.saturating_add(burst_ttl);
                // A gang waits if it would run for longer than what is left of the burst (SEMANTICS 11).
                let walltime = demand.spec.as_ref().and_then(|spec| spec.walltime);
                let outlasts = walltime.is_some_and(|walltime| now.saturating_add(walltime) > ends_at);
                if ends_at <= now || outlasts {
                    Ruling::Refused(DenyCause::BurstOver { quota: number, ends_at })
                } else {
                    Ruling::Until(ends_at)
                }
            }
            _ => Ruling::Passes,
        })
    }

    /// The denial in quanta, or in fractions of a unit for a quota on a kind.
    fn denial(&self, number: QuotaNo, quota: &Quota, used: u128, requested: u128, limit: u64) -> DenyCause {
        let whole = |count: u128| u64::try_from(count).expect("small counts");
        let exact = |count: u128| Fraction::new(count, self.unit_parts(quota));
        match quota.put.scope.further.kind.filter(|_| quota.put.measure == Measure::Quanta) {
            None => DenyCause::Quota { quota: number, used: whole(used), requested: whole(requested), limit },
            Some(_) => DenyCause::KindQuota { quota: number, used: exact(used), requested: exact(requested), limit },
        }
    }

    pub(crate) fn use_and_request(
        &self,
        quota: &Quota,
        demand: &Demand,
        place: Option<NodeInPool>,
        taken: &[NodeInPool],
    ) -> (u128, u128) {
        let (used, requested) = self.plain_use_and_request(quota, demand, place, taken);
        (used - self.evicted_use(quota, demand) + self.held_for_others(quota, demand), requested)
    }

    /// The same, without headroom that is made or held.
    pub(crate) fn plain_use_and_request(
        &self,
        quota: &Quota,
        demand: &Demand,
        place: Option<NodeInPool>,
        taken: &[NodeInPool],
    ) -> (u128, u128) {
        let scope = &quota.put.scope;
        let who = demand.who;
        let asked = demand.asks.iter().filter(|(class, _)| self.has_class(scope, *class));
        let each = match quota.put.measure {
            Measure::Quanta => asked.map(|(class, quanta)| self.in_parts(quota, *class, *quanta)).sum(),
            Measure::Leases => asked.count() as u128,
            Measure::Nodes | Measure::Allocations => 1,
        };
        let Some((_, node)) = place else {
            let times = if quota.put.measure == Measure::Allocations { 1 } else { demand.replicas.unwrap_or(1) };
            return (self.used(quota, None, who), each * u128::from(times));
        };
        let before: Vec<NodeNo> = taken.iter().filter(|at| is_within(scope, **at)).map(|(_, node)| *node).collect();
        if quota.put.measure == Measure::Nodes {
            // A node that is used already does not count again.
            let counted = self.nodes_counted(quota, who);
            let new: BTreeSet<NodeNo> = before.into_iter().chain([node]).filter(|at| !counted.contains(at)).collect();
            return (counted.len() as u128, new.len() as u128);
        }
        if scope.node == NodeScope::Each {
            let here = before.iter().filter(|other| **other == node).count() as u128;
            return (self.used(quota, Some(node), who), each * (here + 1));
        }
        (self.used(quota, None, who), each * (before.len() as u128 + 1))
    }

    /// Converts the refusal of one replica to the figures of the whole gang, placed on `places`.
    pub(crate) fn for_all(&self, cause: DenyCause, demand: &Demand, places: &[NodeInPool]) -> DenyCause {
        let (number, requested, limit) = match cause {
            DenyCause::Quota { quota, requested, limit, .. } => (quota, u128::from(requested), limit),
            DenyCause::KindQuota { quota, requested, limit, .. } => {
                let parts = u128::from(self.unit_parts(&self.quotas[&quota]) / requested.denominator());
                (quota, requested.numerator() * parts, limit)
            }
            DenyCause::BurstOver { .. }
            | DenyCause::Capacity { .. }
            | DenyCause::Ceiling { .. }
            | DenyCause::Prepaid { .. } => return cause,
        };
        let quota = &self.quotas[&number];
        let per_node = quota.put.scope.node == NodeScope::Each && quota.put.measure != Measure::Nodes;
        // Replicas outside its scope count nothing.
        let inside: Vec<NodeInPool> =
            places.iter().copied().filter(|place| is_within(&quota.put.scope, *place)).collect();
        let Some((last, others)) = inside.split_last().filter(|_| !per_node) else { return cause };
        let (used, all) = self.use_and_request(quota, demand, Some(*last), others);
        self.denial(number, quota, used, all.max(requested), limit)
    }

    /// The burst quota that limits the renewal of a lease, and until when; only quotas above their base limit apply.
    pub(crate) fn renewal_ends(&self, lease: &Lease) -> Option<(QuotaNo, Instant)> {
        let covering = self.quotas.iter().filter(|(_, quota)| self.covers(&quota.put.scope, lease));
        let ends = covering.filter_map(|(no, quota)| {
            let over = self.exceeds_base(quota, burst_of(quota)?.base);
            let burst = burst_of(quota)?;
            // Use above the base limit implies a burst, because `follow_episodes` runs after each record.
            over.then(|| {
                (*no, quota.episode.expect("over base within an episode").started_at.saturating_add(burst.ttl))
            })
        });
        ends.min_by_key(|(number, at)| (*at, *number))
    }

    /// What is held beyond a limit now: zero unless the limit is soft.
    fn beyond(&self, quota: &Quota, limit: LimitKind) -> Fraction {
        let LimitKind::Soft { limit } = limit else { return Fraction::new(0, 1) };
        let parts = self.unit_parts(quota);
        let nodes: Vec<Option<NodeNo>> = match quota.put.scope.node {
            NodeScope::Each => self.nodes.keys().copied().map(Some).collect(),
            NodeScope::All | NodeScope::One(_) => vec![None],
        };
        let mut sum = 0;
        for who in self.everybody(quota) {
            for node in &nodes {
                sum += self.used(quota, *node, who).saturating_sub(u128::from(limit) * u128::from(parts));
            }
        }
        Fraction::new(sum, parts)
    }

    /// After each record: writes down what each quota has beyond its limits (SEMANTICS 11).
    pub(crate) fn follow_overage(&mut self, stamp: Instant) {
        let numbers: Vec<QuotaNo> = self.quotas.keys().copied().collect();
        for number in numbers {
            let quota = &self.quotas[&number];
            let until = quota.put.temporary.map(|temporary| temporary.until);
            let (limit, base) = (self.beyond(quota, quota.limit()), self.beyond(quota, quota.put.limit));
            let now = Beyond { at: stamp, limit, base, until };
            self.quotas.get_mut(&number).expect("just listed").beyond.push(now);
        }
    }

    /// Everything that was beyond the limit until the last record, times nanoseconds.
    pub(crate) fn overage(&self, quota: &Quota) -> Fraction {
        let parts = self.unit_parts(quota);
        let mut sum = 0;
        for pair in quota.beyond.windows(2) {
            let (from, to) = (pair[0].at.0, pair[1].at.0);
            let switch = pair[0].until.map_or(to, |until| until.0.clamp(from, to));
            let count = |level: Fraction| level.numerator() * u128::from(parts / level.denominator());
            sum += count(pair[0].limit) * u128::from(switch - from) + count(pair[0].base) * u128::from(to - switch);
        }
        Fraction::new(sum, parts)
    }

    /// Whether the use of a burst quota is above its base limit. It counts everybody together. Claims alone never are
    /// (SEMANTICS 11).
    fn exceeds_base(&self, quota: &Quota, base: u64) -> bool {
        let everybody = (None, None);
        let used = self.used(quota, None, everybody);
        let has_other_use = used > self.claimed_part(quota, None, everybody);
        used > u128::from(base) * u128::from(self.unit_parts(quota)) && has_other_use
    }

    /// After each record: a burst starts when use exceeds the base limit. The time at or below the base limit counts
    /// from the stamp of the record that got it there. Only `quota.burst_ended` ends a burst.
    pub(crate) fn follow_episodes(&mut self, stamp: Instant) {
        let numbers: Vec<QuotaNo> = self.quotas.keys().copied().collect();
        for number in numbers {
            let quota = &self.quotas[&number];
            let episode = burst_of(quota).and_then(|burst| {
                let over = self.exceeds_base(quota, burst.base);
                match quota.episode {
                    None => over.then_some(Episode { started_at: stamp, below_since: None }),
                    Some(episode) if over => Some(Episode { below_since: None, ..episode }),
                    Some(episode) => Some(Episode { below_since: episode.below_since.or(Some(stamp)), ..episode }),
                }
            });
            self.quotas.get_mut(&number).expect("just listed").episode = episode;
        }
    }
}
