//! W3C Trace Context, level 1: the trace a request belongs to.

use axum::http::{HeaderMap, HeaderName};
use std::fmt;

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The contents of a `traceparent` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    trace_id: u128,
    /// The caller's span.
    pub parent: u64,
    pub sampled: bool,
}

impl Trace {
    /// The trace of a request. A malformed or duplicate header is ignored.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut sent = headers.get_all(TRACEPARENT).iter();
        match (sent.next(), sent.next()) {
            (Some(text), None) => Self::parse(text.as_bytes()),
            _ => None,
        }
    }

    /// `version-traceid-parentid-flags` in lowercase hexadecimal digits. A later version may append more fields.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (head, rest) = text.split_at_checked(55)?;
        if [2, 35, 52].iter().any(|at| head[*at] != b'-') {
            return None;
        }
        let version = hex(&head[..2])?;
        let continues = rest.is_empty() || (version > 0 && rest[0] == b'-');
        let trace_id = hex(&head[3..35])?;
        let parent = u64::try_from(hex(&head[36..52])?).ok()?;
        let flags = hex(&head[53..55])?;
        let valid = continues && version != 0xff && trace_id != 0 && parent != 0;
        valid.then_some(Self { trace_id, parent, sampled: flags & 1 == 1 })
    }

    /// The trace ID: 32 hexadecimal digits.
    pub fn id(self) -> impl fmt::Display {
        TraceId(self.trace_id)
    }
}

struct TraceId(u128);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number << 4 | u128::from(digit - b'0')),
        b'a'..=b'f' => Some(number << 4 | u128::from(digit - b'a' + 10)),
        _ => None,
    })
}
