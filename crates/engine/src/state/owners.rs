//! Folding the records of pools, tenants, quotas and tokens.

use super::fold::put;
use super::{Pool, State, Tenant, entry, entry_mut};
use crate::claims::ClaimedNode;
use crate::follow::Follower;
use crate::lease::Phase;
use crate::prepaid::PrepaidScope;
use crate::quota::Quota;
use crate::timer::Entry;
use crate::token::Token;
use leasehold_model::body::{PoolPut, PoolQueue, QuotaPut, TenantPut, TokenIssued};
use leasehold_model::{Budgets, Instant, Name, QuotaNo};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_pool(&mut self, put_pool: &PoolPut, to: &mut impl Follower) -> Folded {
        let number = put_pool.pool.0;
        let (nodes, gpu_nodes, weights, queue) = match self.pools.get_mut(number as usize).and_then(Option::take) {
            Some(old) => {
                self.names.pools.remove(&old.name);
                self.change_lifetimes(put_pool.pool, &old.lifetime_max, &put_pool.lifetime_max);
                (old.nodes, old.gpu_nodes, old.weights, old.queue)
            }
            None => (0, 0, None, PoolQueue::default()),
        };
        self.names.pools.insert(put_pool.name.clone(), number);
        to.recheck_queue();
        let pool = Pool {
            name: put_pool.name.clone(),
            strategy: put_pool.strategy,
            ttl_max: put_pool.ttl_max,
            lifetime_max: put_pool.lifetime_max,
            grace: put_pool.grace,
            nodes,
            gpu_nodes,
            weights,
            queue,
        };
        put(&mut self.pools, number, pool)
    }

    pub(super) fn fold_tenant(&mut self, t: &TenantPut, to: &mut impl Follower) -> Folded {
        let tag = t.settings.accounting_tag.as_ref().map(|tag| self.tag_number(tag));
        let (quotas, leases, evictions, budgets, spent) =
            match self.tenants.get_mut(t.tenant.0 as usize).and_then(Option::take) {
                Some(old) => {
                    self.names.tenants.remove(&old.settings.name);
                    // Allocations that wait for the eviction limit may start now, or the other way round.
                    if old.settings.max_evicted_quanta_per_hour != t.settings.max_evicted_quanta_per_hour {
                        to.recheck_queue();
                    }
                    (old.quotas, old.leases, old.evictions, old.budgets, old.spent)
                }
                None => (Vec::new(), 0, Vec::new(), Budgets::NONE, Box::default()),
            };
        self.names.tenants.insert(t.settings.name.clone(), t.tenant.0);
        let tenant =
            Tenant { number: t.tenant, settings: t.settings.clone(), tag, quotas, leases, evictions, budgets, spent };
        put(&mut self.tenants, t.tenant.0, tenant)?;
        self.regroup(t.tenant, to);
        Ok(())
    }

    /// Tags are few and are never removed, because leases keep the tag under which they were granted.
    pub(super) fn tag_number(&mut self, tag: &Name) -> u32 {
        let place = self.tags.iter().position(|known| known == tag).unwrap_or_else(|| {
            self.tags.push(tag.clone());
            self.tags.len() - 1
        });
        u32::try_from(place).expect("fewer than 2^32 tags")
    }

    /// Deleting a tenant deletes its projects with their ceilings, its users and its quotas.
    pub(super) fn fold_tenant_deleted(&mut self, number: u32) -> Folded {
        let tenant = self.tenants.get_mut(number as usize).and_then(Option::take).ok_or("no such tenant")?;
        self.names.tenants.remove(&tenant.settings.name);
        for quota in &tenant.quotas {
            self.quotas[quota.0 as usize] = None;
        }
        for project in &mut self.projects {
            if let Some(gone) = project.take_if(|p| p.tenant == tenant.number) {
                self.names.projects.remove(&(gone.tenant, gone.name));
            }
        }
        self.apps.forget_tenant(tenant.number);
        self.drop_limits_of(tenant.number);
        self.drop_sinks_of(tenant.number);
        let projects = &self.projects;
        self.ceilings.retain(|ceiling| entry(projects, ceiling.scope.project.0).is_some());
        self.prepaids.retain(|scope| match scope {
            PrepaidScope::Tenant(of) => of != tenant.number,
            PrepaidScope::Project(of) => entry(projects, of.0).is_some(),
        });
        for user in &mut self.users {
            if let Some(gone) = user.take_if(|u| u.tenant == tenant.number) {
                self.names.users.remove(&(gone.tenant, gone.name));
            }
        }
        Ok(())
    }

    pub(super) fn drop_quotas_of(&mut self, gone: impl Fn(&Quota) -> bool, to: &mut impl Follower) {
        for place in 0..self.quotas.len() {
            let Some(quota) = self.quotas[place].take_if(|quota| gone(quota)) else { continue };
            to.headroom(self, quota.scope.tenant);
            if let Some(tenant) = entry_mut(&mut self.tenants, quota.scope.tenant.0) {
                tenant.quotas.retain(|q| *q != quota.number);
                self.regroup(quota.scope.tenant, to);
                to.standings_changed();
            }
        }
    }

    pub(super) fn fold_quota(&mut self, q: &QuotaPut, stamp: Instant, to: &mut impl Follower) -> Folded {
        let number = q.quota;
        if let Some(quota) = entry_mut(&mut self.quotas, number.0) {
            quota.settle_overage(stamp);
            quota.put_limits(q);
            quota.settle_episode(stamp);
            let due = quota.episode_due();
            self.regroup(q.scope.tenant, to);
            to.standings_changed();
            to.headroom(self, q.scope.tenant);
            q.temporary.iter().for_each(|temporary| to.comes_due(Entry::quota_until(number, temporary.until)));
            due.into_iter().for_each(|due| to.comes_due(Entry::burst(number, due)));
            return Ok(());
        }
        let tenant = entry_mut(&mut self.tenants, q.scope.tenant.0).ok_or("no such tenant")?;
        tenant.quotas.push(number);
        let mut quota = Quota::new(q);
        quota.set_per_unit(self.parts_counted(&quota));
        for lease in self.leases.in_order() {
            if lease.tenant == q.scope.tenant && lease.phase != Phase::Fenced && !self.is_counted_by_claim(lease) {
                quota.count(lease, &self.facts_of(lease), true, stamp);
            }
        }
        for allocation in self.allocations.live.values().filter(|a| a.tenant == q.scope.tenant && a.state.is_placed()) {
            quota.count_allocation(allocation, true, stamp);
        }
        let of_tenant = |claimed: &ClaimedNode| claimed.claim.by.tenant == q.scope.tenant;
        for claimed in self.nodes().filter_map(|node| self.claimed_node(node.number)).filter(of_tenant) {
            quota.tally_claim(&self.facts_of_claim(&claimed), true);
        }
        quota.settle_episode(stamp);
        if self.counts_overage() {
            quota.begin_overage(stamp);
        }
        quota.marks = crate::quota::MinuteMarks::default();
        put(&mut self.quotas, number.0, quota)?;
        self.regroup(q.scope.tenant, to);
        to.standings_changed();
        Ok(())
    }

    /// Whether the overage of soft quotas is counted: since rules version 4.
    fn counts_overage(&self) -> bool {
        self.rules_version.is_some_and(|version| version >= 4)
    }

    /// Starts counting the overage of all quotas, once the rules say so.
    pub(super) fn begin_overages(&mut self, stamp: Instant) {
        if self.counts_overage() {
            self.quotas.iter_mut().flatten().for_each(|quota| quota.begin_overage(stamp));
        }
    }

    /// The parts of a billing unit in which a quota counts.
    fn parts_counted(&self, quota: &Quota) -> u64 {
        quota.scope.further.kind.and_then(|kind| self.parts_per_unit(kind)).unwrap_or(1)
    }

    /// Whether all quotas count in the right parts; snapshots are checked with it.
    pub(crate) fn counts_in_right_parts(&self) -> bool {
        self.quotas().all(|quota| quota.per_unit == self.parts_counted(quota))
    }

    /// Sets the parts in which quotas on a kind count, after the classes of that kind have changed.
    pub(super) fn set_parts_counted(&mut self) {
        for place in 0..self.quotas.len() {
            let Some(quota) = &self.quotas[place] else { continue };
            let parts = self.parts_counted(quota);
            if let Some(quota) = self.quotas[place].as_mut().filter(|quota| quota.per_unit != parts) {
                quota.set_per_unit(parts);
            }
        }
    }

    pub(super) fn fold_until_reached(&mut self, number: QuotaNo, stamp: Instant, to: &mut impl Follower) -> Folded {
        let quota = entry_mut(&mut self.quotas, number.0).ok_or("no such quota")?;
        if quota.temporary.is_none() {
            return Err("the quota has no temporary limit");
        }
        quota.settle_overage(stamp);
        quota.end_temporary();
        quota.settle_episode(stamp);
        let (tenant, due) = (quota.scope.tenant, quota.episode_due());
        self.regroup(tenant, to);
        to.standings_changed();
        to.headroom(self, tenant);
        due.into_iter().for_each(|due| to.comes_due(Entry::burst(number, due)));
        Ok(())
    }

    pub(super) fn fold_token(&mut self, issued: &TokenIssued, stamp: Instant) -> Folded {
        if issued.scope.tenant.is_some_and(|tenant| self.tenant(tenant).is_none()) {
            return Err("a token for a tenant that does not exist");
        }
        self.tokens.sweep(stamp);
        self.tokens.insert(Token {
            number: issued.token,
            name: issued.name.clone(),
            hash: issued.hash,
            role: issued.role,
            scope: issued.scope.clone(),
            expires_at: issued.expires_at,
        })
    }
}
