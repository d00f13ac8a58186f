//! Many operations in one request, each with its own key and its own result.

use crate::lease::{Activity, Fences, Outcome, Release, Renew, RequestLease, Revoke};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lease an operation is about: its 32 digits, or `lease-` and its number.
pub type LeaseRef = String;

/// One operation. Each stands or falls on its own; `key` makes it safe to send again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lease, for all but `request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestLease>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<Renew>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke: Option<Revoke>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_teardown: Option<Fences>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfence: Option<Ready>,
}

/// Says nothing more than its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    pub operations: Vec<Operation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchResult {
    /// What the operation would have answered alone.
    pub status: u16,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchResults {
    /// In the order of the operations.
    pub results: Vec<BatchResult>,
}
