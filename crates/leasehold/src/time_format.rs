//! Formats durations and instants for people.

use leasehold_api::{When, Zone};
use leasehold_model::{Instant, Span};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The time zone in which instants are printed for people; set once, from the command line. UTC if unset.
static SHOWN_IN: OnceLock<Zone> = OnceLock::new();

/// Prints instants in this time zone from now on.
pub(crate) fn show_in(zone: Zone) {
    let _ = SHOWN_IN.set(zone);
}

/// The instant in the time zone of the output, to the second.
fn local(at: Instant) -> String {
    SHOWN_IN.get_or_init(Zone::default).local(at)
}

/// This machine's wall clock.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Instant(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// `9m 40s`: the two largest units, rounded down.
pub(crate) fn span(span: Span) -> String {
    const UNITS: [(u64, &str); 5] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
    ];
    let Some(first) = UNITS.iter().position(|(size, _)| span.0 >= *size) else { return "0s".into() };
    let (size, unit) = UNITS[first];
    let mut text = format!("{}{unit}", span.0 / size);
    // Durations below a minute have only one unit.
    if let Some((next, unit)) = UNITS.get(first + 1).filter(|(next, _)| *next >= 1_000_000_000) {
        let rest = span.0 % size / next;
        if rest > 0 {
            text.push_str(&format!(" {rest}{unit}"));
        }
    }
    text
}

/// `in 9m 40s`, `3m 2s ago`, `now`.
pub(crate) fn distance(at: When, now: Instant) -> String {
    let (ahead, behind) = (at.0.since(now), now.since(at.0));
    match (ahead.as_secs(), behind.as_secs()) {
        (0, 0) => "now".into(),
        (0, _) => format!("{} ago", span(behind)),
        _ => format!("in {}", span(ahead)),
    }
}

/// `12:00:03`, with the date if it is not today.
pub(crate) fn clock(at: Instant, now: Instant) -> String {
    let (text, today) = (local(at), local(now));
    let (date, time) = text.split_once('T').unwrap_or(("", &text));
    let time = time.get(..8).unwrap_or(time);
    if today.starts_with(date) { time.to_owned() } else { format!("{date} {time}") }
}

/// The instant, rounded down to whole seconds.
pub(crate) fn to_the_second(at: When) -> String {
    local(at.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_for_people() {
        let secs = |secs| span(Span::from_secs(secs));
        assert_eq!([secs(0), secs(59), secs(580), secs(3600), secs(7500)], ["0s", "59s", "9m 40s", "1h", "2h 5m"]);
        assert_eq!(secs(3 * 86_400 + 4 * 3600 + 59), "3d 4h");
        assert_eq!(span(Span::from_millis(850)), "850ms");
        assert_eq!(span(Span(999)), "0s");
        let now = Instant::from_secs(1_000_000);
        let at = |secs| distance(When(Instant::from_secs(secs)), now);
        assert_eq!([at(1_000_580), at(999_818), at(1_000_000)], ["in 9m 40s", "3m 2s ago", "now"]);
        let day = Instant::from_secs(1_767_225_603);
        assert_eq!(clock(day, Instant::from_secs(1_767_300_000)), "00:00:03");
        assert_eq!(clock(day, Instant::from_secs(1_768_300_000)), "2026-01-01 00:00:03");
    }
}
