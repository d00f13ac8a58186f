//! What came of an attempt, and what follows from it (SEMANTICS 10).

use leasehold_model::{Instant, Span};
use std::time::{Duration, UNIX_EPOCH};

/// What came of one attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered {
        status: u16,
        /// From the header Retry-After.
        retry_after: Option<Span>,
    },
    /// No answer: the name, the address guard, the connection, TLS, or the time limit. Contains no secret.
    Failed(String),
}

/// What an outcome means for its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Delivered,
    /// The endpoint wants nothing any more.
    Gone,
    /// It may succeed later.
    Retry,
    /// It would fail again: the event is set aside.
    Poison,
}

impl Outcome {
    pub(crate) fn meaning(&self) -> Meaning {
        match self {
            Self::Failed(_) => Meaning::Retry,
            Self::Answered { status, .. } => match status {
                200..=299 => Meaning::Delivered,
                410 => Meaning::Gone,
                401 | 403 | 408 | 409 | 425 | 429 | 500.. => Meaning::Retry,
                _ => Meaning::Poison,
            },
        }
    }

    /// Whether the endpoint asks for fewer requests as a whole.
    pub(crate) fn is_throttled(&self) -> bool {
        matches!(self, Self::Answered { status: 429, .. } | Self::Answered { status: 503, retry_after: Some(_) })
    }

    pub(crate) fn retry_after(&self) -> Option<Span> {
        match self {
            Self::Answered { retry_after, .. } => *retry_after,
            Self::Failed(_) => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered { status, .. } => Some(*status),
            Self::Failed(_) => None,
        }
    }

    /// For people.
    pub fn reason(&self) -> String {
        match self {
            Self::Answered { status, .. } => format!("the endpoint answered {status}"),
            Self::Failed(error) => error.chars().take(crate::limits::REASON_CHARS_MAX).collect(),
        }
    }
}

/// Reads a Retry-After header (RFC 9110, 10.2.3): seconds or a date. `None` if it says nothing usable.
pub fn retry_after(header: &str, now: Instant) -> Option<Span> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit mean a very long time, which is capped anyway.
        let seconds = header.parse::<u64>().unwrap_or(u64::MAX).min(u64::MAX / 1_000_000_000);
        return Some(Span::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(header).ok()?;
    let since: Duration = date.duration_since(UNIX_EPOCH).ok()?;
    Some(Instant(u64::try_from(since.as_nanos()).ok()?).since(now))
}

/// How long to wait after this many failures in a row: full jitter, at least a millisecond.
pub(crate) fn backoff(base: Span, most: Span, failures: u32, random: u64) -> Span {
    let factor = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let ceiling = base.0.saturating_mul(factor).min(most.0);
    let least = Span::from_millis(1).0.min(ceiling);
    Span(least + random % (ceiling - least + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_2xx_is_success() {
        for (statuses, meaning) in [
            (&[200, 201, 202, 204, 299][..], Meaning::Delivered),
            (&[410], Meaning::Gone),
            (&[401, 403, 408, 409, 425, 429, 500, 502, 503, 504, 599], Meaning::Retry),
            (&[101, 199, 300, 301, 302, 307, 308, 400, 404, 405, 411, 422, 451], Meaning::Poison),
        ] {
            for status in statuses {
                let outcome = Outcome::Answered { status: *status, retry_after: None };
                assert_eq!(outcome.meaning(), meaning, "{status}");
            }
        }
        assert_eq!(Outcome::Failed("refused".to_owned()).meaning(), Meaning::Retry);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Instant::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        for (header, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(header, now), expected.map(Span::from_secs), "{header:?}");
        }
        assert!(retry_after("99999999999999999999999", now).is_some_and(|wait| wait > Span::from_secs(1 << 32)));
    }

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let (base, most) = (Span::from_secs(1), Span::from_secs(300));
        let longest = |failures| (0..64).map(|bit| backoff(base, most, failures, (1 << bit) - 1)).max();
        let wait = |failures, random| backoff(base, most, failures, random);
        assert_eq!(wait(1, 0), Span::from_millis(1));
        assert_eq!(wait(1, base.0 - Span::from_millis(1).0), base);
        assert_eq!(wait(3, Span::from_secs(4).0 - Span::from_millis(1).0), Span::from_secs(4));
        for failures in [10, 63, 64, 65, u32::MAX] {
            assert!(longest(failures).is_some_and(|wait| wait <= most && wait > Span::from_secs(100)));
        }
    }
}
