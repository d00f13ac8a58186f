//! Tokens: issued, revoked, and asked for before anything else is.

use super::Draft;
use super::inventory::number;
use crate::command::IssueToken;
use crate::refusal::Refusal;
use leasehold_model::body::{TokenIssued, TokenRevoked};
use leasehold_model::limits::APP_INSTANCES_PER_TOKEN_MAX;
use leasehold_model::{Role, TokenNo, TokenScope};

/// Roles that a tenant may hand out and take back within itself.
const fn is_tenants_own(role: Role) -> bool {
    matches!(role, Role::TenantAdmin | Role::ProjectMember | Role::AppOperator)
}

/// What each role must and may be confined to.
fn check_shape(role: Role, scope: &TokenScope) -> Result<(), &'static str> {
    let demand = |holds: bool, why| if holds { Ok(()) } else { Err(why) };
    let (tenant, project) = (scope.tenant.is_some(), scope.project.is_some());
    let (user, node, apps) = (scope.user.is_some(), scope.node.is_some(), !scope.app_instances.is_empty());
    match role {
        Role::Operator | Role::Auditor => {
            demand(!tenant && !project && !user && !node && !apps, "is not confined to anything; leave the scope empty")
        }
        Role::TenantAdmin => {
            demand(tenant, "names its tenant")?;
            demand(!project && !node && !apps, "names a tenant and at most a user of it")
        }
        Role::ProjectMember => {
            demand(tenant && project, "names its tenant and its project")?;
            demand(!node && !apps, "names a tenant, a project and at most a user")
        }
        Role::NodeAgent => {
            demand(node, "names its node")?;
            demand(!tenant && !project && !user && !apps, "names a node and nothing else")
        }
        Role::AppOperator => {
            demand(tenant && apps, "names its tenant and at least one app instance")?;
            demand(!project && !user && !node, "names a tenant and app instances, nothing else")
        }
        Role::BillingAuthority => demand(!project && !user && !node && !apps, "names a tenant or nothing"),
    }
}

impl Draft<'_> {
    pub(super) fn issue_token(&mut self, issue: &IssueToken) -> Result<(), Refusal> {
        let role = issue.role;
        let bad = |why| Refusal::BadTokenScope { role, why };
        let mut scope = issue.scope.clone();
        if self.identity.tenant.is_some() {
            if !is_tenants_own(role) {
                return Err(bad(NOT_A_TENANTS));
            }
            if scope.tenant != self.identity.tenant {
                return Err(bad("that a tenant issues is confined to that tenant"));
            }
        }
        check_shape(role, &scope).map_err(bad)?;
        if scope.app_instances.len() > APP_INSTANCES_PER_TOKEN_MAX {
            return Err(bad(TOO_MANY_APPS));
        }
        scope.app_instances.sort_unstable();
        if scope.app_instances.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(bad("names an app instance once"));
        }
        self.check_token_scope(&scope)?;
        if issue.expires_at.is_some_and(|at| at <= self.now) {
            return Err(Refusal::TokenExpiryPast { now: self.now });
        }
        let tokens = &self.state().tokens;
        let taken_by = tokens.by_hash(&issue.hash).and_then(|no| tokens.get(no));
        if taken_by.is_some_and(|token| !token.is_expired(self.now)) {
            return Err(Refusal::TokenExists);
        }
        if let Some((of, limit)) = tokens.full(scope.tenant, self.now) {
            return Err(Refusal::TooManyTokens { of, limit });
        }
        let token = TokenNo(number(None, tokens.rows().len())?);
        let (name, hash, expires_at) = (issue.name.clone(), issue.hash, issue.expires_at);
        self.emit(scope.tenant, TokenIssued { token, name, hash, role, scope, expires_at }, |_| {});
        Ok(())
    }

    /// What the scope names exists, and is the tenant's.
    fn check_token_scope(&self, scope: &TokenScope) -> Result<(), Refusal> {
        let state = self.state();
        if let Some(tenant) = scope.tenant {
            self.known_tenant(tenant)?;
        }
        if let Some(project) = scope.project
            && state.project(project).is_none_or(|found| Some(found.tenant) != scope.tenant)
        {
            return Err(Refusal::UnknownProject { project });
        }
        if let Some(user) = scope.user
            && state.user(user).is_none_or(|found| Some(found.tenant) != scope.tenant)
        {
            return Err(Refusal::UnknownUser { user });
        }
        match scope.node {
            Some(node) if state.node(node).is_none() => Err(Refusal::UnknownNode { node }),
            _ => Ok(()),
        }
    }

    /// A token may be revoked while it lives and after what it was for is gone, not after it expired.
    pub(super) fn revoke_token(&mut self, token: TokenNo) -> Result<(), Refusal> {
        let own = |of| self.identity.tenant.is_none() || of == self.identity.tenant;
        let found = self.state().token(token).filter(|found| !found.is_expired(self.now) && own(found.scope.tenant));
        let found = found.ok_or(Refusal::UnknownToken { token })?;
        if self.identity.tenant.is_some() && !is_tenants_own(found.role) {
            return Err(Refusal::BadTokenScope { role: found.role, why: NOT_A_TENANTS });
        }
        let tenant = found.scope.tenant;
        self.emit(tenant, TokenRevoked { token }, |_| {});
        Ok(())
    }
}

const NOT_A_TENANTS: &str = "is issued and revoked by an operator, not by a tenant";
pub(crate) const TOO_MANY_APPS: &str = "names at most 64 app instances";
