//! Which work waits behind that of others of its priority, and which is not admitted at all (SEMANTICS 11 "Quotas").

use crate::queue::minute_of;
use crate::quota::{Demand, Who};
use crate::violation::{Checked, demand};
use crate::world::{Quota, World};
use leasehold_model::body::ProjectPoolPut;
use leasehold_model::{Fraction, Instant, LimitKind, NodeNo, NodeScope, PoolAccess, PoolNo, QuotaNo};
use std::collections::BTreeMap;

/// What the holders of quotas used, in billing units or counts.
pub(crate) type MinuteUse = BTreeMap<QuotaNo, BTreeMap<Who, Fraction>>;

impl World {
    pub(crate) fn project_pool_put(&mut self, put: &ProjectPoolPut) -> Checked {
        demand!(self.projects.contains_key(&put.project), "unknown-project", "there is no {}", put.project);
        demand!(self.pools.contains_key(&put.pool), "unknown-pool", "there is no {}", put.pool);
        self.pool_access.insert((put.project, put.pool), put.access);
        Ok(())
    }

    fn access(&self, demand: &Demand, pool: PoolNo) -> PoolAccess {
        self.pool_access.get(&(demand.project, pool)).copied().unwrap_or(PoolAccess::Normal)
    }

    pub(crate) fn is_paused(&self, demand: &Demand, pool: PoolNo) -> bool {
        self.access(demand, pool) == PoolAccess::Paused
    }

    /// Whether all pools that the work may use have this access; there must be one.
    fn has_everywhere(&self, demand: &Demand, pool: Option<PoolNo>, access: PoolAccess) -> bool {
        let named = demand.node.and_then(|node| self.nodes.get(&node)).map(|node| node.put.pool).or(pool);
        let pools: Vec<PoolNo> =
            self.pools.keys().copied().filter(|own| named.is_none_or(|pool| pool == *own)).collect();
        !pools.is_empty() && pools.iter().all(|pool| self.access(demand, *pool) == access)
    }

    pub(crate) fn is_paused_everywhere(&self, demand: &Demand, pool: Option<PoolNo>) -> bool {
        self.has_everywhere(demand, pool, PoolAccess::Paused)
    }

    /// Whether it waits behind others of its priority.
    pub(crate) fn is_lowered(&self, demand: &Demand, pool: Option<PoolNo>, now: Instant) -> bool {
        let named = demand.node.and_then(|node| self.nodes.get(&node)).map(|node| node.put.pool).or(pool);
        let over_soft = |(number, quota): (&QuotaNo, &Quota)| {
            let LimitKind::Soft { limit } = quota.limit() else { return false };
            let scope = &quota.put.scope;
            let inside = scope.node == NodeScope::All && (scope.pool.is_none() || scope.pool == named);
            let place = scope.pool.map(|pool| (pool, NodeNo(u32::MAX)));
            let used = || self.used_at_minute(*number, quota, demand.who, now);
            inside && self.counts(quota, demand, place) && used().exceeds(limit)
        };
        self.has_everywhere(demand, pool, PoolAccess::Deprioritised) || self.quotas.iter().any(over_soft)
    }

    fn use_of(&self, quota: &Quota, who: Who) -> Fraction {
        Fraction::new(self.used(quota, None, who), self.unit_parts(quota))
    }

    /// What a holder used at the last whole minute; since the last change of the limits, if that was later.
    fn used_at_minute(&self, number: QuotaNo, quota: &Quota, who: Who, now: Instant) -> Fraction {
        let who = quota.counted_as(who);
        let (minute, used) = &self.minute_use;
        match used.get(&number).filter(|_| *minute == minute_of(now)) {
            Some(used) => used.get(&who).copied().unwrap_or(Fraction::new(0, 1)),
            None => self.use_of(quota, who),
        }
    }

    fn use_of_all(&self, quota: &Quota) -> BTreeMap<Who, Fraction> {
        self.everybody(quota).into_iter().map(|who| (who, self.use_of(quota, who))).collect()
    }

    /// Before each record: writes down what was used when its minute began.
    pub(crate) fn begin_minute(&mut self, stamp: Instant) {
        let minute = minute_of(stamp);
        if self.minute_use.0 != minute {
            let all = self.quotas.iter().map(|(number, quota)| (*number, self.use_of_all(quota))).collect();
            self.minute_use = (minute, all);
        }
    }

    /// After a change of its limits a quota begins anew.
    pub(crate) fn mark_again(&mut self, number: QuotaNo) {
        let Some(quota) = self.quotas.get(&number) else { return };
        let used = self.use_of_all(quota);
        self.minute_use.1.insert(number, used);
    }
}
