//! The caller of a request and what it may see. Tokens are part of the state; this module looks them up.

use crate::app::App;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use leasehold_api::{Problem, Role, codes};
use leasehold_engine::{State, Token};
use leasehold_model::{AppInstanceNo, Identity, LeaseNo, NodeNo, ProjectNo, TenantNo, TokenNo, UserNo};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Prefix of every secret, so that people and scanners recognise one.
pub const SECRET_PREFIX: &str = "lht_";
/// Length of a secret: the prefix and 32 random bytes in hexadecimal.
const SECRET_CHARS: usize = SECRET_PREFIX.len() + 64;

/// The caller of a request, identified by its token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) token: TokenNo,
    pub(crate) role: Role,
    pub(crate) tenant: Option<TenantNo>,
    pub(crate) project: Option<ProjectNo>,
    pub(crate) user: Option<UserNo>,
    pub(crate) node: Option<NodeNo>,
    /// The only app instances that it may see; empty if it is not limited to some.
    pub(crate) app_instances: Vec<AppInstanceNo>,
}

impl Caller {
    pub(crate) fn behind(token: &Token) -> Self {
        Self {
            token: token.number,
            role: token.role,
            tenant: token.scope.tenant,
            project: token.scope.project,
            user: token.scope.user,
            node: token.scope.node,
            app_instances: token.scope.app_instances.clone(),
        }
    }

    /// The identity of commands of this caller, unless the request names another one.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            tenant: self.tenant,
            project: self.project,
            user: self.user,
            workload: None,
            token: Some(self.token),
        }
    }

    /// The generation that a command about a node carries. An agent must always send its own generation; otherwise an
    /// agent that was replaced could avoid the check by leaving it out. Operators have no generation.
    pub(crate) fn checked_generation(&self, generation: Option<u64>) -> Result<Option<u64>, Problem> {
        match (self.role, generation) {
            (Role::NodeAgent, None) => Err(codes::BAD_BODY
                .problem("Node agents must send their `generation`, as returned by the registration.")
                .with("field", "generation")),
            (_, generation) => Ok(generation),
        }
    }

    /// Whether the caller may see objects of this tenant.
    pub(crate) fn sees_tenant(&self, tenant: TenantNo) -> bool {
        match self.role {
            Role::Operator | Role::Auditor => true,
            Role::BillingAuthority => self.tenant.is_none_or(|own| own == tenant),
            Role::TenantAdmin | Role::ProjectMember | Role::AppOperator => self.tenant == Some(tenant),
            Role::NodeAgent => false,
        }
    }

    /// Whether the caller may see records that belong to no tenant.
    pub(crate) fn sees_all(&self) -> bool {
        matches!(self.role, Role::Operator | Role::Auditor)
    }

    pub(crate) fn sees_project(&self, tenant: TenantNo, project: ProjectNo) -> bool {
        self.sees_tenant(tenant) && self.project.is_none_or(|own| own == project)
    }

    pub(crate) fn sees_app_instance(&self, tenant: TenantNo, app_instance: AppInstanceNo) -> bool {
        let all = self.role != Role::AppOperator;
        self.sees_tenant(tenant) && (all || self.app_instances.contains(&app_instance))
    }

    pub(crate) fn sees_node(&self, node: NodeNo) -> bool {
        match self.role {
            Role::Operator | Role::Auditor => true,
            Role::NodeAgent => self.node == Some(node),
            _ => false,
        }
    }

    /// Whether the caller may see a lease of this holder on this node.
    pub(crate) fn sees_lease(&self, tenant: TenantNo, project: Option<ProjectNo>, node: NodeNo) -> bool {
        match self.role {
            Role::NodeAgent => self.node == Some(node),
            _ => self.sees_tenant(tenant) && (self.project.is_none() || self.project == project),
        }
    }
}

/// The hash of a secret, as it is stored in the journal.
pub fn secret_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// A new secret from the random number generator of the system. It is overwritten when it is dropped.
pub fn new_secret() -> Result<Zeroizing<String>, getrandom::Error> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = Zeroizing::new([0u8; 32]);
    getrandom::fill(&mut *bytes)?;
    // Allocated once, so that no part of it is left behind.
    let mut secret = Zeroizing::new(String::with_capacity(SECRET_CHARS));
    secret.push_str(SECRET_PREFIX);
    for byte in bytes.iter() {
        secret.push(char::from(DIGITS[usize::from(byte >> 4)]));
        secret.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    Ok(secret)
}

fn unauthenticated(what: &str) -> Problem {
    codes::UNAUTHENTICATED.problem(what)
}

/// Finds the token of a request.
pub(crate) fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Err(unauthenticated("Send a token: `Authorization: Bearer lht_…`."));
    };
    let secret = header.to_str().ok().and_then(|text| {
        let (scheme, secret) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let well_formed = secret.filter(|secret| secret.len() == SECRET_CHARS && secret.starts_with(SECRET_PREFIX));
    let Some(secret) = well_formed else {
        return Err(unauthenticated("The Authorization header must be `Bearer` and a token of this daemon."));
    };
    let hash = secret_hash(secret);
    let now = app.time();
    app.now.read(|state| {
        let number = state.token_by_hash(&hash);
        let token = number.and_then(|number| state.token(number)).filter(|token| token.is_live(state, now));
        let token =
            token.ok_or_else(|| unauthenticated("The token is unknown, expired or revoked; request a new one."))?;
        Ok(Caller::behind(token))
    })
}

/// A live lease that the caller may see.
pub(crate) fn visible_lease<'s>(
    state: &'s State,
    caller: &Caller,
    lease: LeaseNo,
) -> Option<&'s leasehold_engine::Lease> {
    state.lease(lease).filter(|lease| caller.sees_lease(lease.tenant, Some(lease.project), lease.node))
}
