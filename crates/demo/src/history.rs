//! The past of a new folder: a week that ends now, written through the engine and into the journal with time as a
//! parameter. The same seed and the same beginning write the same records.
//!
//! [`pen`] writes and lets time pass; [`week`] plays the holders and the agents, by the [`rhythm`] of days; what went
//! wrong that week is in [`incidents`].

mod incidents;
mod pen;
mod rhythm;
mod week;

use super::start::{ORIGIN, SEGMENT_BYTES};
use crate::data_directory::{Place, software};
use crate::problem::Problem;
use crate::term;
use leasehold_cell::{Clock, Core, ManualClock, StartOptions, SystemClock};
use leasehold_journal::{Journal, Keys};
use leasehold_model::{Instant, Span};
use pen::Pen;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use week::Week;

/// How long a burst lasted in the past.
const BURST_TTL: Span = Span::from_secs(4 * 3600);

/// A past that was written.
pub(crate) struct Written {
    pub(crate) records: u64,
    pub(crate) from: Instant,
    pub(crate) took: Duration,
}

/// Writes a past of this length into a folder that has none; `None` where there is a journal already.
pub(crate) fn write(place: &Place, length: Span, seed: u64, stop: &AtomicBool) -> Result<Option<Written>, Problem> {
    let keys = place.keys(ORIGIN)?;
    if length == Span::ZERO || ["journal", "anchor"].iter().any(|name| place.data().join(name).exists()) {
        return Ok(None);
    }
    let began = std::time::Instant::now();
    // It ends where the wall clock stands before the first record is written: no stamp ever passes it.
    let to = SystemClock::new().wall();
    let from = Instant(to.0.saturating_sub(length.0));
    let records = write_between(place, keys, from, to, seed, stop)?;
    Ok(Some(Written { records, from, took: began.elapsed() }))
}

fn write_between(
    place: &Place,
    keys: Arc<Keys>,
    from: Instant,
    to: Instant,
    seed: u64,
    stop: &AtomicBool,
) -> Result<u64, Problem> {
    let clock = Arc::new(ManualClock::at(from));
    let options = StartOptions::new(software(), keys.public_keys()[0]);
    let (journal, _) = place.open_journal(keys, SEGMENT_BYTES, &*clock)?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let (core, now, _) = Core::open(Arc::clone(&journal), Arc::clone(&clock) as Arc<dyn Clock>, &options)
        .map_err(|error| Problem::told(error.code(), &error).at(place.data()))?;
    let pen = Pen::new(core, now, journal, clock);
    let mut week = Week::begin(pen, seed, from, to, BURST_TTL)?;
    let mut progress = Progress::default();
    let mut whole = true;
    while whole && week.step()? {
        progress.show(week.now().since(from), to.since(from));
        whole = !stop.load(Ordering::Relaxed);
    }
    if whole {
        week.pass_to_end()?;
    }
    let records = week.close();
    progress.clear();
    records
}

/// A line that is drawn over, on a terminal.
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
        term::say(&format!("\r  writing the week before: {percent} %"));
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

    /// Everything but the first record, which holds the folder's own key.
    fn written(seed: u64) -> Vec<(Instant, Body)> {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::prepare(Some(folder.path())).unwrap();
        let keys = place.keys(ORIGIN).unwrap();
        let (from, to) = (Instant::from_secs(1_767_225_600), Instant::from_secs(1_767_225_600 + 2 * 86_400));
        let count = write_between(&place, keys, from, to, seed, &AtomicBool::new(false)).unwrap();
        let mut records = Vec::new();
        let scanned =
            ReadOnly::open(Arc::new(RealDisk::new(place.data())), vec![]).unwrap().scan_from_genesis(&mut |entry| {
                let record = entry.raw.decode().expect("a record");
                assert!((from..=to).contains(&record.stamp), "{} lies outside", record.stamp);
                records.push((record.stamp, record.body));
                ControlFlow::Continue(())
            });
        assert_eq!(scanned.unwrap().size, count);
        assert_eq!(records.last().map(|(stamp, _)| *stamp), Some(to), "it ends now");
        records.split_off(1)
    }

    #[test]
    fn the_same_seed_writes_the_same_past() {
        let [one, again, other] = [1, 1, 2].map(written);
        assert!(one == again, "the same seed, another past");
        assert!(one != other, "another seed, the same past");
        let denied = one.iter().filter(|(_, body)| matches!(body, Body::Denied(_))).count();
        assert!(one.len() > 2000 && denied > 0, "{} records, {denied} denials", one.len());
    }
}
