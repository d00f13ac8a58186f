//! The schedule of heartbeats: at regular intervals, at once after an event, and again while the answers do not
//! include that event yet.

use std::time::{Duration, Instant};

/// The shortest time between two heartbeats.
const GAP: Duration = Duration::from_millis(50);
/// The pause after a heartbeat that failed.
const RETRY: Duration = Duration::from_secs(1);
/// The most answers in a row that may be older than an event. After more, the event cannot have come from this daemon.
const OUTDATED_MAX: u32 = 20;

#[derive(Debug)]
pub(crate) struct Beat {
    every: Duration,
    due: Instant,
    begun: Instant,
    in_flight: bool,
    /// Another heartbeat is needed after the one in flight.
    is_requested: bool,
    /// The journal size that an answer must reach. An event can arrive before the daemon's read state includes it.
    min_size: u64,
    outdated: u32,
    failing_since: Option<Instant>,
}

impl Beat {
    pub(crate) fn new(now: Instant, every: Duration) -> Self {
        let (in_flight, is_requested, failing_since) = (false, false, None);
        Self { every, due: now, begun: now, in_flight, is_requested, min_size: 0, outdated: 0, failing_since }
    }

    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    /// When to send the next heartbeat; `None` while one is in flight.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.in_flight).then_some(self.due)
    }

    pub(crate) fn begin(&mut self, now: Instant) {
        assert!(!self.in_flight, "only one heartbeat is in flight at a time, so that they arrive in order");
        self.begun = now;
        (self.in_flight, self.is_requested) = (true, false);
    }

    /// An event happened; `sequence` is its record, if known.
    pub(crate) fn woken(&mut self, sequence: Option<u64>) {
        match sequence {
            Some(sequence) => self.min_size = self.min_size.max(sequence.saturating_add(1)),
            None => self.is_requested = true,
        }
        self.due = self.due.min(self.begun + GAP);
    }

    /// Handles an answer; `size` is the journal size that it includes. Returns how long heartbeats had failed before,
    /// if they had.
    pub(crate) fn answered(&mut self, now: Instant, size: u64) -> Option<Duration> {
        self.in_flight = false;
        self.outdated = if size < self.min_size { self.outdated + 1 } else { 0 };
        if self.outdated == 0 || self.outdated > OUTDATED_MAX {
            (self.min_size, self.outdated) = (0, 0);
        }
        let is_enough = self.outdated == 0 && !self.is_requested;
        self.due = self.begun + if is_enough { self.every } else { GAP };
        self.failing_since.take().map(|since| now.duration_since(since))
    }

    /// Handles a heartbeat without an answer. Returns whether it is the first failure.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        self.in_flight = false;
        self.due = now + RETRY;
        let is_new = self.failing_since.is_none();
        self.failing_since.get_or_insert(now);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(20);

    #[test]
    fn regularly_unless_something_happens() {
        let now = Instant::now();
        let mut beat = Beat::new(now, EVERY);
        assert_eq!(beat.due(), Some(now), "the first heartbeat is due at once");
        beat.begin(now);
        assert_eq!(beat.due(), None);
        assert_eq!(beat.answered(now, 10), None);
        assert_eq!(beat.due(), Some(now + EVERY));
        beat.woken(Some(10));
        assert_eq!(beat.due(), Some(now + GAP));
    }

    #[test]
    fn an_answer_older_than_an_event_is_not_enough() {
        let now = Instant::now();
        let mut beat = Beat::new(now, EVERY);
        beat.begin(now);
        beat.woken(Some(10));
        beat.answered(now, 10);
        assert_eq!(beat.due(), Some(now + GAP), "records 0 to 9 are known, 10 is not");
        beat.begin(now);
        beat.answered(now, 11);
        assert_eq!(beat.due(), Some(now + EVERY));
        // An event without a sequence needs a heartbeat that is sent after it.
        beat.begin(now);
        beat.woken(None);
        beat.answered(now, 99);
        assert_eq!(beat.due(), Some(now + GAP));
    }

    #[test]
    fn fast_retries_end_if_the_event_never_appears() {
        let now = Instant::now();
        let mut beat = Beat::new(now, EVERY);
        beat.woken(Some(1000));
        let mut fast = 0;
        loop {
            beat.begin(now);
            beat.answered(now, 5);
            if beat.due() == Some(now + EVERY) {
                break;
            }
            fast += 1;
        }
        assert_eq!(fast, OUTDATED_MAX);
    }

    #[test]
    fn a_failure_is_reported_once_and_so_is_its_end() {
        let now = Instant::now();
        let mut beat = Beat::new(now, EVERY);
        beat.begin(now);
        assert!(beat.failed(now));
        assert_eq!(beat.due(), Some(now + RETRY));
        beat.begin(now + RETRY);
        assert!(!beat.failed(now + RETRY));
        beat.begin(now + 2 * RETRY);
        assert_eq!(beat.answered(now + 2 * RETRY, 1), Some(2 * RETRY));
    }
}
