//! How long a month waits for records that cannot be read.

use leasehold_model::{Instant, Month, Span};
use std::sync::{Mutex, PoisonError};

/// A month that has waited for so long is closed without statements. Long enough for a person to mount an archive or to
/// bring a segment back; until then no hours are posted.
const WAITS: Span = Span::from_secs(24 * 3600);
/// How often the records are read again.
const EVERY: Span = Span::from_secs(60);

/// Since when the records of a month cannot be read.
#[derive(Clone, Debug)]
struct Waiting {
    month: Month,
    since: Instant,
    tried: Instant,
    why: String,
}

/// It begins anew with the process.
#[derive(Debug, Default)]
pub(super) struct Patience(Mutex<Option<Waiting>>);

impl Patience {
    /// Why the records of the month could not be read a moment ago. `None` if it is time to read them.
    pub(super) fn not_yet(&self, month: Month, now: Instant) -> Option<String> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = waiting.as_ref().filter(|waiting| waiting.month == month)?;
        (now.since(waiting.tried) < EVERY).then(|| waiting.why.clone())
    }

    /// Notes that the records of the month cannot be read. False if that has lasted for too long.
    pub(super) fn failed(&self, month: Month, now: Instant, why: &str) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = waiting.as_ref().filter(|waiting| waiting.month == month).map_or(now, |waiting| waiting.since);
        *waiting = Some(Waiting { month, since, tried: now, why: why.to_owned() });
        now.since(since) < WAITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_waits_for_a_day_and_is_read_each_minute() {
        let (patience, began) = (Patience::default(), Instant::from_secs(1_769_894_400));
        let (month, after) = (Month::of(began), |seconds: u64| Instant::from_secs(1_769_894_400 + seconds));
        assert_eq!(patience.not_yet(month, began), None);
        assert!(patience.failed(month, began, "segment 1 is not there"));
        assert_eq!(patience.not_yet(month, after(59)).as_deref(), Some("segment 1 is not there"));
        assert_eq!(patience.not_yet(month, after(60)), None);
        assert!(patience.failed(month, after(24 * 3600 - 1), "an error"));
        assert!(!patience.failed(month, after(24 * 3600), "an error"));
        // Another month has its own day.
        assert_eq!(patience.not_yet(month.next(), after(24 * 3600)), None);
        assert!(patience.failed(month.next(), after(24 * 3600), "an error"));
    }
}
