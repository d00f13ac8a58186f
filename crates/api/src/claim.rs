//! Claims on nodes for sensitive work, and whose a node is.

use crate::time::When;
use leasehold_model::{CustodyState, QuarantineCause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A user claims nodes: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClaim {
    /// By name or number.
    pub nodes: Vec<String>,
    /// The token's own, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The project that pays for what lies idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Who claims; the token's own user, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// Gives claimed nodes back. They are wiped before anyone gets them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseNodes {
    pub nodes: Vec<String>,
}

/// Whether a released node is clean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportWipe {
    /// If not, the node is quarantined.
    pub clean: bool,
    /// The agent's own, which an agent always names; an operator needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// Who has claimed a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimHolder {
    pub tenant: String,
    pub tenant_id: u32,
    pub project: String,
    pub project_id: u32,
    pub user: String,
    pub user_id: u32,
}

/// Whose a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Custody {
    pub state: CustodyState,
    pub since: Option<When>,
    pub holder: Option<ClaimHolder>,
    /// When it is quarantined if nobody says by then that it is clean.
    pub wipe_by: Option<When>,
    pub cause: Option<QuarantineCause>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedNode {
    pub node: String,
    pub node_id: u32,
    pub pool: String,
    pub custody: Custody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimPut {
    pub sequence: u64,
    pub nodes: Vec<ClaimedNode>,
}

/// Nodes that are not open to all: a tenant sees those that its users have claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    pub nodes: Vec<ClaimedNode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
