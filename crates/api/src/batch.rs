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
    /// Idempotency key of this operation: 1 to 64 printable ASCII characters. Absent if it must not be repeated safely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lease, for all but `request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseRef>,
    /// Request a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestLease>,
    /// Renew the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<Renew>,
    /// Release the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// Revoke the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke: Option<Revoke>,
    /// The holder of the revoked lease is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    /// Report activity on the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Confirm that the lease is torn down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_teardown: Option<Fences>,
    /// Return the fenced capacity of the lease.
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
    /// The operations, decided in this order.
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
