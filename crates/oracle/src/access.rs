//! Tokens: which may be issued, and which may be used.

use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{TokenIssued, TokenRevoked};
use leasehold_model::limits::{APP_INSTANCES_PER_TOKEN_MAX, TOKENS_MAX, TOKENS_PER_TENANT_MAX};
use leasehold_model::{Instant, Record, Role, TenantNo, TokenScope};

/// Whether a role requires a part of the scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Must,
    May,
    Not,
}

/// The required parts of a role's scope: tenant, project, user, node, app instances.
const fn parts_of(role: Role) -> [Part; 5] {
    use Part::{May, Must, Not};
    match role {
        Role::Operator | Role::Auditor => [Not, Not, Not, Not, Not],
        Role::TenantAdmin => [Must, Not, May, Not, Not],
        Role::ProjectMember => [Must, Must, May, Not, Not],
        Role::NodeAgent => [Not, Not, Not, Must, Not],
        Role::AppOperator => [Must, Not, Not, Not, Must],
        Role::BillingAuthority => [May, Not, Not, Not, Not],
    }
}

pub(crate) fn scope_fits(role: Role, scope: &TokenScope) -> bool {
    let apps = &scope.app_instances;
    let there =
        [scope.tenant.is_some(), scope.project.is_some(), scope.user.is_some(), scope.node.is_some(), !apps.is_empty()];
    let fits = |(part, there): (Part, bool)| part == Part::May || there == (part == Part::Must);
    let twice = (0..apps.len()).any(|i| apps[..i].contains(&apps[i]));
    parts_of(role).into_iter().zip(there).all(fits) && !twice && apps.len() <= APP_INSTANCES_PER_TOKEN_MAX
}

/// Roles that a tenant can issue and revoke for itself; all others are for operators.
pub(crate) const fn is_of_tenants(role: Role) -> bool {
    matches!(role, Role::TenantAdmin | Role::ProjectMember | Role::AppOperator)
}

pub(crate) fn is_expired(token: &TokenIssued, at: Instant) -> bool {
    token.expires_at.is_some_and(|end| end <= at)
}

impl World {
    /// Whether it has not expired and its scope exists.
    pub(crate) fn is_live(&self, token: &TokenIssued, at: Instant) -> bool {
        !is_expired(token, at) && self.missing(&token.scope).is_none()
    }

    /// The part of a scope that does not exist, or belongs to another tenant.
    pub(crate) fn missing(&self, scope: &TokenScope) -> Option<&'static str> {
        let own = |tenant: Option<TenantNo>| tenant.is_some() && tenant == scope.tenant;
        let missing = [
            (scope.tenant.is_some_and(|no| !self.tenants.contains_key(&no)), "unknown_tenant"),
            (scope.project.is_some_and(|no| !own(self.projects.get(&no).map(|p| p.tenant))), "unknown_project"),
            (scope.user.is_some_and(|no| !own(self.users.get(&no).map(|u| u.tenant))), "unknown_user"),
            (scope.node.is_some_and(|no| !self.nodes.contains_key(&no)), "unknown_node"),
        ];
        missing.into_iter().find(|(missing, _)| *missing).map(|(_, code)| code)
    }

    /// Whether the limit of tokens is reached, for the tenant or in all.
    pub(crate) fn tokens_are_full(&self, tenant: Option<TenantNo>, at: Instant) -> bool {
        let kept = || self.tokens.values().filter(|token| !is_expired(token, at));
        let of_tenant = kept().filter(|token| tenant.is_some() && token.scope.tenant == tenant).count();
        of_tenant >= TOKENS_PER_TENANT_MAX as usize || kept().count() >= TOKENS_MAX as usize
    }

    /// Checks that the token of a record is valid.
    pub(crate) fn check_token(&self, record: &Record) -> Checked {
        let Some(number) = record.identity.token else { return Ok(()) };
        let token = found!(self.tokens.get(&number), "token", "there is no {number}");
        demand!(self.is_live(token, record.stamp), "token", "{number} is not live");
        Ok(())
    }

    pub(crate) fn token_issued(&mut self, record: &Record, issued: &TokenIssued) -> Checked {
        let (number, scope) = (issued.token, &issued.scope);
        self.check_new_number("token", u64::from(number.0))?;
        demand!(scope_fits(issued.role, scope), "token-scope", "{} with {scope:?}", issued.role);
        demand!(scope.app_instances.is_sorted(), "token-scope", "{:?} out of order", scope.app_instances);
        demand!(self.missing(scope).is_none(), "token-scope", "{scope:?}: {:?}", self.missing(scope));
        let foreign = |tenant| scope.app_instances.iter().find(|app| self.is_foreign(tenant, **app));
        let foreign = scope.tenant.and_then(foreign);
        demand!(foreign.is_none(), "token-scope", "{foreign:?} is not of the tenant");
        demand!(!is_expired(issued, record.stamp), "token-expiry", "{:?} is over", issued.expires_at);
        // Expired tokens are removed when another one is issued.
        self.tokens.retain(|_, token| !is_expired(token, record.stamp));
        let twin = self.tokens.values().find(|token| token.hash == issued.hash);
        demand!(twin.is_none(), "token-twice", "the hash is that of {:?}", twin.map(|twin| twin.token));
        demand!(!self.tokens_are_full(scope.tenant, record.stamp), "token-count", "too many tokens");
        demand!(record.identity.tenant == scope.tenant, "token-tenant", "sealed for {:?}", record.identity.tenant);
        self.take_number("token", u64::from(number.0));
        self.tokens.insert(number, issued.clone());
        Ok(())
    }

    pub(crate) fn token_revoked(&mut self, record: &Record, revoked: &TokenRevoked) -> Checked {
        let number = revoked.token;
        let token = self.tokens.get(&number).filter(|token| !is_expired(token, record.stamp));
        let token = found!(token, "unknown-token", "there is no {number}");
        let tenant = token.scope.tenant;
        demand!(record.identity.tenant == tenant, "token-tenant", "sealed for {:?}", record.identity.tenant);
        self.tokens.remove(&number);
        Ok(())
    }
}
