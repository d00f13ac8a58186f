//! Times as people write them: `today`, `last-week`, `1w`, `friday 18:00`, `2026-11-10T14:03`.
//!
//! Used for query parameters and by the command line. Bodies of requests take instants only ([`When`]). The text is
//! parsed first and resolved afterwards, because a word depends on the present instant, on the time zone, and on
//! whether the past or the future is meant.

mod zone;

pub use zone::{BadZone, Zone};

use crate::When;
use jiff::civil::{Date, Time, Weekday};
use jiff::{ToSpan, Zoned};
use leasehold_model::{Instant, Span};
use std::fmt;
use std::str::FromStr;
use zone::Unresolved;

/// The formats, for messages and help texts.
pub const FORMATS: &str = "2026-11-10, 2026-11-10T14:03, 2026-11-10T14:03:00Z, 2026-11, now, today, yesterday, tomorrow, \
     friday, week, last-week, next-week, month, last-month, next-month, or a length of time such as 7d or 1w; a day can \
     be followed by a time of day, as in \"friday 18:00\"";

/// A time as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    text: String,
    meant: Meant,
}

/// Whether `friday` and `7d` mean the last Friday and seven days ago, or the next Friday and in seven days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    Past,
    Future,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Meant {
    Now,
    /// With an offset from UTC.
    Instant(Instant),
    Length(Span),
    Day(Day, Option<Time>),
    /// Weeks from this one; they begin on Monday.
    Week(i64),
    /// Months from this one.
    Month(i64),
    /// The first day of a month that is given by its number.
    MonthOf(Date),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    Date(Date),
    /// Days from today.
    FromToday(i64),
    Weekday(Weekday),
}

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMoment {
    text: String,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Format,
    NoPeriod,
    OutOfRange,
    Skipped { zone: String },
    Twice { zone: String, offsets: [String; 2] },
}

impl fmt::Display for BadMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.text)?;
        match &self.why {
            Why::Format => write!(f, "is not a time; expected {FORMATS}"),
            Why::NoPeriod => f.write_str(
                "is a point in time, not a period; expected a day, a week, a month, or a length of time such as 7d",
            ),
            Why::OutOfRange => f.write_str("is outside the supported range, which is 1970 to 2554"),
            Why::Skipped { zone } => {
                write!(f, "does not exist in {zone}, because clocks are set forward then; give another time")
            }
            Why::Twice { zone, offsets: [first, second] } => write!(
                f,
                "exists twice in {zone}, because clocks are set back then; append the offset, {first} or {second}"
            ),
        }
    }
}
impl std::error::Error for BadMoment {}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Moment {
    type Err = BadMoment;
    fn from_str(text: &str) -> Result<Self, BadMoment> {
        match parse(text) {
            Some(meant) => Ok(Self { text: text.to_owned(), meant }),
            None => Err(BadMoment { text: text.to_owned(), why: Why::Format }),
        }
    }
}

fn parse(text: &str) -> Option<Meant> {
    Some(match text {
        "now" => Meant::Now,
        "week" => Meant::Week(0),
        "last-week" => Meant::Week(-1),
        "next-week" => Meant::Week(1),
        "month" => Meant::Month(0),
        "last-month" => Meant::Month(-1),
        "next-month" => Meant::Month(1),
        text => return month_of(text).or_else(|| length(text)).or_else(|| day_and_time(text)),
    })
}

/// `2026-11`.
fn month_of(text: &str) -> Option<Meant> {
    (text.len() == 7).then(|| date(&format!("{text}-01")))?.map(Meant::MonthOf)
}

/// `7d`, `1h30m`, and weeks, which durations of leases do not have.
fn length(text: &str) -> Option<Meant> {
    let Some((weeks, rest)) = text.split_once('w') else { return text.parse().ok().map(Meant::Length) };
    let weeks: u64 = weeks.bytes().all(|b| b.is_ascii_digit()).then(|| weeks.parse().ok())??;
    let rest: Span = if rest.is_empty() { Span::ZERO } else { rest.parse().ok()? };
    let week = Span::from_secs(7 * 86_400).0;
    weeks.checked_mul(week)?.checked_add(rest.0).map(|ns| Meant::Length(Span(ns)))
}

fn day_and_time(text: &str) -> Option<Meant> {
    // After a word only a space separates the time of day: most words contain a `t`.
    let (day_text, rest) = match text.split_once(' ') {
        Some((day, rest)) => (day, Some(rest)),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => match text.split_once(['T', 't']) {
            Some((day, rest)) => (day, Some(rest)),
            None => (text, None),
        },
        None => (text, None),
    };
    let day = day(day_text)?;
    let Some(rest) = rest else { return Some(Meant::Day(day, None)) };
    let (clock, offset) = offset_of(rest)?;
    let time = time(clock)?;
    match (offset, day) {
        (None, day) => Some(Meant::Day(day, Some(time))),
        (Some(seconds), Day::Date(date)) => {
            let utc = zone::instant_at_offset(date, time, seconds)?;
            Some(Meant::Instant(utc))
        }
        // The offset of a day that is given by a word is that of the time zone.
        (Some(_), _) => None,
    }
}

fn day(text: &str) -> Option<Day> {
    const WEEKDAYS: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let weekday = WEEKDAYS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    match text {
        "today" => Some(Day::FromToday(0)),
        "yesterday" => Some(Day::FromToday(-1)),
        "tomorrow" => Some(Day::FromToday(1)),
        text => weekday.map(|(_, weekday)| Day::Weekday(*weekday)).or_else(|| date(text).map(Day::Date)),
    }
}

fn digits<T: FromStr>(text: &str, count: usize) -> Option<T> {
    let plain = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// `2026-11-10`.
fn date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    Date::new(year, month, day).ok()
}

/// `14:03`, `14:03:20` or `14:03:20.5`.
fn time(text: &str) -> Option<Time> {
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let (second, nanos) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (digits(seconds, 2)?, 0),
            Some((seconds, decimals)) if (1..=9).contains(&decimals.len()) => {
                (digits(seconds, 2)?, digits(&format!("{decimals:0<9}"), 9)?)
            }
            Some(_) => return None,
        },
    };
    // A leap second has no nanosecond of its own since 1970.
    Time::new(hour, minute, second, nanos).ok().filter(|_| second < 60)
}

/// Splits off `Z` or `+02:00`, in seconds.
fn offset_of(text: &str) -> Option<(&str, Option<i32>)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, Some(0)));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, None)) };
    let (clock, offset) = text.split_at(at);
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes): (i32, i32) = (digits(hours, 2)?, digits(minutes, 2)?);
    let seconds = (hours <= 23 && minutes <= 59).then_some(hours * 3600 + minutes * 60)?;
    Some((clock, Some(if offset.starts_with('-') { -seconds } else { seconds })))
}

impl Moment {
    /// Its first instant.
    pub fn instant(&self, now: Instant, zone: &Zone, toward: Toward) -> Result<Instant, BadMoment> {
        self.starting(now, zone, toward).map_err(|unresolved| self.bad(unresolved, zone))
    }

    /// The day, week, month or stretch that it names: its first instant, and the first after it.
    pub fn period(&self, now: Instant, zone: &Zone, toward: Toward) -> Result<(Instant, Instant), BadMoment> {
        let bad = |why| BadMoment { text: self.text.clone(), why };
        let step = match self.meant {
            Meant::Length(_) => {
                let at = self.instant(now, zone, toward)?;
                return Ok((at.min(now), at.max(now)));
            }
            Meant::Day(_, None) => 1.day(),
            Meant::Week(_) => 1.week(),
            Meant::Month(_) | Meant::MonthOf(_) => 1.month(),
            Meant::Now | Meant::Instant(_) | Meant::Day(_, Some(_)) => return Err(bad(Why::NoPeriod)),
        };
        let day = self.first_day(now, zone, toward).ok_or_else(|| bad(Why::OutOfRange))?;
        let next = day.checked_add(step).map_err(|_| bad(Why::OutOfRange))?;
        let start = |day| zone.start_of(day).map_err(|unresolved| self.bad(unresolved, zone));
        Ok((start(day)?, start(next)?))
    }

    fn starting(&self, now: Instant, zone: &Zone, toward: Toward) -> Result<Instant, Unresolved> {
        let in_range = |ns: Option<u64>| ns.map(Instant).ok_or(Unresolved::OutOfRange);
        match self.meant {
            Meant::Now => Ok(now),
            Meant::Instant(at) => Ok(at),
            Meant::Length(span) => match toward {
                Toward::Past => Ok(Instant(now.0.saturating_sub(span.0))),
                Toward::Future => in_range(now.0.checked_add(span.0)),
            },
            Meant::Day(_, Some(time)) => {
                zone.instant(self.first_day(now, zone, toward).ok_or(Unresolved::OutOfRange)?, time)
            }
            Meant::Day(_, None) | Meant::Week(_) | Meant::Month(_) | Meant::MonthOf(_) => {
                zone.start_of(self.first_day(now, zone, toward).ok_or(Unresolved::OutOfRange)?)
            }
        }
    }

    /// The day on which it begins, in this zone.
    fn first_day(&self, now: Instant, zone: &Zone, toward: Toward) -> Option<Date> {
        let now: Zoned = zone.zoned(now).ok()?;
        let today = now.date();
        let monday = || today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok();
        match self.meant {
            Meant::Now | Meant::Instant(_) | Meant::Length(_) => Some(today),
            Meant::Day(Day::Date(date), _) | Meant::MonthOf(date) => Some(date),
            Meant::Day(Day::FromToday(days), _) => today.checked_add(days.days()).ok(),
            Meant::Day(Day::Weekday(weekday), time) => {
                // Today counts if the time of day that was given lies on the asked side of now.
                let of_day = time.unwrap_or(Time::midnight());
                let (step, counts) = match toward {
                    Toward::Past => (-1, of_day <= now.time()),
                    Toward::Future => (1, of_day > now.time()),
                };
                let mut day = if counts { today } else { today.checked_add(step.days()).ok()? };
                while day.weekday() != weekday {
                    day = day.checked_add(step.days()).ok()?;
                }
                Some(day)
            }
            Meant::Week(weeks) => monday()?.checked_add(weeks.weeks()).ok(),
            Meant::Month(months) => today.first_of_month().checked_add(months.months()).ok(),
        }
    }

    fn bad(&self, unresolved: Unresolved, zone: &Zone) -> BadMoment {
        let zone = zone.to_string();
        let why = match unresolved {
            Unresolved::OutOfRange => Why::OutOfRange,
            Unresolved::Skipped => Why::Skipped { zone },
            Unresolved::Twice(offsets) => Why::Twice { zone, offsets },
        };
        BadMoment { text: self.text.clone(), why }
    }
}

impl From<When> for Moment {
    fn from(when: When) -> Self {
        Self { text: when.to_string(), meant: Meant::Instant(when.0) }
    }
}

#[cfg(test)]
mod tests;
