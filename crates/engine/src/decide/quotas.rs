//! Commands about quotas.

use super::Draft;
use super::inventory::number;
use crate::command::{Percent, PutQuota};
use crate::quota::Quota;
use crate::refusal::Refusal;
use leasehold_model::body::{QuotaDeleted, QuotaPut};
use leasehold_model::limits::QUOTAS_PER_TENANT_MAX;
use leasehold_model::{HolderScope, LimitKind, Measure, NodeScope, QuotaNo, Span, TemporaryLimit};

impl Draft<'_> {
    pub(super) fn put_quota(&mut self, put: &PutQuota) -> Result<(), Refusal> {
        self.check_scope(put)?;
        let state = self.state();
        let old = match put.quota {
            Some(quota) => {
                let old = state.quota(quota).filter(|old| self.may_see(old.scope.tenant));
                let old = old.ok_or(Refusal::UnknownQuota { quota })?;
                if old.scope != put.scope || old.measure != put.measure {
                    return Err(Refusal::ScopeFixed { quota });
                }
                Some(old)
            }
            None => {
                self.check_new(put)?;
                None
            }
        };
        let limit = in_numbers(put.limit, put.percent.as_ref(), old)?;
        check_limit(limit, put)?;
        let (limit, temporary) = match put.until {
            None => (limit, None),
            Some(until) if until <= self.now => return Err(Refusal::UntilPast { now: self.now }),
            // The base limit stays as it is and applies again afterwards.
            Some(until) => (old.ok_or(Refusal::UntilNeedsBase)?.base(), Some(TemporaryLimit { limit, until })),
        };
        let evict_own_lower = put.evict_own_lower.or(old.map(|old| old.evict_own_lower)).unwrap_or(false);
        if evict_own_lower && !can_evict(limit, put) {
            return Err(Refusal::EvictOwnLowerUnsuitable);
        }
        let quota = QuotaNo(number(put.quota.map(|q| q.0), state.quotas.len())?);
        let (scope, measure) = (put.scope.clone(), put.measure);
        let body = QuotaPut { quota, scope, measure, limit, temporary, evict_own_lower };
        self.emit(Some(put.scope.tenant), body, |_| {});
        Ok(())
    }

    /// A new quota must not count the same as another one with the same type of limit.
    fn check_new(&self, put: &PutQuota) -> Result<(), Refusal> {
        let tenant = self.known_tenant(put.scope.tenant)?;
        if tenant.quotas.len() >= QUOTAS_PER_TENANT_MAX {
            return Err(Refusal::TooManyQuotas { limit: QUOTAS_PER_TENANT_MAX });
        }
        let mut others = self.state().quotas_of(put.scope.tenant);
        let is_same = |other: &&Quota| {
            other.scope == put.scope && other.measure == put.measure && other.base().word() == put.limit.word()
        };
        match others.find(is_same) {
            Some(other) => Err(Refusal::QuotaExists { quota: other.number }),
            None => Ok(()),
        }
    }

    fn check_scope(&self, put: &PutQuota) -> Result<(), Refusal> {
        let state = self.state();
        let scope = &put.scope;
        let tenant = scope.tenant;
        self.known_tenant(tenant)?;
        if let Some(project) = scope.project
            && state.project(project).is_none_or(|p| p.tenant != tenant)
        {
            return Err(Refusal::UnknownProject { project });
        }
        if let Some(HolderScope::One(user)) = scope.further.user
            && state.user(user).is_none_or(|found| found.tenant != tenant)
        {
            return Err(Refusal::UnknownUser { user });
        }
        if let Some(HolderScope::One(app_instance)) = scope.further.app_instance
            && put.quota.is_none()
        {
            self.known_app_instance(tenant, app_instance)?;
        }
        if let Some(class) = scope.class
            && state.class(class).is_none()
        {
            return Err(Refusal::UnknownClass { class });
        }
        if let Some(pool) = scope.pool
            && state.pool(pool).is_none()
        {
            return Err(Refusal::UnknownPool { pool });
        }
        if let NodeScope::One(node) = scope.node
            && state.node(node).is_none()
        {
            return Err(Refusal::UnknownNode { node });
        }
        if let Some(kind) = scope.further.kind {
            if scope.class.is_some() {
                return Err(Refusal::KindAndClass);
            }
            if state.parts_per_unit(kind).is_none() {
                return Err(Refusal::KindHasNoCommonPart { kind });
            }
        }
        if scope.further.and_above && scope.priority.is_none() {
            return Err(Refusal::AboveNeedsPriority);
        }
        if put.measure == Measure::Quanta && scope.class.is_none() && scope.further.kind.is_none() {
            return Err(Refusal::QuantaNeedClass);
        }
        if put.measure == Measure::Nodes && scope.node == NodeScope::Each {
            return Err(Refusal::NodesPerNode);
        }
        let by_class = scope.class.is_some() || scope.further.kind.is_some();
        let by_location = by_class || scope.pool.is_some() || scope.node != NodeScope::All;
        if put.measure == Measure::Allocations && by_location {
            return Err(Refusal::AllocationsScope);
        }
        Ok(())
    }

    pub(super) fn delete_quota(&mut self, quota: QuotaNo) -> Result<(), Refusal> {
        let found = self.state().quota(quota).filter(|found| self.may_see(found.scope.tenant));
        let found = found.ok_or(Refusal::UnknownQuota { quota })?;
        let tenant = found.scope.tenant;
        self.emit(Some(tenant), QuotaDeleted { quota }, |_| {});
        Ok(())
    }
}

/// Whether requests that fail on such a quota could evict: its verdict must not depend on which nodes are used already,
/// and a soft limit refuses nothing.
fn can_evict(base: LimitKind, put: &PutQuota) -> bool {
    !matches!(base, LimitKind::Soft { .. }) && put.measure != Measure::Nodes && put.scope.node != NodeScope::Each
}

fn check_limit(limit: LimitKind, put: &PutQuota) -> Result<(), Refusal> {
    let LimitKind::Burst { limit, burst_limit, burst_ttl } = limit else { return Ok(()) };
    if burst_limit < limit {
        return Err(Refusal::BurstBelowBase { limit, burst_limit });
    }
    if burst_ttl == Span::ZERO {
        return Err(Refusal::ZeroBurstTtl);
    }
    if put.scope.node == NodeScope::Each {
        return Err(Refusal::BurstPerNode);
    }
    if put.scope.further.is_per_holder() {
        return Err(Refusal::BurstPerHolder);
    }
    Ok(())
}

/// The limit with its percentages replaced by the amounts that they are of the base limit, rounded down.
fn in_numbers(limit: LimitKind, percent: Option<&Percent>, old: Option<&Quota>) -> Result<LimitKind, Refusal> {
    let Some(percent) = percent else { return Ok(limit) };
    let base = old.ok_or(Refusal::PercentNeedsBase)?.base();
    let share = |is_percent: bool, amount: u64, of: u64| match is_percent {
        false => Ok(amount),
        true => u64::try_from(u128::from(of) * u128::from(amount) / 100).map_err(|_| Refusal::PercentTooLarge),
    };
    Ok(match limit {
        LimitKind::Hard { limit } => LimitKind::Hard { limit: share(percent.limit, limit, base.limit())? },
        LimitKind::Soft { limit } => LimitKind::Soft { limit: share(percent.limit, limit, base.limit())? },
        LimitKind::Burst { limit, burst_limit, burst_ttl } => LimitKind::Burst {
            limit: share(percent.limit, limit, base.limit())?,
            burst_limit: share(percent.burst_limit, burst_limit, base.highest())?,
            burst_ttl,
        },
    })
}
