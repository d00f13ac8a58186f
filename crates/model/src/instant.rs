//! Time as integers: nanoseconds since 1970 UTC, and lengths of time (SEMANTICS 2).

use crate::codec::{DecodeError, Field, Reader, get_scaled, put_scaled};
use std::fmt;

/// A point in time, in nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Instant {
    pub const MAX: Self = Self(u64::MAX);

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }
    /// Adds `span`; on overflow, returns the largest instant, which means "never" for deadlines.
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// How long after `earlier` this is; zero if it is not after.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Self = Self(0);
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
}

/// Instants take eight bytes: as varints they would take nine.
impl Field for Instant {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(u64::from_le_bytes(r.array()?)))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Field for Span {
    fn put(&self, out: &mut Vec<u8>) {
        put_scaled(u128::from(self.0), out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        u64::try_from(get_scaled(r)?).map(Self).map_err(|_| DecodeError::BadInteger)
    }
}

/// The length of the longest instant: `2554-07-21T23:34:33.709551615Z`.
pub const WRITTEN_MAX: usize = 30;

impl Instant {
    /// RFC 3339 in UTC with as many decimals as the instant has, without allocating: every answer about a lease
    /// carries two of them.
    pub fn write(self, buffer: &mut [u8; WRITTEN_MAX]) -> &str {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let of_day = seconds % 86_400;
        let mut place = 0;
        let mut put = |number: u64, digits: usize, after: u8| {
            let mut rest = number;
            for at in (place..place + digits).rev() {
                buffer[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
                rest /= 10;
            }
            buffer[place + digits] = after;
            place += digits + 1;
        };
        put(year, 4, b'-');
        put(month, 2, b'-');
        put(day, 2, b'T');
        put(of_day / 3600, 2, b':');
        put(of_day / 60 % 60, 2, b':');
        if nanos == 0 {
            put(of_day % 60, 2, b'Z');
        } else {
            put(of_day % 60, 2, b'.');
            put(nanos, 9, b'Z');
            while buffer[place - 2] == b'0' {
                buffer[place - 2] = b'Z';
                place -= 1;
            }
        }
        std::str::from_utf8(&buffer[..place]).expect("digits and signs")
    }
}

/// As [`Instant::write`].
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.write(&mut [0; WRITTEN_MAX]))
    }
}

/// Proleptic Gregorian date of a day number since 1970-01-01. Whole 400-year eras have
/// 146,097 days; years are counted from March so that the leap day comes last.
pub(crate) fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// `90s`, `1h30m`, `250ms`: the largest units first, exact.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 7] = [
            (86_400_000_000_000, "d"),
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        let mut rest = self.0;
        let mut text = String::new();
        for (size, unit) in UNITS {
            if rest >= size {
                text.push_str(&format!("{}{unit}", rest / size));
                rest %= size;
            }
        }
        f.pad(if text.is_empty() { "0s" } else { &text })
    }
}

/// A length of time as people write it that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSpan(pub String);

impl fmt::Display for BadSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a length of time; write it like 90s, 10m, 1h30m, 2d or 250ms", self.0)
    }
}
impl std::error::Error for BadSpan {}

impl std::str::FromStr for Span {
    type Err = BadSpan;
    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan(text.to_owned());
        let mut rest = text.trim();
        let mut total: u64 = 0;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let size = match &rest[..letters] {
                "d" => 86_400_000_000_000,
                "h" => 3_600_000_000_000,
                "m" => 60_000_000_000,
                "s" => 1_000_000_000,
                "ms" => 1_000_000,
                "us" => 1_000,
                "ns" => 1,
                _ => return Err(bad()),
            };
            total = number.checked_mul(size).and_then(|ns| total.checked_add(ns)).ok_or_else(bad)?;
            rest = &rest[letters..];
        }
        Ok(Self(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_print_as_rfc_3339() {
        assert_eq!(Instant(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Instant::from_secs(1_709_164_800).to_string(), "2024-02-29T00:00:00Z");
        assert_eq!(Instant(1_767_225_599_000_000_500).to_string(), "2025-12-31T23:59:59.0000005Z");
    }

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, ns) in
            [("90s", 90_000_000_000), ("1h30m", 5_400_000_000_000), ("250ms", 250_000_000), ("2d", 172_800_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(Span(ns)));
        }
        for bad in ["", "5", "m", "1.5h", "-3s", "99999999999d", "1h x", "1y"] {
            assert!(bad.parse::<Span>().is_err(), "{bad} must not be a span");
        }
        assert_eq!(Span(5_400_000_000_001).to_string(), "1h30m1ns");
    }
}
