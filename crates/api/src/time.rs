//! Instants and lengths of time in JSON.

use leasehold_model::instant::WRITTEN_MAX;
use leasehold_model::{Instant, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An instant in RFC 3339 format, in UTC, with up to nine decimals. Exact to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(pub Instant);

/// A length of time: `90s`, `10m`, `1h30m`, `2d`, `250ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(pub Span);

/// The text is not an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadWhen(String);

impl fmt::Display for BadWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an instant; write it in UTC like 2026-03-01T12:00:00Z", self.0)
    }
}
impl std::error::Error for BadWhen {}

impl When {
    /// Writes the instant without allocating; see [`Instant::write`].
    pub fn write(self, buffer: &mut [u8; WRITTEN_MAX]) -> &str {
        self.0.write(buffer)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for When {
    type Err = BadWhen;
    fn from_str(text: &str) -> Result<Self, BadWhen> {
        parse(text).map(|ns| Self(Instant(ns))).ok_or_else(|| BadWhen(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let sign = |at: usize, sign: u8| bytes.get(at).is_some_and(|b| b.eq_ignore_ascii_case(&sign));
    let separators = sign(4, b'-') && sign(7, b'-') && sign(10, b'T') && sign(13, b':') && sign(16, b':');
    if !separators {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = bytes.get(from..to)?;
        digits.iter().all(u8::is_ascii_digit).then(|| digits.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    let in_range = (1..=12).contains(&month) && (1..=month_days).contains(&day);
    if !in_range || year < 1970 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = text.get(19..)?.strip_suffix(['Z', 'z']).or_else(|| text.get(19..)?.strip_suffix("+00:00"))?;
    let nanos = match rest.strip_prefix('.') {
        None if rest.is_empty() => 0,
        Some(decimals) if (1..=9).contains(&decimals.len()) => {
            let all_digits = decimals.bytes().all(|b| b.is_ascii_digit());
            let scale = 10u64.pow(9 - u32::try_from(decimals.len()).ok()?);
            decimals.parse::<u64>().ok().filter(|_| all_digits)? * scale
        }
        _ => return None,
    };
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Days between 1970-01-01 and a date in the Gregorian calendar. Years are counted from March, in eras of 400 years.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl From<Instant> for When {
    fn from(at: Instant) -> Self {
        Self(at)
    }
}
impl From<Span> for Ttl {
    fn from(span: Span) -> Self {
        Self(span)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl FromStr for Ttl {
    type Err = leasehold_model::instant::BadSpan;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

macro_rules! as_text {
    ($($t:ident $expecting:literal $schema:expr;)*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $t;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$t, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
        impl JsonSchema for $t {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($t).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

/// Every instant that can be written: the years that 64 bits of nanoseconds reach, and the days of each month.
const WHEN_PATTERN: &str = "^(19[7-9][0-9]|2[0-4][0-9]{2}|25[0-4][0-9]|255[0-4])-\
    ((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))\
    T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?Z$";

as_text! {
    When "an instant in UTC like \"2026-03-01T12:00:00Z\"" json_schema!({
        "type": "string",
        "format": "date-time",
        "pattern": WHEN_PATTERN,
        "description": "An instant in UTC, exact to the nanosecond.",
    });
    Ttl "a length of time like \"10m\"" json_schema!({
        "type": "string",
        "pattern": "^([0-9]{1,9}(d|h|m|s|ms|us|ns))+$",
        "description": "A length of time: 90s, 10m, 1h30m, 2d, 250ms.",
        "examples": ["10m"],
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn instants_are_written_as_in_the_model_and_read_back(ns in any::<u64>()) {
            let when = When(Instant(ns));
            prop_assert_eq!(when.to_string(), Instant(ns).to_string());
            prop_assert_eq!(when.to_string().parse(), Ok(when));
        }
    }

    #[test]
    fn text_that_is_not_an_instant_is_refused() {
        for text in [
            "",
            "now",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "1969-12-31T23:59:59Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.0000000001Z",
            "2026-01-01T00:00:00+01:00",
            "9999-01-01T00:00:00Z",
            "2026-01-01T00:00:00.+1Z",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<When>(), Err(BadWhen(text.to_owned())), "{text}");
        }
        assert_eq!(
            "2024-02-29T00:00:00.5+00:00".parse::<When>().map(|w| w.to_string()),
            Ok("2024-02-29T00:00:00.5Z".into())
        );
    }
}
