//! The expected answer to a command that creates or changes a quota (SEMANTICS 4 and 11).

use crate::apps::{those, unless};
use crate::foretell::{Caller, Told, sealed};
use crate::world::{Quota, World};
use leasehold_model::body::QuotaPut;
use leasehold_model::limits::QUOTAS_PER_TENANT_MAX;
use leasehold_model::{HolderScope, Instant, LimitKind, Measure, NodeScope, QuotaNo, QuotaScope, Span, TemporaryLimit};

/// A quota to create or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaWish {
    pub quota: Option<QuotaNo>,
    pub scope: QuotaScope,
    pub measure: Measure,
    pub limit: LimitKind,
    pub until: Option<Instant>,
    /// Whether the limit, and the burst limit, are percentages of those of the base.
    pub percent: Option<(bool, bool)>,
    /// Whether requests may evict leases that it counts; `None` keeps what it is.
    pub evict_own_lower: Option<bool>,
}

impl World {
    pub(crate) fn foretell_quota(&self, caller: &Caller, wish: &QuotaWish, now: Instant) -> Told {
        if let Some(fault) = self.fault_of_scope(caller, wish) {
            // A quota on an app instance goes with it.
            let gone = wish.quota.is_some_and(|number| !self.quotas.contains_key(&number));
            let both = gone && fault == "unknown_app_instance";
            return unless(those(&[(true, fault), (both, "unknown_quota")]), || unreachable!("it has a fault"));
        }
        let old = match wish.quota {
            Some(number) => {
                let visible = |quota: &&Quota| caller.tenant.is_none_or(|own| own == quota.put.scope.tenant);
                let old = self.quotas.get(&number).filter(visible).ok_or("unknown_quota")?;
                let same = old.put.scope == wish.scope && old.put.measure == wish.measure;
                if !same {
                    return Err("scope_fixed");
                }
                Some(old)
            }
            None => {
                let mut own = self.quotas.values().filter(|quota| quota.put.scope.tenant == wish.scope.tenant);
                if own.clone().count() >= QUOTAS_PER_TENANT_MAX {
                    return Err("too_many_quotas");
                }
                let is_same = |other: &Quota| {
                    let types = (other.put.limit.word(), wish.limit.word());
                    other.put.scope == wish.scope && other.put.measure == wish.measure && types.0 == types.1
                };
                if own.any(is_same) {
                    return Err("quota_exists");
                }
                None
            }
        };
        let limit = match wish.percent {
            None => wish.limit,
            Some(which) => percent_of(old.ok_or("percent_needs_base")?.put.limit, wish.limit, which),
        };
        if let Some(fault) = fault_of_burst(limit, &wish.scope) {
            return Err(fault);
        }
        let (limit, temporary) = match wish.until {
            None => (limit, None),
            Some(until) if until <= now => return Err("until_past"),
            Some(until) => (old.ok_or("until_needs_base")?.put.limit, Some(TemporaryLimit { limit, until })),
        };
        let quota = wish.quota.unwrap_or(QuotaNo(self.next_number("quota")));
        let (scope, measure) = (wish.scope.clone(), wish.measure);
        let evict_own_lower = wish.evict_own_lower.unwrap_or(old.is_some_and(|old| old.put.evict_own_lower));
        let put = QuotaPut { quota, scope, measure, limit, temporary, evict_own_lower };
        if put.evict_own_lower && !may_evict_own(&put) {
            return Err("evict_own_lower_unsuitable");
        }
        sealed(Some(put.scope.tenant), put)
    }

    fn fault_of_scope(&self, caller: &Caller, wish: &QuotaWish) -> Option<&'static str> {
        let QuotaScope { tenant, project, class, pool, node, priority, further } = &wish.scope;
        let visible = caller.tenant.is_none_or(|own| own == *tenant) && self.tenants.contains_key(tenant);
        let unknown_user = match further.user {
            Some(HolderScope::One(user)) => self.users.get(&user).is_none_or(|found| found.tenant != *tenant),
            Some(HolderScope::Each) | None => false,
        };
        let unknown_app = match further.app_instance {
            Some(HolderScope::One(app)) => self.is_foreign(*tenant, app),
            Some(HolderScope::Each) | None => false,
        };
        let unknown_node = matches!(node, NodeScope::One(node) if !self.nodes.contains_key(node));
        let of_class = class.is_some() || further.kind.is_some();
        let somewhere = of_class || pool.is_some() || *node != NodeScope::All;
        let faults = [
            (!visible, "unknown_tenant"),
            (project.is_some_and(|no| self.projects.get(&no).is_none_or(|p| p.tenant != *tenant)), "unknown_project"),
            (unknown_user, "unknown_user"),
            (unknown_app, "unknown_app_instance"),
            (class.is_some_and(|class| !self.classes.contains_key(&class)), "unknown_class"),
            (pool.is_some_and(|pool| !self.pools.contains_key(&pool)), "unknown_pool"),
            (unknown_node, "unknown_node"),
            (class.is_some() && further.kind.is_some(), "kind_and_class"),
            (further.and_above && priority.is_none(), "above_needs_priority"),
            (wish.measure == Measure::Quanta && !of_class, "quanta_need_class"),
            (wish.measure == Measure::Nodes && *node == NodeScope::Each, "nodes_per_node"),
            (wish.measure == Measure::Allocations && somewhere, "allocations_scope"),
        ];
        faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, word)| word)
    }
}

/// Whether a request that fails on such a quota could evict.
pub(crate) fn may_evict_own(put: &QuotaPut) -> bool {
    let refuses = put.limit.word() != "soft";
    refuses && put.measure != Measure::Nodes && put.scope.node != NodeScope::Each
}

fn fault_of_burst(limit: LimitKind, scope: &QuotaScope) -> Option<&'static str> {
    let LimitKind::Burst { limit, burst_limit, burst_ttl } = limit else { return None };
    let further = &scope.further;
    let each = further.user == Some(HolderScope::Each) || further.app_instance == Some(HolderScope::Each);
    let faults = [
        (burst_limit < limit, "burst_below_base"),
        (burst_ttl == Span::ZERO, "zero_burst_ttl"),
        (scope.node == NodeScope::Each, "burst_per_node"),
        (each, "burst_per_holder"),
    ];
    faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, word)| word)
}

/// The limit with percentages of the base instead of amounts, where `which` says so, rounded down.
fn percent_of(base: LimitKind, limit: LimitKind, which: (bool, bool)) -> LimitKind {
    let (of, of_burst) = match base {
        LimitKind::Hard { limit } | LimitKind::Soft { limit } => (limit, limit),
        LimitKind::Burst { limit, burst_limit, .. } => (limit, burst_limit),
    };
    let share = |percent: bool, amount: u64, of: u64| if percent { amount * of / 100 } else { amount };
    match limit {
        LimitKind::Hard { limit } => LimitKind::Hard { limit: share(which.0, limit, of) },
        LimitKind::Soft { limit } => LimitKind::Soft { limit: share(which.0, limit, of) },
        LimitKind::Burst { limit, burst_limit, burst_ttl } => {
            let (limit, burst_limit) = (share(which.0, limit, of), share(which.1, burst_limit, of_burst));
            LimitKind::Burst { limit, burst_limit, burst_ttl }
        }
    }
}
