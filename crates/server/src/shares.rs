//! Limits on what callers have in use at the same time: for each token, for each tenant, and for all of them together.
//! A part is left over that only operators can use, so that tenants cannot lock them out.

use crate::access::Caller;
use leasehold_api::codes::Code;
use leasehold_api::{Problem, Role};
use leasehold_model::{TenantNo, TokenNo};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries of idle tokens and tenants that are kept, so that a busy caller does not allocate for every request.
const IDLE_MAX: usize = 1024;

/// How much may be in use. Operators are limited by `all` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareLimits {
    pub(crate) all: usize,
    /// All callers but operators.
    pub(crate) others: usize,
    pub(crate) tenant: usize,
    pub(crate) token: usize,
}

impl ShareLimits {
    /// The parts of a total: a tenth is reserved for operators, a tenant may have half of it and a token a quarter.
    pub(crate) fn parts_of(total: usize) -> Self {
        let reserved = (total / 10).max(usize::from(total > 1));
        Self { all: total, others: total - reserved, tenant: (total / 2).max(1), token: (total / 4).max(1) }
    }
}

/// Which limit is reached, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Token(usize),
    Tenant(usize),
    All(usize),
}

impl Exceeded {
    /// A refusal. `what` names what is limited, in the plural; `advice` says what the caller can do.
    pub(crate) fn problem(self, code: Code, what: &str, advice: &str) -> Problem {
        let (detail, limit, scope) = match self {
            Self::Token(limit) => (format!("This token may have {limit} {what} at a time; {advice}."), limit, "token"),
            Self::Tenant(limit) => (format!("A tenant may have {limit} {what} at a time; {advice}."), limit, "tenant"),
            Self::All(limit) => (format!("There are {limit} {what} already; {advice}."), limit, "all"),
        };
        code.problem(detail)
            .with("limit", limit.to_string())
            .with("unit", what)
            .with("scope", scope)
            .with("retry_after", 1)
    }
}

#[derive(Debug)]
struct Used {
    limits: ShareLimits,
    all: usize,
    others: usize,
    tenants: BTreeMap<TenantNo, usize>,
    tokens: BTreeMap<TokenNo, usize>,
}

#[derive(Debug)]
pub(crate) struct Shares(Mutex<Used>);

/// What one request has in use; given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Shares>,
    token: Option<TokenNo>,
    tenant: Option<TenantNo>,
    amount: usize,
}

impl Shares {
    pub(crate) fn new(limits: ShareLimits) -> Arc<Self> {
        let (tenants, tokens) = (BTreeMap::new(), BTreeMap::new());
        Arc::new(Self(Mutex::new(Used { limits, all: 0, others: 0, tenants, tokens })))
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limits. What is in use stays in use.
    pub(crate) fn set_limits(&self, limits: ShareLimits) {
        self.lock().limits = limits;
    }

    /// Takes an amount for the caller. More than a limit allows is granted to a token or tenant that has nothing in use,
    /// because it could never be granted otherwise.
    pub(crate) fn take(self: &Arc<Self>, caller: &Caller, amount: usize) -> Result<Share, Exceeded> {
        let mut used = self.lock();
        let limits = used.limits;
        let over = |used: usize, limit: usize| used > 0 && used + amount > limit;
        let (token, tenant) = match caller.role {
            Role::Operator => (None, None),
            _ => (Some(caller.token), caller.tenant),
        };
        if over(used.of_token(token), limits.token) {
            return Err(Exceeded::Token(limits.token));
        }
        if over(used.of_tenant(tenant), limits.tenant) {
            return Err(Exceeded::Tenant(limits.tenant));
        }
        if token.is_some() && over(used.others, limits.others) {
            return Err(Exceeded::All(limits.others));
        }
        if over(used.all, limits.all) {
            return Err(Exceeded::All(limits.all));
        }
        let share = Share { of: Arc::clone(self), token, tenant, amount };
        used.add(&share);
        Ok(share)
    }
}

impl Used {
    fn of_token(&self, token: Option<TokenNo>) -> usize {
        token.and_then(|token| self.tokens.get(&token)).copied().unwrap_or(0)
    }
    fn of_tenant(&self, tenant: Option<TenantNo>) -> usize {
        tenant.and_then(|tenant| self.tenants.get(&tenant)).copied().unwrap_or(0)
    }

    fn add(&mut self, share: &Share) {
        self.all += share.amount;
        if let Some(token) = share.token {
            self.others += share.amount;
            if self.tokens.len() > IDLE_MAX {
                self.tokens.retain(|_, used| *used > 0);
            }
            *self.tokens.entry(token).or_default() += share.amount;
        }
        if let Some(tenant) = share.tenant {
            if self.tenants.len() > IDLE_MAX {
                self.tenants.retain(|_, used| *used > 0);
            }
            *self.tenants.entry(tenant).or_default() += share.amount;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.of.lock();
        used.all -= self.amount;
        if let Some(token) = self.token {
            used.others -= self.amount;
            used.tokens.entry(token).and_modify(|used| *used -= self.amount);
        }
        if let Some(tenant) = self.tenant {
            used.tenants.entry(tenant).and_modify(|used| *used -= self.amount);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn caller(role: Role, token: u32, tenant: Option<u32>) -> Caller {
        let tenant = tenant.map(TenantNo);
        Caller { token: TokenNo(token), role, tenant, project: None, user: None, node: None, app_instances: Vec::new() }
    }

    #[test]
    fn a_token_and_a_tenant_have_limits_and_operators_a_reserve() {
        let shares = Shares::new(ShareLimits::parts_of(20));
        let (first, second) = (caller(Role::ProjectMember, 1, Some(1)), caller(Role::ProjectMember, 2, Some(1)));
        let admin = caller(Role::TenantAdmin, 3, Some(1));
        let mut held: Vec<Share> = (0..5).map(|_| shares.take(&first, 1).expect("a quarter")).collect();
        assert_eq!(shares.take(&first, 1).err(), Some(Exceeded::Token(5)));
        held.extend((0..5).map(|_| shares.take(&second, 1).expect("half of it")));
        assert_eq!(shares.take(&admin, 1).err(), Some(Exceeded::Tenant(10)));
        // Another tenant takes what is left, except for the reserve.
        let other = [caller(Role::TenantAdmin, 4, Some(2)), caller(Role::Auditor, 5, None)];
        held.extend((0..5).map(|_| shares.take(&other[0], 1).expect("room")));
        held.extend((0..3).map(|_| shares.take(&other[1], 1).expect("room")));
        assert_eq!(shares.take(&other[1], 1).err(), Some(Exceeded::All(18)));
        let operator = caller(Role::Operator, 6, None);
        held.extend((0..2).map(|_| shares.take(&operator, 1).expect("the reserve")));
        assert_eq!(shares.take(&operator, 1).err(), Some(Exceeded::All(20)));
        // What is dropped is free again.
        drop(held.remove(0));
        assert!(shares.take(&first, 1).is_ok());
        drop(held);
        let used = shares.lock();
        assert_eq!((used.all, used.others), (0, 0));
        assert!(used.tokens.values().chain(used.tenants.values()).all(|used| *used == 0));
    }

    #[test]
    fn more_than_the_limit_is_granted_to_those_who_have_nothing() {
        let shares = Shares::new(ShareLimits::parts_of(8));
        let member = caller(Role::ProjectMember, 1, Some(1));
        let all = shares.take(&member, 100).expect("it could never be granted otherwise");
        assert_eq!(shares.take(&member, 1).err(), Some(Exceeded::Token(2)));
        drop(all);
        assert!(shares.take(&member, 1).is_ok());
        assert_eq!(ShareLimits::parts_of(1), ShareLimits { all: 1, others: 1, tenant: 1, token: 1 });
    }

    #[test]
    fn memory_has_a_limit() {
        let shares = Shares::new(ShareLimits::parts_of(1000));
        for token in 0..10_000 {
            drop(shares.take(&caller(Role::TenantAdmin, token, Some(token)), 1).expect("room"));
        }
        let used = shares.lock();
        assert!(used.tokens.len() <= IDLE_MAX + 1 && used.tenants.len() <= IDLE_MAX + 1);
    }
}
