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
    /// Nodes to release: names or numbers.
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
    /// Name of the tenant.
    pub tenant: String,
    /// Number of the tenant.
    pub tenant_id: u32,
    /// Name of the project that pays for idle capacity.
    pub project: String,
    /// Number of the project.
    pub project_id: u32,
    /// Name of the user.
    pub user: String,
    /// Number of the user.
    pub user_id: u32,
}

/// Whose a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Custody {
    /// State of the node.
    pub state: CustodyState,
    /// Since when; null if the node is open.
    pub since: Option<When>,
    /// Who has claimed it; null if nobody has.
    pub holder: Option<ClaimHolder>,
    /// When it is quarantined if nobody says by then that it is clean.
    pub wipe_by: Option<When>,
    /// Why it is quarantined; null if it is not.
    pub cause: Option<QuarantineCause>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedNode {
    /// Name of the node.
    pub node: String,
    /// Number of the node.
    pub node_id: u32,
    /// Name of its pool.
    pub pool: String,
    /// Who may use the node.
    pub custody: Custody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The nodes as they are now.
    pub nodes: Vec<ClaimedNode>,
}

/// Nodes that are not open to all: a tenant sees those that its users have claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    /// Nodes in order of their numbers.
    pub nodes: Vec<ClaimedNode>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
