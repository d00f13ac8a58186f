//! Who asks, and what is theirs. Token state itself is folded by the engine; here it is looked up.

use crate::app::App;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use leasehold_api::{Problem, Role, codes};
use leasehold_engine::{State, Token};
use leasehold_model::{Identity, LeaseNo, NodeNo, ProjectNo, TenantNo, TokenNo, UserNo};
use sha2::{Digest, Sha256};

/// Every secret begins like this, so that people and scanners recognise one.
pub const SECRET_PREFIX: &str = "lht_";
/// Characters of a secret: the prefix and 32 random bytes in hex.
const SECRET_CHARS: usize = SECRET_PREFIX.len() + 64;

/// The one who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) token: TokenNo,
    pub(crate) role: Role,
    pub(crate) tenant: Option<TenantNo>,
    pub(crate) project: Option<ProjectNo>,
    pub(crate) user: Option<UserNo>,
    pub(crate) node: Option<NodeNo>,
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
        }
    }

    /// On whose behalf a command of this caller runs, unless it says more.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            tenant: self.tenant,
            project: self.project,
            user: self.user,
            workload: None,
            token: Some(self.token),
        }
    }

    /// The generation that a command about a node carries. A node's agent always names its own: one that was cut off
    /// must not get past the check by keeping silent about it. An operator speaks for no generation.
    pub(crate) fn speaks_as(&self, generation: Option<u64>) -> Result<Option<u64>, Problem> {
        match (self.role, generation) {
            (Role::NodeAgent, None) => Err(codes::BAD_BODY
                .problem("The token is a node agent's: name the agent's own `generation`, as registering answered it.")
                .with("field", "generation")),
            (_, generation) => Ok(generation),
        }
    }

    /// Whether what belongs to this tenant exists for the caller.
    pub(crate) fn sees_tenant(&self, tenant: TenantNo) -> bool {
        match self.role {
            Role::Operator | Role::Auditor => true,
            Role::BillingAuthority => self.tenant.is_none_or(|own| own == tenant),
            Role::TenantAdmin | Role::ProjectMember | Role::AppOperator => self.tenant == Some(tenant),
            Role::NodeAgent => false,
        }
    }

    /// Whether records of no tenant are for the caller.
    pub(crate) fn sees_all(&self) -> bool {
        matches!(self.role, Role::Operator | Role::Auditor)
    }

    pub(crate) fn sees_project(&self, tenant: TenantNo, project: ProjectNo) -> bool {
        self.sees_tenant(tenant) && self.project.is_none_or(|own| own == project)
    }

    pub(crate) fn sees_node(&self, node: NodeNo) -> bool {
        match self.role {
            Role::Operator | Role::Auditor => true,
            Role::NodeAgent => self.node == Some(node),
            _ => false,
        }
    }

    /// Whether a lease of this holder on this node exists for the caller.
    pub(crate) fn sees_lease(&self, tenant: TenantNo, project: Option<ProjectNo>, node: NodeNo) -> bool {
        match self.role {
            Role::NodeAgent => self.node == Some(node),
            _ => self.sees_tenant(tenant) && (self.project.is_none() || self.project == project),
        }
    }
}

/// The hash under which a secret is sealed.
pub fn secret_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// A new secret, of the system's best randomness.
pub fn new_secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(SECRET_PREFIX.to_owned(), |secret, byte| secret + &format!("{byte:02x}")))
}

fn unauthenticated(what: &str) -> Problem {
    codes::UNAUTHENTICATED.problem(what)
}

/// Finds the caller behind a request's token.
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
        return Err(unauthenticated("The Authorization header is not `Bearer` and a token of this daemon."));
    };
    let hash = secret_hash(secret);
    let now = app.clock.wall();
    app.now.read(|state| {
        let number = state.token_by_hash(&hash);
        let token = number.and_then(|number| state.token(number)).filter(|token| token.is_live(state, now));
        let token =
            token.ok_or_else(|| unauthenticated("The token is unknown, expired or revoked; ask for a new one."))?;
        Ok(Caller::behind(token))
    })
}

/// A lease that is alive and exists for the caller.
pub(crate) fn visible_lease<'s>(
    state: &'s State,
    caller: &Caller,
    lease: LeaseNo,
) -> Option<&'s leasehold_engine::Lease> {
    state.lease(lease).filter(|lease| caller.sees_lease(lease.tenant, Some(lease.project), lease.node))
}
