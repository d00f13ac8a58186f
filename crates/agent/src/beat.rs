//! When the next heartbeat is due: regularly, at once where something happened, and again where the answer does not
//! know of it yet.

use std::time::{Duration, Instant};

/// Between heartbeats that are hurried.
const GAP: Duration = Duration::from_millis(50);
/// After one that failed.
const RETRY: Duration = Duration::from_secs(1);
/// Answers in a row that may be behind an event. More, and the daemon is not the one that the event came from.
const BEHIND_MAX: u32 = 20;

#[derive(Debug)]
pub(crate) struct Beat {
    every: Duration,
    due: Instant,
    begun: Instant,
    is_under_way: bool,
    /// One that has begun already does not do.
    is_wanted: bool,
    /// Of how many records an answer must know: an event may be here before what the daemon answers from.
    must_know: u64,
    behind: u32,
    failing_since: Option<Instant>,
}

impl Beat {
    pub(crate) fn new(now: Instant, every: Duration) -> Self {
        let (is_under_way, is_wanted, failing_since) = (false, false, None);
        Self { every, due: now, begun: now, is_under_way, is_wanted, must_know: 0, behind: 0, failing_since }
    }

    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    /// When to begin the next; none while one is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.is_under_way).then_some(self.due)
    }

    pub(crate) fn begin(&mut self, now: Instant) {
        assert!(!self.is_under_way, "heartbeats are in order because there is one at a time");
        self.begun = now;
        (self.is_under_way, self.is_wanted) = (true, false);
    }

    /// Something happened, with this record if it is known.
    pub(crate) fn woken(&mut self, sequence: Option<u64>) {
        match sequence {
            Some(sequence) => self.must_know = self.must_know.max(sequence.saturating_add(1)),
            None => self.is_wanted = true,
        }
        self.due = self.due.min(self.begun + GAP);
    }

    /// An answer that knows of so many records. Returns how long there was none before, if there was none.
    pub(crate) fn answered(&mut self, now: Instant, size: u64) -> Option<Duration> {
        self.is_under_way = false;
        self.behind = if size < self.must_know { self.behind + 1 } else { 0 };
        if self.behind == 0 || self.behind > BEHIND_MAX {
            (self.must_know, self.behind) = (0, 0);
        }
        let is_enough = self.behind == 0 && !self.is_wanted;
        self.due = self.begun + if is_enough { self.every } else { GAP };
        self.failing_since.take().map(|since| now.duration_since(since))
    }

    /// No answer. Returns whether that is new.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        self.is_under_way = false;
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
        assert_eq!(beat.due(), Some(now), "the first at once");
        beat.begin(now);
        assert_eq!(beat.due(), None);
        assert_eq!(beat.answered(now, 10), None);
        assert_eq!(beat.due(), Some(now + EVERY));
        beat.woken(Some(10));
        assert_eq!(beat.due(), Some(now + GAP));
    }

    #[test]
    fn an_answer_that_is_behind_an_event_is_not_enough() {
        let now = Instant::now();
        let mut beat = Beat::new(now, EVERY);
        beat.begin(now);
        beat.woken(Some(10));
        beat.answered(now, 10);
        assert_eq!(beat.due(), Some(now + GAP), "records 0 to 9 are known, 10 is not");
        beat.begin(now);
        beat.answered(now, 11);
        assert_eq!(beat.due(), Some(now + EVERY));
        // One without a number is answered by what begins after it only.
        beat.begin(now);
        beat.woken(None);
        beat.answered(now, 99);
        assert_eq!(beat.due(), Some(now + GAP));
    }

    #[test]
    fn a_daemon_that_never_gets_there_is_not_asked_for_ever() {
        let now = Instant::now();
        let mut beat = Beat::new(now, EVERY);
        beat.woken(Some(1000));
        let mut hurried = 0;
        loop {
            beat.begin(now);
            beat.answered(now, 5);
            if beat.due() == Some(now + EVERY) {
                break;
            }
            hurried += 1;
        }
        assert_eq!(hurried, BEHIND_MAX);
    }

    #[test]
    fn a_failure_is_told_once_and_so_is_its_end() {
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
