//! Errors as RFC 9457 problems.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// An error. `code` is stable and meant for programs; `detail` is meant for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Kind of problem: `/problems/` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The HTTP status as text.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong, and what to do about it.
    pub detail: String,
    /// Stable code. `/problems/` and the code is a page about it.
    #[schemars(with = "ProblemCode")]
    pub code: String,
    /// ID of the request, as in the daemon's log. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Further members that depend on the code, such as the numbers of a quota or the invalid field.
    #[serde(flatten)]
    #[schemars(with = "ProblemMembers")]
    pub members: Map<String, Value>,
}

/// Stable code of a problem.
pub(crate) struct ProblemCode;

impl JsonSchema for ProblemCode {
    fn schema_name() -> Cow<'static, str> {
        "ProblemCode".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pages = crate::code_pages();
        let codes: Vec<&str> = pages.keys().copied().collect();
        json_schema!({
            "type": "string",
            "description": "Stable code of a problem. Later versions may add codes.",
            "enum": codes,
            "x-pages": pages,
        })
    }
}

/// The members that problems can have. Each is absent where it has no meaning.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes what `Problem::with` adds")]
pub(crate) struct ProblemMembers {
    /// Unit of the amounts below: a billing unit such as `GPU`, what is counted such as `node`, or a currency.
    unit: Option<String>,
    /// Amount that already counts against the limit, as requests are written: `13/7`.
    used: Option<String>,
    /// Amount that was requested.
    requested: Option<String>,
    /// The limit that would be exceeded, or that was reached.
    limit: Option<String>,
    /// Sequence number of the record: of the denial, of the earlier request with the same key, or of the damage.
    sequence: Option<u64>,
    /// The field or parameter that is invalid.
    field: Option<String>,
    /// The nearest name that exists.
    nearest: Option<String>,
    /// The reversal that corrected the entry.
    corrected_by: Option<String>,
    /// Kind of the entry.
    kind: Option<String>,
    /// Number of the quota.
    quota_id: Option<u32>,
    /// Name of the tenant.
    tenant: Option<String>,
    /// Name of the project.
    project: Option<String>,
    /// Name of the app instance.
    app_instance: Option<String>,
    /// Name of the resource class.
    class: Option<String>,
    /// The most that is free on one node.
    most_free: Option<String>,
    /// State of the prepaid credit.
    state: Option<String>,
    /// What new work may cost.
    available: Option<String>,
    /// Name of the node.
    node: Option<String>,
    /// Why the node takes no work.
    node_state: Option<String>,
    /// Who has claimed the node, if the caller may know.
    holder: Option<crate::claim::ClaimHolder>,
    /// When the burst ends.
    burst_ends_at: Option<crate::time::When>,
    /// Money spent under the cost ceiling.
    spent: Option<String>,
    /// Money reserved under the cost ceiling; for a denial of capacity, the amount on one node that is reserved for others.
    reserved: Option<String>,
    /// Amount of the cost ceiling.
    amount: Option<String>,
    /// Currency of the cost ceiling.
    currency: Option<String>,
    /// Whose limit was reached: that of the token, of its tenant, or of all callers.
    scope: Option<String>,
    /// Seconds to wait before trying again, as in the header `Retry-After`.
    retry_after: Option<u64>,
    /// Number of records of the journal.
    size: Option<u64>,
    /// Number of records that the newest checkpoint covers.
    checkpoint_size: Option<u64>,
    /// Number of the segment that is damaged.
    segment: Option<u64>,
    /// Offset of the damage in the segment.
    offset: Option<u64>,
    /// Place of the usage record that was refused, counted from 0.
    place: Option<u64>,
    /// Code of the problem of that usage record.
    cause: Option<String>,
}

/// The media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

impl Problem {
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/problems/{code}"),
            title: title(status).to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            instance: None,
            members: Map::new(),
        }
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.insert(key.to_owned(), value.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}
impl std::error::Error for Problem {}

fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        _ => "Problem",
    }
}
