//! Instants in the future, as people write them on the command line. The daemon is sent an instant.

use leasehold_api::When;
use leasehold_model::{Instant, Span};
use std::str::FromStr;

const DAY: u64 = 86_400_000_000_000;

/// When something ends: an instant, or one that depends on the current time. Days begin at midnight UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    At(Instant),
    /// After this time.
    In(Span),
    /// The beginning of a day, this many days after today.
    Day(u64),
    /// The beginning of the next such weekday; Monday is 0.
    Weekday(u64),
}

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl FromStr for Until {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.to_ascii_lowercase();
        if word == "tomorrow" {
            return Ok(Self::Day(1));
        }
        if let Some((_, number)) = WEEKDAYS.iter().zip(0..).find(|(day, _)| **day == word || day[..3] == word) {
            return Ok(Self::Weekday(number));
        }
        if let Ok(span) = text.parse::<Span>() {
            return Ok(Self::In(span));
        }
        let ends = ["", "Z", ":00Z", "T00:00:00Z"];
        let found = ends.iter().find_map(|end| format!("{}{end}", text.replacen(' ', "T", 1)).parse::<When>().ok());
        found.map(|When(at)| Self::At(at)).ok_or_else(|| {
            format!(
                "{text:?} is not a time; write 2026-11-20T18:00Z, 2026-11-20, friday, tomorrow, or a duration from now \
                 like 2d"
            )
        })
    }
}

impl Until {
    pub(crate) fn after(self, now: Instant) -> When {
        let today = now.0 / DAY;
        // 1970-01-01 was a Thursday.
        let weekday = (today + 3) % 7;
        let midnight = |day: u64| Instant(day.saturating_mul(DAY));
        When(match self {
            Self::At(at) => at,
            Self::In(span) => now.saturating_add(span),
            Self::Day(days) => midnight(today + days),
            Self::Weekday(wanted) => midnight(today + 1 + (wanted + 7 - (weekday + 1) % 7) % 7),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_times_are_resolved_against_the_current_time() {
        // A Tuesday.
        let now = "2026-11-17T09:30:00Z".parse::<When>().expect("an instant").0;
        let at = |text: &str| text.parse::<Until>().map(|until| until.after(now).to_string());
        let is = |text: &str, expected: &str| assert_eq!(at(text), Ok(expected.to_owned()), "{text}");
        is("friday", "2026-11-20T00:00:00Z");
        is("Fri", "2026-11-20T00:00:00Z");
        is("tuesday", "2026-11-24T00:00:00Z");
        is("monday", "2026-11-23T00:00:00Z");
        is("wednesday", "2026-11-18T00:00:00Z");
        is("tomorrow", "2026-11-18T00:00:00Z");
        is("2d", "2026-11-19T09:30:00Z");
        is("2026-12-01", "2026-12-01T00:00:00Z");
        is("2026-12-01T18:00", "2026-12-01T18:00:00Z");
        is("2026-12-01 18:00Z", "2026-12-01T18:00:00Z");
        is("2026-12-01T18:00:30Z", "2026-12-01T18:00:30Z");
        assert!(at("soon").is_err());
    }
}
