//! How many events become due per minute, measured over the last hour.

use super::made::Kinds;
use leasehold_model::{Instant, Span, TenantNo};
use std::collections::{BTreeMap, VecDeque};

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

/// For what webhooks chose, by owner and types: how many events became due to such a webhook.
pub(super) type Chosen = BTreeMap<(Option<TenantNo>, Kinds), u64>;

/// Events per minute, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) all: u64,
    pub(crate) accounting: u64,
    /// Those of the webhook with the most; none without webhooks.
    pub(crate) busiest: Option<u64>,
    /// How long was measured: an hour, or less after a start.
    pub(crate) over: Span,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    due: Due,
    chosen: Chosen,
}

/// Samples of the counters, one a minute.
#[derive(Debug, Default)]
pub(crate) struct RateWindow(VecDeque<Sample>);

fn per_minute(now: u64, then: u64, over: Span) -> u64 {
    let events = u128::from(now.saturating_sub(then)) * u128::from(MINUTE.0);
    u64::try_from(events.div_ceil(u128::from(over.0.max(MINUTE.0)))).unwrap_or(u64::MAX)
}

impl RateWindow {
    /// Keeps a sample, unless there is a newer one than a minute. To that one, what has been chosen since is added.
    pub(super) fn note(&mut self, at: Instant, due: Due, chosen: Chosen) {
        match self.0.back_mut().filter(|last| at.since(last.at) < MINUTE) {
            None => self.0.push_back(Sample { at, due, chosen }),
            Some(last) => chosen.into_iter().for_each(|(choice, due)| {
                last.chosen.entry(choice).or_insert(due);
            }),
        }
        self.forget(at);
    }

    fn forget(&mut self, now: Instant) {
        // The newest one stays, so that there is always something to measure from.
        while self.0.len() > 1 && self.0.front().is_some_and(|sample| now.since(sample.at) > WINDOW) {
            self.0.pop_front();
        }
    }

    /// The rate up to now. In the first minute it counts as if the minute were over.
    pub(super) fn measure(&self, now: Instant, due: Due, chosen: &Chosen) -> Rate {
        let within = self.0.iter().find(|sample| now.since(sample.at) <= WINDOW).or(self.0.back());
        let Some(Sample { at, due: then, .. }) = within else { return Rate::default() };
        let over = now.since(*at);
        // Each from the first sample in which somebody had chosen it.
        let of_choice = |(choice, due): (&_, &u64)| {
            let recent = self.0.iter().filter(|sample| now.since(sample.at) <= WINDOW);
            let first = recent.filter_map(|sample| Some((sample.at, *sample.chosen.get(choice)?))).next();
            first.map_or(0, |(at, then)| per_minute(*due, then, now.since(at)))
        };
        Rate {
            all: per_minute(due.all, then.all, over),
            accounting: per_minute(due.accounting, then.accounting, over),
            busiest: chosen.iter().map(of_choice).max(),
            over,
        }
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
        assert_eq!(window.measure(at(0), due(0), &Chosen::new()), Rate::default());
        window.note(at(0), due(0), Chosen::new());
        // Forty events in the first half minute: forty a minute, as far as is known.
        let early = window.measure(at(30), due(40), &Chosen::new());
        assert_eq!(early, Rate { all: 40, accounting: 4, busiest: None, over: Span::from_secs(30) });
        // A day at 100 a minute, then an hour at 7.
        let mut total = 0;
        for minute in 1..=1440 {
            total += 100;
            window.note(at(minute * 60), due(total), Chosen::new());
        }
        assert_eq!(window.measure(at(86_400), due(total), &Chosen::new()).all, 100);
        for minute in 1441..=1500 {
            total += 7;
            window.note(at(minute * 60), due(total), Chosen::new());
        }
        assert!(window.0.len() <= 62, "{}", window.0.len());
        assert_eq!(
            window.measure(at(90_000), due(total), &Chosen::new()),
            Rate { all: 7, accounting: 1, busiest: None, over: WINDOW }
        );
        // Rounded up: a buffer for 0.1 events a minute needs to hold something.
        assert_eq!(window.measure(at(90_000 + 600), due(total), &Chosen::new()).all, 6);
        assert_eq!(window.measure(at(90_000 + 3_600), due(total + 1), &Chosen::new()).all, 1);
        assert_eq!(window.measure(at(90_000 + 3_600), due(total), &Chosen::new()).all, 0);
    }

    #[test]
    fn a_sample_is_kept_once_a_minute() {
        let mut window = RateWindow::default();
        (0..600).for_each(|second| window.note(at(second), due(second), Chosen::new()));
        assert_eq!(window.0.len(), 10);
        // The clock of the engine stands still for a day, as after a suspension.
        window.note(at(90_000), due(1_000), Chosen::new());
        assert_eq!(window.0.len(), 1);
        assert_eq!(window.measure(at(90_000), due(1_000), &Chosen::new()).all, 0);
    }

    /// What one webhook is sent counts, not what all of them are sent together, and a new one is measured from when it
    /// was made.
    #[test]
    fn the_busiest_webhook_is_measured_by_what_it_chose() {
        let mut window = RateWindow::default();
        let kinds = |word: &str| Kinds::named_by(&[word.to_owned()]);
        let (few, many) = ((Some(TenantNo(1)), kinds("node.*")), (None, kinds("*")));
        window.note(at(0), due(0), Chosen::from([(few, 0)]));
        let rate = window.measure(at(600), due(900), &Chosen::from([(few, 30)]));
        assert_eq!((rate.all, rate.busiest), (90, Some(3)));
        // Its counter began long before the webhook.
        window.note(at(600), due(900), Chosen::from([(few, 30), (many, 900)]));
        let rate = window.measure(at(720), due(940), &Chosen::from([(few, 31), (many, 940)]));
        assert_eq!(rate.busiest, Some(20));
        assert_eq!(window.measure(at(720), due(940), &Chosen::new()).busiest, None);
    }
}
