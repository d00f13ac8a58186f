//! Claims on nodes for sensitive work, and the custody of nodes.

use crate::time::When;
use leasehold_model::{CustodyState, QuarantineCause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Claims nodes for a user: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClaim {
    /// Nodes to claim: names or numbers.
    pub nodes: Vec<String>,
    /// Tenant: name or number. The tenant of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Project that pays for idle capacity: name or number. The project of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// User who claims: name or number. The user of the token unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How long the nodes will be kept. Under a hard cost ceiling it is required: the cost up to then is reserved. The
    /// claim does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<When>,
}

/// Releases claimed nodes. They are wiped before anyone else can use them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseNodes {
    /// Nodes to release: names or numbers.
    pub nodes: Vec<String>,
}

/// Reports whether a released node is clean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportWipe {
    /// Whether the node is clean. If not, it is quarantined.
    pub clean: bool,
    /// Generation of the agent. Agents must send it; operators leave it out.
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

/// Who may use a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Custody {
    /// Custody state of the node.
    pub state: CustodyState,
    /// When this state began; null if the node is open.
    pub since: Option<When>,
    /// Who has claimed it; null if nobody has.
    pub holder: Option<ClaimHolder>,
    /// How long the claimer expects to keep it; null if that is not known or nobody has claimed it.
    #[serde(default)]
    pub until: Option<When>,
    /// When the node is quarantined if no clean wipe has been reported; null if it is not being wiped.
    pub wipe_by: Option<When>,
    /// Why it is quarantined; null if it is not.
    pub cause: Option<QuarantineCause>,
}

/// A node and who may use it.
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

/// Nodes that were claimed or released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The nodes as they are now.
    pub nodes: Vec<ClaimedNode>,
}

/// Nodes that are not open to all. Tenants see the nodes that their users have claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    /// Nodes in order of their numbers.
    pub nodes: Vec<ClaimedNode>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
