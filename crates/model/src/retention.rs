//! For how long something must be kept: a number of calendar years, or a length of time.

use crate::instant::{Instant, Span, civil_from_days};
use crate::month::Month;
use std::fmt;
use std::str::FromStr;

/// For how long something must be kept after it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Until the same date and time, so many years later, in UTC. What was recorded on 29 February is kept until
    /// 1 March if that year has no such day. Seven years are 2,556 or 2,557 days, by the leap days between.
    Years(u32),
    For(Span),
}

/// Instants end in 2554.
const YEARS_MAX: u32 = 500;
const DAY_NS: u64 = 86_400_000_000_000;

impl Retention {
    /// The first instant at which what was recorded then need not be kept any more.
    pub fn until(self, recorded: Instant) -> Instant {
        match self {
            Self::For(span) => recorded.saturating_add(span),
            Self::Years(years) => {
                let (year, month, day) = civil_from_days(recorded.0 / DAY_NS);
                let narrow = |number: u64| u32::try_from(number).ok();
                let later = narrow(year).and_then(|year| Month::new(year.checked_add(years)?, narrow(month)?));
                // Counted in days from the first of the month, 29 February becomes 1 March.
                later.map_or(Instant::MAX, |month| {
                    month.start().saturating_add(Span((day - 1) * DAY_NS + recorded.0 % DAY_NS))
                })
            }
        }
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Years(years) => write!(f, "{years}y"),
            Self::For(span) => span.fmt(f),
        }
    }
}

/// A text that is not a retention period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRetention(pub String);

impl fmt::Display for BadRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a retention period; write it like 7y (at most {YEARS_MAX}y) or 400d", self.0)
    }
}
impl std::error::Error for BadRetention {}

impl FromStr for Retention {
    type Err = BadRetention;
    fn from_str(text: &str) -> Result<Self, BadRetention> {
        let bad = || BadRetention(text.to_owned());
        let Some(years) = text.trim().strip_suffix('y') else {
            return text.parse().map(Self::For).map_err(|_| bad());
        };
        let all_digits = !years.is_empty() && years.bytes().all(|byte| byte.is_ascii_digit());
        let years = years.parse().ok().filter(|years| all_digits && *years <= YEARS_MAX);
        years.map(Self::Years).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first instant of a day, and so many nanoseconds.
    fn at(month: &str, day: u64, ns: u64) -> Instant {
        let month: Month = month.parse().expect("a month");
        Instant(month.start().0 + (day - 1) * DAY_NS + ns)
    }

    #[test]
    fn years_are_those_of_the_calendar() {
        let seven: Retention = "7y".parse().expect("a period");
        // One leap day lies between, and two.
        assert_eq!(seven.until(at("2024-06", 15, 7)), at("2031-06", 15, 7));
        assert_eq!(seven.until(at("2024-06", 15, 0)).since(at("2024-06", 15, 0)), Span(2556 * DAY_NS));
        assert_eq!(seven.until(at("2026-11", 18, 0)).since(at("2026-11", 18, 0)), Span(2557 * DAY_NS));
        // A leap day itself is kept a day longer where the year has none.
        assert_eq!(seven.until(at("2024-02", 29, 5)), at("2031-03", 1, 5));
        assert_eq!(Retention::Years(4).until(at("2024-02", 29, 5)), at("2028-02", 29, 5));
        assert_eq!(seven.until(at("2024-02", 28, 5)), at("2031-02", 28, 5));
        // 2100 is no leap year.
        assert_eq!(Retention::Years(1).until(at("2100-02", 28, 0)), at("2101-02", 28, 0));
        assert_eq!(Retention::Years(4).until(at("2096-02", 29, 0)), at("2100-03", 1, 0));
        assert_eq!(Retention::Years(500).until(at("2100-01", 1, 0)), Instant::MAX);
        assert_eq!(Retention::Years(0).until(Instant(5)), Instant(5));
    }

    #[test]
    fn periods_read_as_people_write_them() {
        for (text, period) in [
            ("7y", Retention::Years(7)),
            ("400d", Retention::For(Span(400 * DAY_NS))),
            ("36h", Retention::For(Span::from_secs(36 * 3600))),
        ] {
            assert_eq!(text.parse(), Ok(period));
        }
        for bad in ["", "y", "-7y", "+7y", "7 y", "7.5y", "501y", "99999999999y", "7years", "1y6m", "7"] {
            assert!(bad.parse::<Retention>().is_err(), "{bad}");
        }
        assert_eq!(
            (Retention::Years(7).to_string(), Retention::For(Span(DAY_NS)).to_string()),
            ("7y".into(), "1d".into())
        );
    }
}
