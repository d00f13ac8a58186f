//! Commands about tokens: issue and revoke.

use super::Draft;
use super::inventory::number;
use crate::command::IssueToken;
use crate::refusal::Refusal;
use leasehold_model::body::{TokenIssued, TokenRevoked};
use leasehold_model::limits::APP_INSTANCES_PER_TOKEN_MAX;
use leasehold_model::{Role, TokenNo, TokenScope};

/// Roles of tokens that a tenant may issue and revoke itself.
const fn may_be_issued_by_tenant(role: Role) -> bool {
    matches!(role, Role::TenantAdmin | Role::ProjectMember | Role::AppOperator)
}

/// The scopes that each role needs and may have.
fn check_scope_of_role(role: Role, scope: &TokenScope) -> Result<(), &'static str> {
    let demand = |holds: bool, why| if holds { Ok(()) } else { Err(why) };
    let (tenant, project) = (scope.tenant.is_some(), scope.project.is_some());
    let (user, node, apps) = (scope.user.is_some(), scope.node.is_some(), !scope.app_instances.is_empty());
    match role {
        Role::Operator | Role::Auditor => {
            demand(!tenant && !project && !user && !node && !apps, "must have an empty scope")
        }
        Role::TenantAdmin => {
            demand(tenant, "needs a tenant")?;
            demand(!project && !node && !apps, "may be limited to a tenant and a user, nothing else")
        }
        Role::ProjectMember => {
            demand(tenant && project, "needs a tenant and a project")?;
            demand(!node && !apps, "may be limited to a tenant, a project and a user, nothing else")
        }
        Role::NodeAgent => {
            demand(node, "needs a node")?;
            demand(!tenant && !project && !user && !apps, "may be limited to a node, nothing else")
        }
        Role::AppOperator => {
            demand(tenant && apps, "needs a tenant and at least one app instance")?;
            demand(!project && !user && !node, "may be limited to a tenant and app instances, nothing else")
        }
        Role::BillingAuthority => {
            demand(!project && !user && !node && !apps, "may be limited to a tenant, nothing else")
        }
    }
}

impl Draft<'_> {
    pub(super) fn issue_token(&mut self, issue: &IssueToken) -> Result<(), Refusal> {
        let role = issue.role;
        let bad = |why| Refusal::BadTokenScope { role, why };
        let mut scope = issue.scope.clone();
        if self.identity.tenant.is_some() {
            if !may_be_issued_by_tenant(role) {
                return Err(bad(OPERATOR_ONLY));
            }
            if scope.tenant != self.identity.tenant {
                return Err(bad("must be limited to the tenant that issues it"));
            }
        }
        check_scope_of_role(role, &scope).map_err(bad)?;
        if scope.app_instances.len() > APP_INSTANCES_PER_TOKEN_MAX {
            return Err(bad(TOO_MANY_APPS));
        }
        scope.app_instances.sort_unstable();
        if scope.app_instances.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(bad("must not name an app instance twice"));
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

    /// Checks that everything in the scope exists and belongs to the tenant.
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
        if let Some(tenant) = scope.tenant {
            scope.app_instances.iter().try_for_each(|app| self.known_app_instance(tenant, *app).map(drop))?;
        }
        match scope.node {
            Some(node) if state.node(node).is_none() => Err(Refusal::UnknownNode { node }),
            _ => Ok(()),
        }
    }

    /// A token can be revoked until it expires, also after something in its scope was deleted.
    pub(super) fn revoke_token(&mut self, token: TokenNo) -> Result<(), Refusal> {
        let own = |of| self.identity.tenant.is_none() || of == self.identity.tenant;
        let found = self.state().token(token).filter(|found| !found.is_expired(self.now) && own(found.scope.tenant));
        let found = found.ok_or(Refusal::UnknownToken { token })?;
        if self.identity.tenant.is_some() && !may_be_issued_by_tenant(found.role) {
            return Err(Refusal::BadTokenScope { role: found.role, why: OPERATOR_ONLY });
        }
        let tenant = found.scope.tenant;
        self.emit(tenant, TokenRevoked { token }, |_| {});
        Ok(())
    }
}

const OPERATOR_ONLY: &str = "can be issued and revoked only by an operator";
pub(crate) const TOO_MANY_APPS: &str = "may name at most 64 app instances";
