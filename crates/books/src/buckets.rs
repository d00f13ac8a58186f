//! Splits a window into minutes, hours, days or months, in UTC or another time zone.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Unit, Zoned, ZonedRound};
use leasehold_meter::Window;
use leasehold_model::{Instant, words};
use std::fmt;

words! {
    pub enum Bucket {
        Minute = 1 "minute",
        Hour = 2 "hour",
        Day = 3 "day",
        Month = 4 "month",
    }
}

/// The most intervals of one question.
pub const BUCKETS_MAX: usize = 100_000;

/// Why a window cannot be split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadBuckets {
    UnknownZone(String),
    TooMany,
    /// Beyond the years that the calendar supports.
    OutOfTime,
}

impl fmt::Display for BadBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownZone(zone) => {
                write!(f, "unknown time zone {zone:?}; give an IANA name such as Europe/Tallinn, or UTC")
            }
            Self::TooMany => {
                write!(f, "more than {BUCKETS_MAX} buckets; use a shorter window or longer buckets")
            }
            Self::OutOfTime => f.write_str("the window contains years that the calendar does not support"),
        }
    }
}
impl std::error::Error for BadBuckets {}

/// The length of a bucket.
#[derive(Clone, Debug)]
pub struct Buckets {
    bucket: Bucket,
    zone: TimeZone,
}

fn timestamp(at: Instant) -> Result<Timestamp, BadBuckets> {
    Timestamp::from_nanosecond(at.0.into()).map_err(|_| BadBuckets::OutOfTime)
}

fn instant(at: &Zoned) -> Result<Instant, BadBuckets> {
    u64::try_from(at.timestamp().as_nanosecond()).map(Instant).map_err(|_| BadBuckets::OutOfTime)
}

impl Buckets {
    /// `zone`: an IANA name; UTC if none.
    pub fn new(bucket: Bucket, zone: Option<&str>) -> Result<Self, BadBuckets> {
        Ok(Self { bucket, zone: zone_named(zone)? })
    }

    /// The ends of the window and all bucket boundaries between them, in order.
    pub fn borders(&self, window: Window) -> Result<Vec<Instant>, BadBuckets> {
        let mut borders = vec![window.from];
        if !window.is_empty() {
            let (unit, step): (Unit, Span) = match self.bucket {
                Bucket::Minute => (Unit::Minute, 1.minute()),
                Bucket::Hour => (Unit::Hour, 1.hour()),
                Bucket::Day => (Unit::Day, 1.day()),
                Bucket::Month => (Unit::Month, 1.month()),
            };
            let mut at = start_of(timestamp(window.from)?.to_zoned(self.zone.clone()), unit)?;
            loop {
                // From the start of one day to the start of the next, so that days of 23 and 25 hours are correct.
                let later = at.checked_add(step).map_err(|_| BadBuckets::OutOfTime)?;
                let start = start_of(later.clone(), unit)?;
                // If clocks go back by half an hour, the local start of the hour can be before the current boundary.
                at = if start > at { start } else { later };
                // Beyond the last instant is beyond the window.
                let Some(border) = instant(&at).ok().filter(|border| *border < window.to) else { break };
                if border > window.from {
                    borders.push(border);
                }
                if borders.len() > BUCKETS_MAX {
                    return Err(BadBuckets::TooMany);
                }
            }
        }
        borders.push(window.to.max(window.from));
        Ok(borders)
    }
}

impl Buckets {
    /// The name of each interval between neighbouring borders in the time zone: `2026-11-10` for a day.
    pub fn labels(&self, borders: &[Instant]) -> Result<Vec<String>, BadBuckets> {
        let format = match self.bucket {
            Bucket::Minute | Bucket::Hour => "%Y-%m-%dT%H:%M%:z",
            Bucket::Day => "%Y-%m-%d",
            Bucket::Month => "%Y-%m",
        };
        let starts = borders.iter().take(borders.len().saturating_sub(1));
        starts.map(|at| Ok(timestamp(*at)?.to_zoned(self.zone.clone()).strftime(format).to_string())).collect()
    }
}

fn start_of(at: Zoned, unit: Unit) -> Result<Zoned, BadBuckets> {
    if unit == Unit::Month {
        return at.first_of_month().and_then(|first| first.start_of_day()).map_err(|_| BadBuckets::OutOfTime);
    }
    if unit == Unit::Day {
        return at.start_of_day().map_err(|_| BadBuckets::OutOfTime);
    }
    at.round(ZonedRound::new().smallest(unit).mode(jiff::RoundMode::Trunc)).map_err(|_| BadBuckets::OutOfTime)
}

fn zone_named(zone: Option<&str>) -> Result<TimeZone, BadBuckets> {
    match zone {
        None => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| BadBuckets::UnknownZone(name.to_owned())),
    }
}

/// The month that contains an instant.
pub fn month_of(at: Instant, zone: Option<&str>) -> Result<Window, BadBuckets> {
    let first = start_of(timestamp(at)?.to_zoned(zone_named(zone)?), Unit::Month)?;
    let next = start_of(first.checked_add(1.month()).map_err(|_| BadBuckets::OutOfTime)?, Unit::Month)?;
    Ok(Window::new(instant(&first)?, instant(&next)?))
}
