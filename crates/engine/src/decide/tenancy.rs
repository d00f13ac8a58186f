//! Commands about tenants, projects and users.

use super::Draft;
use super::inventory::{free_name, number};
use crate::command::{PutProject, PutTenant, PutUser, SetPoolAccess, UpdateTenant};
use crate::refusal::Refusal;
use crate::state::Tenant;
use leasehold_model::body::{
    Body, BudgetsPut, ProjectDeleted, ProjectPoolPut, ProjectPut, QuotaDeleted, QuotaPut, TenantDeleted, TenantPut,
    UserDeleted, UserPut,
};
use leasehold_model::limits::{BUDGET_DAYS_MAX, BUDGET_HOURS_MAX, QUOTAS_PER_TENANT_MAX};
use leasehold_model::{Budgets, LimitKind, Measure, ProjectNo, QuotaNo, QuotaScope, TenantNo, UserNo};

impl Draft<'_> {
    /// Operators see everything. A tenant sees only what belongs to it; everything else is answered as unknown.
    pub(super) fn may_see(&self, tenant: TenantNo) -> bool {
        self.identity.tenant.is_none_or(|own| own == tenant)
    }

    pub(super) fn known_tenant(&self, tenant: TenantNo) -> Result<&Tenant, Refusal> {
        let found = self.state().tenant(tenant).filter(|_| self.may_see(tenant));
        found.ok_or(Refusal::UnknownTenant { tenant })
    }

    pub(super) fn put_tenant(&mut self, put: &PutTenant) -> Result<(), Refusal> {
        let state = self.state();
        let number = number(put.tenant.map(|t| t.0), state.tenants.len())?;
        let tenant = TenantNo(number);
        if put.tenant.is_some() {
            self.known_tenant(tenant)?;
        }
        free_name(state.names.tenants.get(&put.settings.name), number)?;
        self.emit(Some(tenant), TenantPut { tenant, settings: put.settings.clone() }, |_| {});
        Ok(())
    }

    /// Makes all changes of an update or none: everything that can be refused is checked before the first record.
    pub(super) fn update_tenant(&mut self, update: &UpdateTenant) -> Result<(), Refusal> {
        let state = self.state();
        let tenant = update.tenant;
        let old = self.known_tenant(tenant)?;
        let settings = update.settings.applied_to(&old.settings);
        free_name(state.names.tenants.get(&settings.name), tenant.0)?;
        let quotas = self.tenant_limits(update, old)?;
        let budgets = Self::budgets(update, old)?;
        // An update without changes is recorded, too, because every answer refers to a record.
        if !update.settings.is_empty() || quotas.is_empty() && budgets.is_none() {
            self.emit(Some(tenant), TenantPut { tenant, settings }, |_| {});
        }
        for quota in quotas {
            self.emit(Some(tenant), quota, |_| {});
        }
        if let Some(budgets) = budgets {
            self.emit(Some(tenant), BudgetsPut { tenant, budgets }, |_| {});
        }
        Ok(())
    }

    /// The tenant's budgets after the update, if it changes any.
    fn budgets(update: &UpdateTenant, tenant: &Tenant) -> Result<Option<Budgets>, Refusal> {
        let given = [
            update.gpu_hours_budget,
            update.node_hours_budget,
            update.budget_period_days,
            update.fair_share_target,
            update.burst_allowance,
            update.max_pending,
        ];
        if given.iter().all(Option::is_none) {
            return Ok(None);
        }
        let old = &tenant.budgets;
        let hours = |field, given: Option<Option<u64>>, old: Option<u64>| match given.unwrap_or(old) {
            Some(hours) if hours == 0 || hours > BUDGET_HOURS_MAX => {
                Err(Refusal::BadBudget { field, min: 1, max: BUDGET_HOURS_MAX })
            }
            kept => Ok(kept),
        };
        let small = |field, given: Option<Option<u64>>, old: Option<u32>, max: u32| match given {
            None => Ok(old),
            Some(None) => Ok(None),
            Some(Some(value)) => match u32::try_from(value) {
                Ok(value @ 1..) if value <= max => Ok(Some(value)),
                _ => Err(Refusal::BadBudget { field, min: 1, max: u64::from(max) }),
            },
        };
        let days = small("budget_period_days", update.budget_period_days, Some(old.period_days), BUDGET_DAYS_MAX)?;
        Ok(Some(Budgets {
            gpu_hours: hours("gpu_hours_budget", update.gpu_hours_budget, old.gpu_hours)?,
            node_hours: hours("node_hours_budget", update.node_hours_budget, old.node_hours)?,
            period_days: days.unwrap_or(Budgets::NONE.period_days),
            fair_share: small("fair_share_target", update.fair_share_target, old.fair_share, 1000)?,
            burst_allowance: hours("burst_allowance", update.burst_allowance, old.burst_allowance)?,
            max_pending: update.max_pending.unwrap_or(old.max_pending),
        }))
    }

    /// The records that turn the limits of an update into quotas of the whole tenant.
    fn tenant_limits(&self, update: &UpdateTenant, tenant: &Tenant) -> Result<Vec<Body>, Refusal> {
        let state = self.state();
        let scope = QuotaScope::of_tenant(update.tenant);
        let mut kept = tenant.quotas.len();
        let mut made = 0;
        let mut records = Vec::new();
        let limits = [
            (Measure::Nodes, update.max_nodes),
            (Measure::Leases, update.max_leases),
            (Measure::Allocations, update.max_concurrent_allocations),
        ];
        for (measure, change) in limits {
            let Some(limit) = change else { continue };
            let mut found = tenant.quotas.iter().filter_map(|quota| state.quota(*quota));
            let found = found.find(|quota| quota.scope == scope && quota.measure == measure).map(|quota| quota.number);
            let quota = match (found, limit) {
                (Some(quota), None) => {
                    kept -= 1;
                    records.push(QuotaDeleted { quota }.into());
                    continue;
                }
                (None, None) => continue,
                (Some(quota), Some(_)) => quota,
                (None, Some(_)) if kept >= QUOTAS_PER_TENANT_MAX => {
                    return Err(Refusal::TooManyQuotas { limit: QUOTAS_PER_TENANT_MAX });
                }
                (None, Some(_)) => {
                    let quota = QuotaNo(number(None, state.quotas.len() + made)?);
                    kept += 1;
                    made += 1;
                    quota
                }
            };
            let put = |limit| QuotaPut {
                quota,
                scope: scope.clone(),
                measure,
                limit: LimitKind::Hard { limit },
                temporary: None,
                evict_own_lower: state.quota(quota).is_some_and(|old| old.evict_own_lower),
            };
            records.extend(limit.map(|limit| put(limit).into()));
        }
        Ok(records)
    }

    pub(super) fn delete_tenant(&mut self, tenant: TenantNo) -> Result<(), Refusal> {
        let found = self.known_tenant(tenant)?;
        if found.leases > 0 {
            return Err(Refusal::TenantHasLeases { tenant });
        }
        if self.state().has_allocations(|allocation| allocation.tenant == tenant) {
            return Err(Refusal::TenantHasAllocations { tenant });
        }
        if self.state().has_claims(|claim| claim.by.tenant == tenant) {
            return Err(Refusal::TenantHasClaims { tenant });
        }
        self.check_tenant_owes_nothing(tenant)?;
        self.emit(Some(tenant), TenantDeleted { tenant }, |_| {});
        Ok(())
    }

    pub(super) fn put_project(&mut self, put: &PutProject) -> Result<(), Refusal> {
        let state = self.state();
        let tenant = put.tenant;
        self.known_tenant(tenant)?;
        let number = number(put.project.map(|p| p.0), state.projects.len())?;
        let project = ProjectNo(number);
        if put.project.is_some() {
            let old = state.project(project).filter(|old| self.may_see(old.tenant));
            let old = old.ok_or(Refusal::UnknownProject { project })?;
            if old.tenant != tenant {
                return Err(Refusal::TenantFixed);
            }
        }
        free_name(state.names.projects.get(&(tenant, put.name.clone())), number)?;
        self.emit(Some(tenant), ProjectPut { project, tenant, name: put.name.clone() }, |_| {});
        Ok(())
    }

    /// Sets how the work of a project is admitted to a pool.
    pub(super) fn set_pool_access(&mut self, set: &SetPoolAccess) -> Result<(), Refusal> {
        let (project, pool, access) = (set.project, set.pool, set.access);
        let found = self.state().project(project).filter(|found| self.may_see(found.tenant));
        let tenant = found.ok_or(Refusal::UnknownProject { project })?.tenant;
        self.state().pool(pool).ok_or(Refusal::UnknownPool { pool })?;
        self.emit(Some(tenant), ProjectPoolPut { project, pool, access }, |_| {});
        Ok(())
    }

    pub(super) fn delete_project(&mut self, project: ProjectNo) -> Result<(), Refusal> {
        let found = self.state().project(project).filter(|found| self.may_see(found.tenant));
        let found = found.ok_or(Refusal::UnknownProject { project })?;
        if found.leases > 0 {
            return Err(Refusal::ProjectHasLeases { project });
        }
        if self.state().has_allocations(|allocation| allocation.project == project || allocation.payer == project) {
            return Err(Refusal::ProjectHasAllocations { project });
        }
        if self.state().has_claims(|claim| claim.project == project) {
            return Err(Refusal::ProjectHasClaims { project });
        }
        if self.state().app_instances_after(None).any(|instance| instance.project == project) {
            return Err(Refusal::ProjectHasAppInstances { project });
        }
        if self.state().attachments_after(None).any(|attachment| attachment.source_project == project) {
            return Err(Refusal::ProjectHasAttachments { project });
        }
        let tenant = found.tenant;
        self.check_project_owes_nothing(project)?;
        self.emit(Some(tenant), ProjectDeleted { project }, |_| {});
        Ok(())
    }

    pub(super) fn put_user(&mut self, put: &PutUser) -> Result<(), Refusal> {
        let state = self.state();
        let tenant = put.tenant;
        self.known_tenant(tenant)?;
        let number = number(put.user.map(|u| u.0), state.users.len())?;
        let user = UserNo(number);
        if put.user.is_some() {
            let old = state.user(user).filter(|old| self.may_see(old.tenant));
            let old = old.ok_or(Refusal::UnknownUser { user })?;
            if old.tenant != tenant {
                return Err(Refusal::TenantFixed);
            }
        }
        free_name(state.names.users.get(&(tenant, put.name.clone())), number)?;
        self.emit(Some(tenant), UserPut { user, tenant, name: put.name.clone() }, |_| {});
        Ok(())
    }

    pub(super) fn delete_user(&mut self, user: UserNo) -> Result<(), Refusal> {
        let found = self.state().user(user).filter(|found| self.may_see(found.tenant));
        let found = found.ok_or(Refusal::UnknownUser { user })?;
        let tenant = found.tenant;
        if self.state().has_claims(|claim| claim.by.user == user) {
            return Err(Refusal::UserHasClaims { user });
        }
        self.emit(Some(tenant), UserDeleted { user }, |_| {});
        Ok(())
    }
}
