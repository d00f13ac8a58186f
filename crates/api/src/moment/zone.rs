//! Time zones: which instant a local date and time is.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use leasehold_model::Instant;
use std::fmt;
use std::str::FromStr;

/// An IANA time zone, such as Europe/Tallinn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// The default is UTC.
impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

/// The name is not that of a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadZone(String);

impl fmt::Display for BadZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown time zone {:?}; give an IANA name such as Europe/Tallinn, or UTC", self.0)
    }
}
impl std::error::Error for BadZone {}

impl FromStr for Zone {
    type Err = BadZone;
    fn from_str(name: &str) -> Result<Self, BadZone> {
        TimeZone::get(name).map(Self).map_err(|_| BadZone(name.to_owned()))
    }
}

/// The IANA name.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

/// Why a local time is not one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    OutOfRange,
    Skipped,
    Twice([String; 2]),
}

fn instant(at: Timestamp) -> Result<Instant, Unresolved> {
    u64::try_from(at.as_nanosecond()).map(Instant).map_err(|_| Unresolved::OutOfRange)
}

/// The instant of a local time whose offset from UTC is known.
pub(super) fn instant_at_offset(date: Date, time: Time, seconds: i32) -> Option<Instant> {
    let offset = Offset::from_seconds(seconds).ok()?;
    instant(offset.to_timestamp(date.to_datetime(time)).ok()?).ok()
}

impl Zone {
    pub(super) fn zoned(&self, at: Instant) -> Result<Zoned, Unresolved> {
        let at = Timestamp::from_nanosecond(at.0.into()).map_err(|_| Unresolved::OutOfRange)?;
        Ok(at.to_zoned(self.0.clone()))
    }

    /// The first instant of a day, which is not midnight where clocks are set forward at midnight.
    pub(super) fn start_of(&self, day: Date) -> Result<Instant, Unresolved> {
        let start = day.to_zoned(self.0.clone()).and_then(|midnight| midnight.start_of_day());
        instant(start.map_err(|_| Unresolved::OutOfRange)?.timestamp())
    }

    pub(super) fn instant(&self, day: Date, time: Time) -> Result<Instant, Unresolved> {
        let local: DateTime = day.to_datetime(time);
        let ambiguous = self.0.to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => {
                instant(ambiguous.unambiguous().map_err(|_| Unresolved::OutOfRange)?)
            }
            AmbiguousOffset::Gap { .. } => Err(Unresolved::Skipped),
            AmbiguousOffset::Fold { before, after } => Err(Unresolved::Twice([written(before), written(after)])),
        }
    }

    /// The instant as a local time with its offset, to the second: `2026-11-10T14:03:00+02:00`.
    pub fn local(&self, at: Instant) -> String {
        let Ok(zoned) = self.zoned(at) else { return at.to_string() };
        let offset = if zoned.offset() == Offset::UTC { "Z".into() } else { written(zoned.offset()) };
        format!("{}{offset}", zoned.strftime("%Y-%m-%dT%H:%M:%S"))
    }

    /// The local date.
    pub fn date(&self, at: Instant) -> String {
        self.zoned(at).map_or_else(|_| at.to_string(), |zoned| zoned.date().to_string())
    }

    pub fn is_utc(&self) -> bool {
        self.0 == TimeZone::UTC
    }
}

/// `+02:00`.
fn written(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}
