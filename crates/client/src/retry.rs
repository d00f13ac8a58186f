//! Retries: pauses that double, with jitter, up to a deadline.

use crate::random;
use std::time::Duration;
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The pauses between the attempts of one call.
pub(crate) struct Backoff {
    ceiling: Duration,
    first: Duration,
    max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(FIRST_PAUSE, PAUSE_MAX)
    }
}

impl Backoff {
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        Self { ceiling: first, first, max }
    }

    /// The next pause: between half the ceiling and the ceiling, which then doubles.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = random::between(self.ceiling / 2, self.ceiling);
        self.ceiling = (self.ceiling * 2).min(self.max);
        pause
    }

    /// Starts again with the shortest pause, after a success.
    pub(crate) fn reset(&mut self) {
        self.ceiling = self.first;
    }
}

/// When to try again: after the next pause, plus the time that the daemon asked for. `None` if that is past the deadline.
pub(crate) fn again_at(
    backoff: &mut Backoff,
    now: Instant,
    deadline: Instant,
    retry_after: Option<Duration>,
) -> Option<Instant> {
    let pause = backoff.pause();
    let at = now.checked_add(retry_after.map_or(pause, |asked| asked + pause))?;
    (at < deadline).then_some(at)
}

/// `Retry-After` in seconds. Its other form, a date, is not used by the daemon.
pub(crate) fn parse_retry_after(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(1000));
        for ceiling in [100, 200, 400, 800, 1000, 1000] {
            let ceiling = Duration::from_millis(ceiling);
            assert!((ceiling / 2..=ceiling).contains(&backoff.pause()));
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(100));
    }

    #[test]
    fn retries_end_at_the_deadline() {
        let now = Instant::now();
        let in_secs = |secs| now + Duration::from_secs(secs);
        let again = |deadline, retry_after: Option<u64>| {
            again_at(&mut Backoff::default(), now, deadline, retry_after.map(Duration::from_secs))
        };
        assert!(again(in_secs(1), None).is_some_and(|at| at > now && at <= now + FIRST_PAUSE));
        assert!(again(in_secs(10), Some(2)).is_some_and(|at| at >= in_secs(2) && at < in_secs(3)));
        assert_eq!(again(in_secs(10), Some(30)), None);
        assert_eq!(again(now, None), None);
        assert_eq!(parse_retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(parse_retry_after("Fri, 07 Nov 2025 23:59:59 GMT"), None);
    }
}
