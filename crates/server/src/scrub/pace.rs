//! Reading at a limited rate.

use std::time::{Duration, Instant};

/// The longest pause at once, so that a stop is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Says how long to wait after each read.
pub(super) struct Pace {
    bytes_per_second: u64,
    /// When what was read so far should have been read.
    due: Instant,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u64, now: Instant) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), due: now }
    }

    /// Counts bytes that were read.
    pub(super) fn read(&mut self, bytes: u64, now: Instant) {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let length = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        // Time in which nothing was read is not made up for.
        self.due = self.due.max(now) + length;
    }

    /// How long to wait before the next read, in steps; none if it may begin.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let rest = self.due.saturating_duration_since(now);
        (rest > Duration::from_millis(1)).then(|| rest.min(PAUSE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        let begin = Instant::now();
        let mut pace = Pace::new(32 << 20, begin);
        assert_eq!(pace.pause(begin), None);
        pace.read(16 << 20, begin);
        assert_eq!(pace.pause(begin), Some(PAUSE_MAX));
        let later = begin + Duration::from_millis(450);
        assert_eq!(pace.pause(later), Some(Duration::from_millis(50)));
        assert_eq!(pace.pause(begin + Duration::from_millis(500)), None);
        // After a long pause nothing is read faster.
        let later = begin + Duration::from_secs(60);
        pace.read(32 << 20, later);
        assert_eq!(pace.pause(later + Duration::from_millis(950)), Some(Duration::from_millis(50)));
    }
}
