//! Tenants, projects, users, pools, classes and quotas: when they may be created, changed and deleted.

use crate::allocation::Allocation;
use crate::heat::Heating;
use crate::lease::Lease;
use crate::violation::{Broken, Checked, demand, found};
use crate::world::{Quota, World};
use leasehold_model::body::{
    BudgetsPut, ClassPut, PlacementChanged, PoolPlacementPut, PoolPut, PoolQueuePut, ProjectPut, QuotaPut,
    SettingsChanged, TenantPut, UserPut,
};
use leasehold_model::limits::{
    HEAT_HALF_LIFE_MIN, LIMIT_SPAN_MAX, QUANTA_PER_UNIT_MAX, QUOTAS_PER_TENANT_MAX, TTL_MAX,
};
use leasehold_model::{
    ClassNo, ClassSpec, HolderScope, Instant, LimitKind, Measure, NodeScope, PoolNo, ProjectNo, QuotaNo, QuotaScope,
    Span, TenantNo, UserNo,
};
use std::collections::BTreeSet;

impl World {
    pub(crate) fn settings_changed(&mut self, settings: &SettingsChanged) -> Checked {
        let ttl = settings.ttl_max;
        demand!(ttl > Span::ZERO && ttl <= TTL_MAX, "settings", "a ttl_max of {ttl}");
        for limit in [settings.grace_default, settings.teardown_deadline, settings.node_timeout] {
            demand!(limit <= LIMIT_SPAN_MAX, "settings", "a limit of {limit}");
        }
        self.settings = settings.clone();
        Ok(())
    }

    pub(crate) fn class_put(&mut self, put: &ClassPut) -> Checked {
        let ClassPut { class, spec } = put;
        let per_unit = spec.quanta_per_unit;
        demand!((1..=QUANTA_PER_UNIT_MAX).contains(&per_unit), "class", "{per_unit} quanta per unit");
        let taken = self.classes.iter().any(|(no, other)| no != class && other.name == spec.name);
        demand!(!taken, "name-taken", "another class is called {:?}", spec.name);
        match self.classes.get(class) {
            None => self.check_new_number("class", u64::from(class.0))?,
            // The definition of a class cannot change once it is used (SEMANTICS 1).
            Some(old) if self.class_is_used(*class) => {
                let same = |a: &ClassSpec, b: &ClassSpec| a.kind == b.kind && a.quanta_per_unit == b.quanta_per_unit;
                demand!(same(old, spec), "class-in-use", "{class} is used and would become {spec:?}");
            }
            Some(_) => {}
        }
        self.take_number("class", u64::from(class.0));
        self.classes.insert(*class, spec.clone());
        Ok(())
    }

    fn class_is_used(&self, class: ClassNo) -> bool {
        self.leases.iter().any(|lease| lease.class == class)
            || self.nodes.values().any(|node| node.put.capacity.iter().any(|(c, _)| *c == class))
    }

    pub(crate) fn pool_put(&mut self, put: &PoolPut) -> Checked {
        let taken = self.pools.values().any(|other| other.pool != put.pool && other.name == put.name);
        demand!(!taken, "name-taken", "another pool is called {:?}", put.name);
        if !self.pools.contains_key(&put.pool) {
            self.check_new_number("pool", u64::from(put.pool.0))?;
        }
        self.take_number("pool", u64::from(put.pool.0));
        self.pools.insert(put.pool, put.clone());
        Ok(())
    }

    pub(crate) fn pool_placement_put(&mut self, put: &PoolPlacementPut) -> Checked {
        demand!(self.pools.contains_key(&put.pool), "unknown-pool", "there is no {}", put.pool);
        let same = self.weights.get(&put.pool).copied() == put.weights;
        demand!(!same, "placement", "{:?} are the weights of {} already", put.weights, put.pool);
        self.weights.remove(&put.pool);
        if let Some(own) = put.weights {
            let sum = own.pressure + own.fit + own.locality + own.fragmentation;
            demand!(sum == 1000, "placement", "{own:?} add up to {sum}");
            self.weights.insert(put.pool, own);
        }
        Ok(())
    }

    pub(crate) fn pool_queue_put(&mut self, put: &PoolQueuePut) -> Checked {
        demand!(self.pools.contains_key(&put.pool), "unknown-pool", "there is no {}", put.pool);
        demand!(self.pool_queue(put.pool) != put.queue, "pool-queue", "{:?} was set already", put.queue);
        self.pool_queues.insert(put.pool, put.queue);
        Ok(())
    }

    pub(crate) fn placement_changed(&mut self, changed: &PlacementChanged, stamp: Instant) -> Checked {
        let half_life = changed.heat_half_life;
        let range = HEAT_HALF_LIFE_MIN..=LIMIT_SPAN_MAX;
        demand!(range.contains(&half_life), "settings", "a heat_half_life of {half_life}");
        self.heatings.push((stamp, Heating::HalfLife(half_life)));
        Ok(())
    }

    pub(crate) fn pool_deleted(&mut self, pool: PoolNo) -> Checked {
        demand!(self.pools.contains_key(&pool), "unknown-pool", "there is no {pool}");
        let empty = self.nodes.values().all(|node| node.put.pool != pool);
        demand!(empty, "pool-has-nodes", "{pool} still has nodes");
        self.pools.remove(&pool);
        self.weights.remove(&pool);
        self.pool_queues.remove(&pool);
        Ok(())
    }

    pub(crate) fn tenant_put(&mut self, put: &TenantPut) -> Checked {
        let taken =
            self.tenants.values().any(|other| other.tenant != put.tenant && other.settings.name == put.settings.name);
        demand!(!taken, "name-taken", "another tenant is called {:?}", put.settings.name);
        if !self.tenants.contains_key(&put.tenant) {
            self.check_new_number("tenant", u64::from(put.tenant.0))?;
        }
        self.take_number("tenant", u64::from(put.tenant.0));
        self.tenants.insert(put.tenant, put.clone());
        Ok(())
    }

    /// A tenant with live leases cannot be deleted (SEMANTICS 3). Its projects, ceilings, users and quotas are deleted
    /// too.
    pub(crate) fn tenant_deleted(&mut self, tenant: TenantNo) -> Checked {
        demand!(self.tenants.contains_key(&tenant), "unknown-tenant", "there is no {tenant}");
        self.check_no_leases("tenant-has-leases", |lease| lease.tenant == tenant)?;
        let lives = self.allocations.values().find(|found| found.tenant == tenant && !found.state.is_over());
        demand!(lives.is_none(), "tenant-has-allocations", "{lives:?}");
        self.check_no_claims(|of, _, _| of == tenant)?;
        self.ledger.check_tenant_deleted(tenant, &self.projects_of(tenant))?;
        let unposted = self.projects_of(tenant).into_iter().find(|project| self.has_unposted_usage(*project));
        demand!(unposted.is_none(), "unposted-usage", "{unposted:?}");
        self.tenants.remove(&tenant);
        self.projects.retain(|_, project| project.tenant != tenant);
        self.ceilings.retain(|(project, _), _| self.projects.contains_key(project));
        self.users.retain(|_, user| user.tenant != tenant);
        self.quotas.retain(|_, quota| quota.put.scope.tenant != tenant);
        self.budgets.remove(&tenant);
        self.sinks.retain(|_, (put, _)| put.tenant != Some(tenant));
        self.apps.instances.retain(|_, (of, _)| *of != tenant);
        self.apps.attachments.retain(|_, (of, ..)| *of != tenant);
        self.drop_entitlements();
        self.drop_policies();
        Ok(())
    }

    pub(crate) fn projects_of(&self, tenant: TenantNo) -> BTreeSet<ProjectNo> {
        self.projects.values().filter(|found| found.tenant == tenant).map(|found| found.project).collect()
    }

    /// Live leases and leases that are being torn down prevent deletion; fenced leases do not.
    fn check_no_leases(&self, rule: &'static str, of: impl Fn(&Lease) -> bool) -> Checked {
        let live = self.leases.iter().find(|lease| lease.phase.counts_for_quota() && of(lease));
        match live {
            None => Ok(()),
            Some(lease) => Err(Broken { rule, detail: format!("{} is {}", lease.number, lease.phase.word()) }),
        }
    }

    pub(crate) fn project_put(&mut self, put: &ProjectPut) -> Checked {
        demand!(self.tenants.contains_key(&put.tenant), "unknown-tenant", "there is no {}", put.tenant);
        let twin =
            |other: &ProjectPut| other.tenant == put.tenant && other.project != put.project && other.name == put.name;
        demand!(!self.projects.values().any(twin), "name-taken", "another project is called {:?}", put.name);
        match self.projects.get(&put.project) {
            None => self.check_new_number("project", u64::from(put.project.0))?,
            Some(old) => demand!(old.tenant == put.tenant, "tenant-fixed", "{} would move", put.project),
        }
        self.take_number("project", u64::from(put.project.0));
        self.projects.insert(put.project, put.clone());
        Ok(())
    }

    pub(crate) fn project_deleted(&mut self, project: ProjectNo) -> Checked {
        demand!(self.projects.contains_key(&project), "unknown-project", "there is no {project}");
        let of = |holder: ProjectNo, payer: ProjectNo| holder == project || payer == project;
        self.check_no_leases("project-has-leases", |lease| of(lease.project, lease.payer))?;
        let own = |found: &&Allocation| of(found.project, found.payer());
        let lives = self.allocations.values().filter(own).find(|found| !found.state.is_over());
        demand!(lives.is_none(), "project-has-allocations", "{lives:?}");
        self.check_no_claims(|_, of, _| of == project)?;
        let (has_instances, lends) = self.ties_of(project);
        demand!(!has_instances, "project-has-app-instances", "{project}");
        demand!(!lends, "project-has-attachments", "{project}");
        self.ledger.check_project_deleted(project)?;
        demand!(!self.has_unposted_usage(project), "unposted-usage", "{project}");
        self.projects.remove(&project);
        self.ceilings.retain(|(of, _), _| *of != project);
        self.quotas.retain(|_, quota| quota.put.scope.project != Some(project));
        self.drop_entitlements();
        Ok(())
    }

    pub(crate) fn user_put(&mut self, put: &UserPut) -> Checked {
        demand!(self.tenants.contains_key(&put.tenant), "unknown-tenant", "there is no {}", put.tenant);
        let twin = |other: &UserPut| other.tenant == put.tenant && other.user != put.user && other.name == put.name;
        demand!(!self.users.values().any(twin), "name-taken", "another user is called {:?}", put.name);
        match self.users.get(&put.user) {
            None => self.check_new_number("user", u64::from(put.user.0))?,
            Some(old) => demand!(old.tenant == put.tenant, "tenant-fixed", "{} would move", put.user),
        }
        self.take_number("user", u64::from(put.user.0));
        self.users.insert(put.user, put.clone());
        Ok(())
    }

    pub(crate) fn user_deleted(&mut self, user: UserNo) -> Checked {
        self.check_no_claims(|_, _, of| of == user)?;
        demand!(self.users.remove(&user).is_some(), "unknown-user", "there is no {user}");
        self.quotas.retain(|_, quota| quota.put.scope.further.user != Some(HolderScope::One(user)));
        Ok(())
    }

    /// A new quota counts existing leases; a lower limit does not end leases (SEMANTICS 4). Bursts are updated after
    /// every record, this one included.
    pub(crate) fn quota_put(&mut self, put: &QuotaPut) -> Checked {
        self.check_limit(put)?;
        let may_evict = !put.evict_own_lower || crate::foretell_quota::may_evict_own(put);
        demand!(may_evict, "quota-evicts", "{} cannot evict", put.quota);
        let (episode, beyond) = match self.quotas.get(&put.quota) {
            Some(old) => {
                let same = old.put.scope == put.scope && old.put.measure == put.measure;
                demand!(same, "scope-fixed", "{} would count something else", put.quota);
                (old.episode, old.beyond.clone())
            }
            None => {
                self.check_scope(&put.scope)?;
                self.check_new_number("quota", u64::from(put.quota.0))?;
                let count = self.quotas.values().filter(|q| q.put.scope.tenant == put.scope.tenant).count();
                demand!(count < QUOTAS_PER_TENANT_MAX, "quota-count", "{count} quotas of {}", put.scope.tenant);
                demand!(put.temporary.is_none(), "quota-until", "a new quota has a base limit only");
                (None, Vec::new())
            }
        };
        self.take_number("quota", u64::from(put.quota.0));
        self.quotas.insert(put.quota, Quota { put: put.clone(), episode, beyond });
        Ok(())
    }

    fn check_limit(&self, put: &QuotaPut) -> Checked {
        let of_kind = put.scope.further.kind.is_some();
        let names_class = put.measure != Measure::Quanta || put.scope.class.is_some() || of_kind;
        demand!(!of_kind || put.scope.class.is_none(), "quota-limit", "a class and a kind");
        let names_priority = put.scope.priority.is_some() || !put.scope.further.and_above;
        demand!(names_priority, "quota-limit", "no lowest priority");
        demand!(names_class, "quota-limit", "quanta of different classes do not add up");
        let counts_nodes_one_by_one = put.measure == Measure::Nodes && put.scope.node == NodeScope::Each;
        demand!(!counts_nodes_one_by_one, "quota-limit", "nodes are counted together");
        let of_places =
            put.scope.class.is_some() || of_kind || put.scope.pool.is_some() || put.scope.node != NodeScope::All;
        let counts_allocations_somewhere = put.measure == Measure::Allocations && of_places;
        demand!(!counts_allocations_somewhere, "quota-limit", "allocations are counted whole");
        let temporary = put.temporary.map(|temporary| temporary.limit);
        for limit in [Some(put.limit), temporary].into_iter().flatten() {
            let LimitKind::Burst { limit, burst_limit, burst_ttl } = limit else { continue };
            let further = &put.scope.further;
            let each = further.user == Some(HolderScope::Each) || further.app_instance == Some(HolderScope::Each);
            demand!(!each, "quota-limit", "a burst for each holder on its own");
            demand!(burst_limit >= limit, "quota-limit", "burst limit {burst_limit} below the base {limit}");
            demand!(burst_ttl > Span::ZERO, "quota-limit", "a burst of no length");
            demand!(put.scope.node != NodeScope::Each, "quota-limit", "a burst for each node on its own");
        }
        Ok(())
    }

    fn check_scope(&self, scope: &QuotaScope) -> Checked {
        demand!(self.tenants.contains_key(&scope.tenant), "unknown-tenant", "there is no {}", scope.tenant);
        if let Some(project) = scope.project {
            let own = self.projects.get(&project).is_some_and(|p| p.tenant == scope.tenant);
            demand!(own, "unknown-project", "{} has no {project}", scope.tenant);
        }
        if let Some(HolderScope::One(user)) = scope.further.user {
            let own = self.users.get(&user).is_some_and(|found| found.tenant == scope.tenant);
            demand!(own, "unknown-user", "{} has no {user}", scope.tenant);
        }
        if let Some(HolderScope::One(app)) = scope.further.app_instance {
            let foreign = self.is_foreign(scope.tenant, app);
            demand!(!foreign, "unknown-app-instance", "{} has no {app}", scope.tenant);
        }
        if let Some(class) = scope.class {
            demand!(self.classes.contains_key(&class), "unknown-class", "there is no {class}");
        }
        if let Some(pool) = scope.pool {
            demand!(self.pools.contains_key(&pool), "unknown-pool", "there is no {pool}");
        }
        if let NodeScope::One(node) = scope.node {
            demand!(self.nodes.contains_key(&node), "unknown-node", "there is no {node}");
        }
        Ok(())
    }

    pub(crate) fn budgets_put(&mut self, put: &BudgetsPut) -> Checked {
        demand!(self.tenants.contains_key(&put.tenant), "unknown-tenant", "there is no {}", put.tenant);
        self.budgets.insert(put.tenant, put.budgets.clone());
        Ok(())
    }

    pub(crate) fn quota_deleted(&mut self, quota: QuotaNo) -> Checked {
        demand!(self.quotas.remove(&quota).is_some(), "unknown-quota", "there is no {quota}");
        Ok(())
    }

    /// The burst ended; whether it was due is checked as a timer.
    /// The base limit applies again.
    pub(crate) fn until_reached(&mut self, quota: QuotaNo) -> Checked {
        let known = found!(self.quotas.get_mut(&quota), "unknown-quota", "there is no {quota}");
        demand!(known.put.temporary.take().is_some(), "quota-until", "{quota} has no temporary limit");
        Ok(())
    }

    pub(crate) fn burst_ended(&mut self, quota: QuotaNo) -> Checked {
        let known = self.quotas.get_mut(&quota);
        found!(known, "unknown-quota", "there is no {quota}").episode = None;
        Ok(())
    }
}
