//! Maintenance windows of nodes.

use crate::time::When;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reserves nodes for maintenance. Nothing is granted or renewed there past `from`; what still runs then is revoked with
/// the grace of its pool, and the nodes are drained until `until`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWindow {
    /// Nodes to reserve: names or numbers. Nodes that are claimed for sensitive work are refused.
    pub nodes: Vec<String>,
    /// When the window begins. Now unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<When>,
    /// When the window ends.
    pub until: When,
    /// Why the nodes are reserved; shown to the holders of leases on them. None unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A maintenance window that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Number of the window.
    pub id: u32,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// When it begins or began.
    pub from: When,
    /// When it ends.
    pub until: When,
    /// Why the nodes are reserved; null if that was not given.
    pub reason: Option<String>,
    /// Whether it has begun, so that its nodes are drained.
    pub begun: bool,
    /// Live leases on its nodes.
    pub leases: u64,
}

/// A maintenance window that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowPut {
    /// Sequence number of the record that sealed this.
    pub sequence: u64,
    /// The window as it is now; null if it has ended already.
    pub window: Option<Window>,
}

/// Maintenance windows that have not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowList {
    /// Windows in order of their numbers.
    pub windows: Vec<Window>,
    /// Pass as `cursor` to get the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
