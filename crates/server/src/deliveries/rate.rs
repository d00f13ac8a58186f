//! How many events become due per minute, measured over the last hour.

use leasehold_model::{Instant, Span};
use std::collections::VecDeque;

const MINUTE: Span = Span::from_secs(60);
/// How far back is measured.
const WINDOW: Span = Span::from_secs(3_600);

/// Events that became due since the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) all: u64,
    /// Those for accounting systems.
    pub(crate) accounting: u64,
}

/// Events per minute, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) all: u64,
    pub(crate) accounting: u64,
    /// How long was measured: an hour, or less after a start.
    pub(crate) over: Span,
}

/// Samples of the counters, one a minute.
#[derive(Debug, Default)]
pub(crate) struct RateWindow(VecDeque<(Instant, Due)>);

impl RateWindow {
    /// Keeps a sample, unless there is a newer one than a minute.
    pub(crate) fn note(&mut self, at: Instant, due: Due) {
        if self.0.back().is_none_or(|(last, _)| at.since(*last) >= MINUTE) {
            self.0.push_back((at, due));
        }
        self.forget(at);
    }

    fn forget(&mut self, now: Instant) {
        // The newest one stays, so that there is always something to measure from.
        while self.0.len() > 1 && self.0.front().is_some_and(|(at, _)| now.since(*at) > WINDOW) {
            self.0.pop_front();
        }
    }

    /// The rate up to now. In the first minute it counts as if the minute were over.
    pub(crate) fn measure(&self, now: Instant, due: Due) -> Rate {
        let within = self.0.iter().find(|(at, _)| now.since(*at) <= WINDOW).or(self.0.back());
        let Some((from, then)) = within else { return Rate::default() };
        let over = now.since(*from);
        let per_minute = |now: u64, then: u64| {
            let events = u128::from(now.saturating_sub(then)) * u128::from(MINUTE.0);
            u64::try_from(events.div_ceil(u128::from(over.0.max(MINUTE.0)))).unwrap_or(u64::MAX)
        };
        Rate { all: per_minute(due.all, then.all), accounting: per_minute(due.accounting, then.accounting), over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(1_770_000_000 + seconds)
    }
    fn due(all: u64) -> Due {
        Due { all, accounting: all / 10 }
    }

    #[test]
    fn only_the_last_hour_counts() {
        let mut window = RateWindow::default();
        assert_eq!(window.measure(at(0), due(0)), Rate::default());
        window.note(at(0), due(0));
        // Forty events in the first half minute: forty a minute, as far as is known.
        let early = window.measure(at(30), due(40));
        assert_eq!(early, Rate { all: 40, accounting: 4, over: Span::from_secs(30) });
        // A day at 100 a minute, then an hour at 7.
        let mut total = 0;
        for minute in 1..=1440 {
            total += 100;
            window.note(at(minute * 60), due(total));
        }
        assert_eq!(window.measure(at(86_400), due(total)).all, 100);
        for minute in 1441..=1500 {
            total += 7;
            window.note(at(minute * 60), due(total));
        }
        assert!(window.0.len() <= 62, "{}", window.0.len());
        assert_eq!(window.measure(at(90_000), due(total)), Rate { all: 7, accounting: 1, over: WINDOW });
        // Rounded up: a buffer for 0.1 events a minute needs to hold something.
        assert_eq!(window.measure(at(90_000 + 600), due(total)).all, 6);
        assert_eq!(window.measure(at(90_000 + 3_600), due(total + 1)).all, 1);
        assert_eq!(window.measure(at(90_000 + 3_600), due(total)).all, 0);
    }

    #[test]
    fn a_sample_is_kept_once_a_minute() {
        let mut window = RateWindow::default();
        (0..600).for_each(|second| window.note(at(second), due(second)));
        assert_eq!(window.0.len(), 10);
        // The clock of the engine stands still for a day, as after a suspension.
        window.note(at(90_000), due(1_000));
        assert_eq!(window.0.len(), 1);
        assert_eq!(window.measure(at(90_000), due(1_000)).all, 0);
    }
}
