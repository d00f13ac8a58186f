//! Tokens.

use crate::time::When;
use leasehold_model::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Number of the token.
    pub id: u32,
    /// Name of the token.
    pub name: String,
    /// What the token may do.
    pub role: Role,
    /// Name of the tenant to which it is limited; null if to none.
    pub tenant: Option<String>,
    /// Name of the project to which it is limited; null if to none.
    pub project: Option<String>,
    /// Name of the user it acts for; null if for none.
    pub user: Option<String>,
    /// Name of the node that it represents; null if none.
    pub node: Option<String>,
    /// Names of the app instances that it represents.
    #[serde(default)]
    pub app_instances: Vec<String>,
    /// When it expires; null if never.
    pub expires_at: Option<When>,
    /// The first digits of the hash of the secret, to distinguish tokens in logs and files.
    pub fingerprint: String,
}

/// Issues a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name of the token, such as `ci`, `node-17` or `waldur`.
    pub name: String,
    /// What the token may do.
    pub role: Role,
    /// Tenant to which it is limited: name or number. Unless given, the tenant of the caller, for roles that belong to
    /// a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project to which it is limited: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// User it acts for: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Node that it represents: name or number. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// App instances that it represents, by name or number: 1 to 64 for the role `app_operator`, none for other roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub app_instances: Vec<String>,
    /// When it expires. Never unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<When>,
}

/// A token with its secret. The daemon does not store the secret and cannot show it again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The token.
    pub token: Token,
    /// The secret: send it as `Authorization: Bearer …`. Absent if the same request is repeated, because it is shown
    /// only once.
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

/// One page of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// Tokens in order of their numbers.
    pub tokens: Vec<Token>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
