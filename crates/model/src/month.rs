//! Billing months.

use crate::codec::{DecodeError, Field, Reader};
use crate::instant::{Instant, civil_from_days};
use std::fmt;
use std::str::FromStr;

/// A billing month in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(u32);

const DAY_NS: u64 = 86_400_000_000_000;

impl Month {
    /// `None` unless the month is 1 to 12 and the year 1970 to 2553.
    pub fn new(year: u32, month: u32) -> Option<Self> {
        ((1..=12).contains(&month) && (1970..=2553).contains(&year)).then(|| Self(year * 12 + month - 1))
    }

    /// The month that contains an instant.
    pub fn of(at: Instant) -> Self {
        let (year, month, _) = civil_from_days(at.0 / DAY_NS);
        Self(u32::try_from(year * 12 + month - 1).expect("years below 2555"))
    }

    pub const fn year(self) -> u32 {
        self.0 / 12
    }
    /// 1 to 12.
    pub const fn month(self) -> u32 {
        self.0 % 12 + 1
    }
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0 - 1)
    }

    /// Its first instant.
    pub fn start(self) -> Instant {
        // Years are counted from March, so that the leap day comes last.
        let (year, month) = (u64::from(self.year()), u64::from(self.month()));
        let year = if month <= 2 { year - 1 } else { year };
        let from_march = (month + 9) % 12;
        let day_of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + (153 * from_march + 2) / 5;
        Instant((year / 400 * 146_097 + day_of_era - 719_468) * DAY_NS)
    }
    /// The first instant after it.
    pub fn end(self) -> Instant {
        self.next().start()
    }
}

/// `2026-11`
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:04}-{:02}", self.year(), self.month()))
    }
}

/// A text that is not a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMonth(pub String);

impl fmt::Display for BadMonth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a month; write it like 2026-11", self.0)
    }
}
impl std::error::Error for BadMonth {}

impl FromStr for Month {
    type Err = BadMonth;
    fn from_str(text: &str) -> Result<Self, BadMonth> {
        let digits = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        let parts = text.split_once('-').filter(|(year, month)| digits(year, 4) && digits(month, 2));
        let month = parts.and_then(|(year, month)| Self::new(year.parse().ok()?, month.parse().ok()?));
        month.ok_or_else(|| BadMonth(text.to_owned()))
    }
}

impl Field for Month {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number: u32 = Field::get(r)?;
        Self::new(number / 12, number % 12 + 1).ok_or(DecodeError::Forbidden("a month that is out of range"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_start_and_end_where_the_calendar_says() {
        for (text, start) in [
            ("1970-01", "1970-01-01T00:00:00Z"),
            ("2024-02", "2024-02-01T00:00:00Z"),
            ("2024-03", "2024-03-01T00:00:00Z"),
            ("2026-12", "2026-12-01T00:00:00Z"),
            ("2100-03", "2100-03-01T00:00:00Z"),
        ] {
            let month: Month = text.parse().expect("a month");
            assert_eq!((month.to_string(), month.start().to_string()), (text.to_owned(), start.to_owned()));
            assert_eq!(Month::of(month.start()), month);
            assert_eq!(Month::of(Instant(month.end().0 - 1)), month);
            assert_eq!(Month::of(month.end()), month.next());
        }
        for bad in ["", "2026", "2026-13", "2026-00", "26-11", "2026-1", "2026-11-01", "+026-11"] {
            assert!(bad.parse::<Month>().is_err(), "{bad}");
        }
    }
}
