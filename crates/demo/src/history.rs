//! The generated history of a new data directory: a week that ends now, decided by the engine and written to the
//! journal with a simulated clock. The same seed and start give the same records.
//!
//! [`writer`] decides, writes and advances the clock; [`week`] simulates holders and agents with the daily [`rhythm`];
//! [`incidents`] lists faults and what the operator did about them.

mod incidents;
mod rhythm;
mod week;
mod writer;

use super::start::{ORIGIN, SEGMENT_BYTES};
use crate::data_directory::{DemoDirectory, software};
use crate::problem::Problem;
use crate::term;
use leasehold_cell::{Clock, Core, ManualClock, StartOptions, SystemClock};
use leasehold_journal::{Journal, Keys};
use leasehold_model::{Instant, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use week::Week;
use writer::Writer;

/// How long a burst may last in the generated history.
const BURST_TTL: Span = Span::from_secs(4 * 3600);

/// The history that was generated.
pub(crate) struct Written {
    pub(crate) records: u64,
    pub(crate) from: Instant,
    pub(crate) took: Duration,
}

/// Generates a history of this length, unless the directory contains a journal already.
pub(crate) fn write(
    directory: &DemoDirectory,
    length: Span,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<Written>, Problem> {
    let keys = directory.keys(ORIGIN)?;
    if length == Span::ZERO || ["journal", "anchor"].iter().any(|name| directory.data().join(name).exists()) {
        return Ok(None);
    }
    let began = std::time::Instant::now();
    // Taken before the first record is written, so that no stamp is ever ahead of the wall clock.
    let to = SystemClock::new().wall();
    let from = Instant(to.0.saturating_sub(length.0));
    let records = write_between(directory, keys, from, to, seed, stop)?;
    Ok(Some(Written { records, from, took: began.elapsed() }))
}

fn write_between(
    directory: &DemoDirectory,
    keys: Arc<Keys>,
    from: Instant,
    to: Instant,
    seed: u64,
    stop: &AtomicBool,
) -> Result<u64, Problem> {
    let clock = Arc::new(ManualClock::at(from));
    let options = StartOptions::new(software(), keys.public_keys()[0]);
    let (journal, _) = directory.open_journal(keys, SEGMENT_BYTES, &*clock)?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let (core, now, _) = Core::open(Arc::clone(&journal), Arc::clone(&clock) as Arc<dyn Clock>, &options)
        .map_err(|error| Problem::told(error.code(), &error).at(directory.data()))?;
    let writer = Writer::new(core, now, journal, clock);
    let mut week = Week::begin(writer, seed, from, to, BURST_TTL)?;
    let mut progress = Progress::default();
    let mut complete = true;
    while complete && week.step()? {
        progress.show(week.now().since(from), to.since(from));
        complete = !stop.load(Ordering::Relaxed);
    }
    if complete {
        week.advance_to_end()?;
    }
    let records = week.close();
    progress.clear();
    records
}

/// A progress line on a terminal.
#[derive(Default)]
struct Progress {
    shown_percent: Option<u64>,
}

impl Progress {
    fn show(&mut self, done: Span, of: Span) {
        let percent = done.0 / (of.0 / 100).max(1);
        if self.shown_percent == Some(percent) || term::drawable().is_none() {
            return;
        }
        self.shown_percent = Some(percent);
        term::say(&format!("\r  generating history: {percent} %"));
    }

    fn clear(&self) {
        if self.shown_percent.is_some() {
            term::say("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_journal::{ReadOnly, RealDisk};
    use leasehold_model::Body;
    use std::ops::ControlFlow;

    /// All records but the first, which contains the key of the directory.
    fn written(seed: u64) -> Vec<(Instant, Body)> {
        let folder = tempfile::tempdir().unwrap();
        let directory = DemoDirectory::prepare(Some(folder.path())).unwrap();
        let keys = directory.keys(ORIGIN).unwrap();
        let (from, to) = (Instant::from_secs(1_767_225_600), Instant::from_secs(1_767_225_600 + 2 * 86_400));
        let count = write_between(&directory, keys, from, to, seed, &AtomicBool::new(false)).unwrap();
        let mut records = Vec::new();
        let scanned = ReadOnly::open(Arc::new(RealDisk::new(directory.data())), vec![]).unwrap().scan_from_genesis(
            &mut |entry| {
                let record = entry.raw.decode().expect("a record");
                assert!((from..=to).contains(&record.stamp), "{} is outside the range", record.stamp);
                records.push((record.stamp, record.body));
                ControlFlow::Continue(())
            },
        );
        assert_eq!(scanned.unwrap().size, count);
        assert_eq!(records.last().map(|(stamp, _)| *stamp), Some(to), "the history ends at the given instant");
        records.split_off(1)
    }

    #[test]
    fn the_same_seed_writes_the_same_history() {
        let [one, again, other] = [1, 1, 2].map(written);
        assert!(one == again, "the same seed wrote another history");
        assert!(one != other, "another seed wrote the same history");
        let denied = one.iter().filter(|(_, body)| matches!(body, Body::Denied(_))).count();
        assert!(one.len() > 2000 && denied > 0, "{} records, {denied} denials", one.len());
    }
}
