//! Tokens: who may do what.

use crate::time::When;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    Operator,
    /// Reads everything, changes nothing.
    Auditor,
    /// Everything of one tenant.
    TenantAdmin,
    /// The leases of one project.
    ProjectMember,
    /// One node.
    NodeAgent,
    /// The usage records of some app instances.
    AppOperator,
    /// Quotas.
    BillingAuthority,
}

impl Role {
    pub const ALL: [Self; 7] = [
        Self::Operator,
        Self::Auditor,
        Self::TenantAdmin,
        Self::ProjectMember,
        Self::NodeAgent,
        Self::AppOperator,
        Self::BillingAuthority,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Auditor => "auditor",
            Self::TenantAdmin => "tenant-admin",
            Self::ProjectMember => "project-member",
            Self::NodeAgent => "node-agent",
            Self::AppOperator => "app-operator",
            Self::BillingAuthority => "billing-authority",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A token, without its secret: that is shown once, when it is issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub id: u32,
    pub name: String,
    pub role: Role,
    pub tenant: Option<String>,
    pub project: Option<String>,
    pub user: Option<String>,
    pub node: Option<String>,
    #[serde(default)]
    pub app_instances: Vec<u64>,
    pub expires_at: Option<When>,
    /// The first digits of the secret's hash, to tell tokens apart in logs and files.
    pub fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What people call it: `ci`, `node-17`, `waldur`.
    pub name: String,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub app_instances: Vec<u64>,
    /// Never, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<When>,
}

/// A token with its secret. Not written down anywhere: keep it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    pub sequence: u64,
    pub token: Token,
    /// Send it as `Authorization: Bearer …`. Absent when the same request is sent again: it was shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedToken")
            .field("sequence", &self.sequence)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    pub tokens: Vec<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
