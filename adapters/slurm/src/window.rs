//! From when on sacct is asked, so that no run is missed.
//!
//! sacct shows every run that was open at some time after the start of the window. A run that ends is therefore found as
//! long as the database learns of it within `look_back`. A run that was seen open and is no longer shown has ended before
//! the window, by news that came late: it is asked for by its number.

use crate::table::{Life, Run};
use leasehold_adapter_kit::Times;
use leasehold_model::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Usage that ended longer ago is not accepted (SEMANTICS 13).
const ACCEPTED_SECS: u64 = 35 * 86_400;
/// sacct also shows runs that ended shortly before the window.
const FUZZ_SECS: u64 = 3600;

/// A run that was seen open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// The number of the job as it was submitted.
    pub(crate) job: String,
    /// When it started, or the beginning of the window in which it was first seen waiting.
    pub(crate) since: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The second from which on the next window reads; 0 before the first pass.
    from: u64,
    /// By index in the database.
    open: BTreeMap<u64, Open>,
}

/// A window that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: u64,
    /// Where the next one begins if this one was dealt with.
    next: u64,
}

pub(crate) fn next(memory: &Memory, times: Times, look_back: Span) -> Window {
    let secs = |instant: Instant| instant.0 / 1_000_000_000;
    let now = secs(times.now);
    let earliest = secs(times.begin).max(now.saturating_sub(ACCEPTED_SECS)).min(now);
    let from = match times.since {
        Some(since) => secs(since).clamp(earliest, now),
        // The first pass, or the state was lost.
        None if memory.from == 0 => earliest,
        None => memory.from.clamp(earliest, now),
    };
    Window { from, next: now.saturating_sub(look_back.as_secs()).max(earliest) }
}

impl Window {
    pub(crate) fn settled_before(&self) -> Instant {
        Instant::from_secs(self.next.min(self.from).saturating_sub(FUZZ_SECS))
    }
}

/// Runs that were open and are not shown any more.
pub(crate) fn missing(memory: &Memory, runs: &[Run]) -> Vec<Open> {
    let shown: BTreeSet<u64> = runs.iter().map(|run| run.index).collect();
    memory.open.iter().filter(|(index, _)| !shown.contains(index)).map(|(_, open)| open.clone()).collect()
}

/// What to remember after a window was dealt with.
pub(crate) fn after(window: &Window, runs: &[Run]) -> Memory {
    let open = runs.iter().filter_map(|run| {
        let since = match run.life {
            Life::Unfinished { start } => start.min(window.from),
            Life::NeverStarted { over: false } => window.from,
            Life::NeverStarted { over: true } | Life::Finished { .. } => return None,
        };
        Some((run.index, Open { job: run.submitted_as().to_owned(), since }))
    });
    Memory { from: window.next, open: open.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    const DAY: u64 = 86_400;

    fn times(now: u64, begin: u64, since: Option<u64>) -> Times {
        let at = Instant::from_secs;
        Times { now: at(now), begin: at(begin), since: since.map(at) }
    }

    fn runs(rows: &[&str]) -> Vec<Run> {
        let text: String = std::iter::once(table::COLUMNS.join("|"))
            .chain(rows.iter().map(|row| format!("box|{row}")))
            .map(|row| row + "\n")
            .collect();
        table::parse(&text, "box").unwrap()
    }

    fn from(memory: &Memory, now: u64, begin: u64, since: Option<u64>) -> u64 {
        next(memory, times(now, begin, since), Span::from_secs(DAY)).from
    }

    #[test]
    fn the_first_window_begins_at_begin_and_the_next_a_day_before_the_last_pass() {
        let now = 100 * DAY;
        assert_eq!(from(&Memory::default(), now, now - 10 * DAY, None), now - 10 * DAY);
        // What ended earlier would be too late.
        assert_eq!(from(&Memory::default(), now, 0, None), now - 35 * DAY);
        let window = next(&Memory::default(), times(now, now - 10 * DAY, None), Span::from_secs(DAY));
        let memory = after(&window, &[]);
        assert_eq!(from(&memory, now + 60, now - 10 * DAY, None), now - DAY);
        // An outage of days: the window begins where it would have begun.
        assert_eq!(from(&memory, now + 5 * DAY, now - 10 * DAY, None), now - DAY);
        assert_eq!(from(&memory, now + 60, now - 10 * DAY, Some(now - 9 * DAY)), now - 9 * DAY);
        assert_eq!(from(&memory, now + 60, now - 10 * DAY, Some(now - 11 * DAY)), now - 10 * DAY);
    }

    #[test]
    fn a_run_whose_end_is_learned_late_is_asked_for() {
        let now = 100 * DAY;
        let window = next(&Memory::default(), times(now, now - 10 * DAY, None), Span::from_secs(DAY));
        let open = format!("7|12_3|RUNNING|a|u|p|{}|Unknown|9|cpu=1", now - 12 * DAY);
        let waiting = "8|13|PENDING|a|u|p|Unknown|Unknown|0|";
        let ended = format!("9|14|COMPLETED|a|u|p|{}|{}|9|cpu=1", now - 100, now - 91);
        let memory = after(&window, &runs(&[&open, waiting, &ended]));
        assert_eq!(missing(&memory, &runs(&[&open, waiting])), []);
        let expected =
            [Open { job: "12".into(), since: now - 12 * DAY }, Open { job: "13".into(), since: now - 10 * DAY }];
        assert_eq!(missing(&memory, &[]), expected);
    }
}
