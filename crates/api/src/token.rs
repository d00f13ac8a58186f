//! Tokens: who may do what.

use crate::time::When;
use leasehold_model::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

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
