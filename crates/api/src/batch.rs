//! Several operations in one request, each with its own idempotency key and result.

use crate::lease::{Activity, Fences, Outcome, Release, Renew, RequestLease, Revoke};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lease: its ID of 32 hexadecimal digits, or `lease-` and its number.
pub type LeaseRef = String;

/// One operation of a batch. Each is decided and answered on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Idempotency key of this operation: 1 to 64 printable ASCII characters. Without a key, sending the operation
    /// again may repeat the change, except for `renew`, `release`, `ready` and `activity`, which need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lease. Required for all operations except `request`.
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
    /// Report that the holder of the revoked lease is ready for the teardown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    /// Report activity on the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Confirm that the lease is torn down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_teardown: Option<Fences>,
    /// Clear the fence of the lease, so that its capacity is free again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfence: Option<Ready>,
}

impl Operation {
    /// Whether it can be repeated without a key.
    pub fn is_idempotent(&self) -> bool {
        self.renew.is_some() || self.release.is_some() || self.ready.is_some() || self.activity.is_some()
    }
}

/// An operation without parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {}

/// Several operations. Each is decided and answered on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The operations, decided in this order.
    pub operations: Vec<Operation>,
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchResult {
    /// HTTP status that the operation would have had as a request of its own.
    pub status: u16,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The results of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchResults {
    /// One result per operation, in the same order.
    pub results: Vec<BatchResult>,
}
