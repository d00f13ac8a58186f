//! Tenants, projects, users and quotas.

use super::Draft;
use super::places::{free_name, number};
use crate::command::{PutProject, PutQuota, PutTenant, PutUser};
use crate::refusal::Refusal;
use crate::state::Tenant;
use leasehold_model::body::{
    ProjectDeleted, ProjectPut, QuotaDeleted, QuotaPut, TenantDeleted, TenantPut, UserDeleted, UserPut,
};
use leasehold_model::limits::QUOTAS_PER_TENANT_MAX;
use leasehold_model::{LimitKind, Measure, NodeScope, ProjectNo, QuotaNo, Span, TenantNo, UserNo};

impl Draft<'_> {
    /// Operators see everything; a tenant sees what is its own, and cannot tell the rest from nothing.
    fn may_see(&self, tenant: TenantNo) -> bool {
        self.identity.tenant.is_none_or(|own| own == tenant)
    }

    fn known_tenant(&self, tenant: TenantNo) -> Result<&Tenant, Refusal> {
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
        free_name(state.names.tenants.get(&put.name), number)?;
        let body = TenantPut {
            tenant,
            name: put.name.clone(),
            accounting_tag: put.accounting_tag.clone(),
            max_priority: put.max_priority,
            max_evicted_quanta_per_hour: put.max_evicted_quanta_per_hour,
        };
        self.emit(Some(tenant), body, |_| {});
        Ok(())
    }

    pub(super) fn delete_tenant(&mut self, tenant: TenantNo) -> Result<(), Refusal> {
        let found = self.known_tenant(tenant)?;
        if found.leases > 0 {
            return Err(Refusal::TenantHasLeases { tenant });
        }
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

    pub(super) fn delete_project(&mut self, project: ProjectNo) -> Result<(), Refusal> {
        let found = self.state().project(project).filter(|found| self.may_see(found.tenant));
        let found = found.ok_or(Refusal::UnknownProject { project })?;
        if found.leases > 0 {
            return Err(Refusal::ProjectHasLeases { project });
        }
        let tenant = found.tenant;
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
        self.emit(Some(tenant), UserDeleted { user }, |_| {});
        Ok(())
    }

    pub(super) fn put_quota(&mut self, put: &PutQuota) -> Result<(), Refusal> {
        self.check_scope(put)?;
        if let LimitKind::Burst { limit, burst_limit, burst_ttl } = put.limit {
            if burst_limit < limit {
                return Err(Refusal::BurstBelowBase { limit, burst_limit });
            }
            if burst_ttl == Span::ZERO {
                return Err(Refusal::ZeroBurstTtl);
            }
            if put.scope.node == NodeScope::Each {
                return Err(Refusal::BurstPerNode);
            }
        }
        let state = self.state();
        let tenant = state.tenant(put.scope.tenant).expect("it was checked");
        match put.quota {
            Some(quota) => {
                let old = state.quota(quota).filter(|old| self.may_see(old.scope.tenant));
                let old = old.ok_or(Refusal::UnknownQuota { quota })?;
                if old.scope != put.scope || old.measure != put.measure {
                    return Err(Refusal::ScopeFixed { quota });
                }
            }
            None if tenant.quotas.len() >= QUOTAS_PER_TENANT_MAX => {
                return Err(Refusal::TooManyQuotas { limit: QUOTAS_PER_TENANT_MAX });
            }
            None => {}
        }
        let quota = QuotaNo(number(put.quota.map(|q| q.0), state.quotas.len())?);
        let body = QuotaPut { quota, scope: put.scope.clone(), measure: put.measure, limit: put.limit };
        self.emit(Some(put.scope.tenant), body, |_| {});
        Ok(())
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
        if put.measure == Measure::Quanta && scope.class.is_none() {
            return Err(Refusal::QuantaNeedClass);
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
