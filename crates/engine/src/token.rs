//! Tokens, with which principals authenticate. Only the hash of the secret is stored.

use crate::state::{State, Table, entry};
use leasehold_model::limits::{TOKENS_MAX, TOKENS_PER_TENANT_MAX};
use leasehold_model::{Instant, Name, Role, TenantNo, TokenNo, TokenScope};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

/// A token that was not revoked. [`Self::is_live`] tells whether it is still valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub number: TokenNo,
    pub name: Name,
    /// SHA-256 of its secret.
    pub hash: [u8; 32],
    pub role: Role,
    pub scope: TokenScope,
    pub expires_at: Option<Instant>,
}

impl Token {
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether it has not expired and everything in its scope still exists. Numbers are never reused, so a token that
    /// is not live never becomes live again.
    pub fn is_live(&self, state: &State, now: Instant) -> bool {
        let scope = &self.scope;
        !self.is_expired(now)
            && scope.tenant.is_none_or(|tenant| state.tenant(tenant).is_some())
            && scope.project.is_none_or(|project| state.project(project).is_some())
            && scope.user.is_none_or(|user| state.user(user).is_some())
            && scope.node.is_none_or(|node| state.node(node).is_some())
    }
}

/// Tokens by number and by hash. Expired tokens are removed when the next one is issued, so that short-lived tokens
/// (one for each job) neither accumulate nor count against the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    table: Table<Box<Token>>,
    /// Never iterated. The hasher has a fixed key, because a replay must not depend on randomness.
    by_hash: HashMap<[u8; 32], TokenNo, BuildHasherDefault<DefaultHasher>>,
    expiries: BTreeSet<(Instant, TokenNo)>,
    /// The number of stored tokens of each tenant, by tenant number.
    per_tenant: Vec<u32>,
}

impl Tokens {
    pub(crate) fn rows(&self) -> &[Option<Box<Token>>] {
        &self.table
    }
    pub(crate) fn get(&self, token: TokenNo) -> Option<&Token> {
        entry(&self.table, token.0).map(|token| &**token)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Token> {
        self.table.iter().flatten().map(|token| &**token)
    }
    pub(crate) fn by_hash(&self, hash: &[u8; 32]) -> Option<TokenNo> {
        self.by_hash.get(hash).copied()
    }

    /// Which limit on the number of tokens is reached, if any: that of the tenant or the overall one.
    pub(crate) fn full(&self, tenant: Option<TenantNo>, now: Instant) -> Option<(&'static str, u32)> {
        // Expired tokens that are still stored do not count; they are subtracted only when a limit seems reached.
        let expired = || self.expiries.iter().take_while(|(at, _)| *at <= now).map(|(_, no)| *no);
        if let Some(tenant) = tenant {
            let kept = self.per_tenant.get(tenant.0 as usize).copied().unwrap_or(0) as usize;
            let own = |no: &TokenNo| self.get(*no).is_some_and(|token| token.scope.tenant == Some(tenant));
            let limit = TOKENS_PER_TENANT_MAX as usize;
            if kept >= limit && kept - expired().filter(own).count() >= limit {
                return Some(("the tenant", TOKENS_PER_TENANT_MAX));
            }
        }
        let (kept, limit) = (self.by_hash.len(), TOKENS_MAX as usize);
        (kept >= limit && kept - expired().count() >= limit).then_some(("the cell", TOKENS_MAX))
    }

    pub(crate) fn insert(&mut self, token: Token) -> Result<(), &'static str> {
        if token.number.0 as usize != self.table.len() {
            return Err("the token number is out of order");
        }
        self.keep(&token)?;
        self.table.push(Some(Box::new(token)));
        Ok(())
    }

    /// Rebuilds the indexes from the table of a snapshot.
    pub(crate) fn restore(table: Table<Box<Token>>) -> Result<Self, &'static str> {
        let mut tokens = Self::default();
        table.iter().flatten().try_for_each(|token| tokens.keep(token))?;
        tokens.table = table;
        Ok(tokens)
    }

    fn keep(&mut self, token: &Token) -> Result<(), &'static str> {
        if self.by_hash.insert(token.hash, token.number).is_some() {
            return Err("two tokens have the same hash");
        }
        self.expiries.extend(token.expires_at.map(|at| (at, token.number)));
        if let Some(tenant) = token.scope.tenant {
            let place = tenant.0 as usize;
            if self.per_tenant.len() <= place {
                self.per_tenant.resize(place + 1, 0);
            }
            self.per_tenant[place] += 1;
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, number: TokenNo) -> Result<(), &'static str> {
        let token = self.table.get_mut(number.0 as usize).and_then(Option::take).ok_or("no such token")?;
        self.by_hash.remove(&token.hash);
        if let Some(at) = token.expires_at {
            self.expiries.remove(&(at, number));
        }
        if let Some(tenant) = token.scope.tenant {
            self.per_tenant[tenant.0 as usize] -= 1;
        }
        Ok(())
    }

    /// Removes tokens that have expired at `stamp`, the stamp of a record.
    pub(crate) fn sweep(&mut self, stamp: Instant) {
        while let Some((_, expired)) = self.expiries.first().copied().filter(|(at, _)| *at <= stamp) {
            self.remove(expired).expect("a token in the list of expiries is stored");
        }
    }
}
