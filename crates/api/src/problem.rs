//! Errors as RFC 9457 problems.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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
    /// Stable code, as listed in the reference page of codes.
    pub code: String,
    /// ID of the request, as in the daemon's log. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Further members that depend on the code, such as the numbers of a quota or the invalid field.
    #[serde(flatten)]
    pub members: Map<String, Value>,
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
