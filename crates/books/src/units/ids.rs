//! The IDs of usage records, by the day of their ends: a day is forgotten whole when nothing can be reported for it any
//! more (SEMANTICS 12).
//!
//! The IDs of a day are runs in the file (`runs.rs`). A filter for each run is in memory, so that an ID that is new is told
//! without reading the file.

use super::filter::Filter;
use crate::facts::{Books, BooksError};
use crate::runs::{RunHeads, RunKey, Runs};
use crate::seal::Seal;
use crate::store::{self, Store, USAGE_FILTERS, USAGE_IDS};
use leasehold_model::body::{UsageKey, UsageRecorded};
use leasehold_model::limits::LATE_WINDOW;
use leasehold_model::{Instant, Record};
use std::collections::BTreeMap;

const DAY_NS: u64 = 86_400_000_000_000;
/// The pages of a day begin at its number times this.
const DAY_PAGES: u64 = 1 << 32;

/// A usage record that has an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownUsage {
    pub sequence: u64,
    /// A digest of what was reported.
    pub payload: u64,
    /// The record that superseded it.
    pub superseded_by: Option<u64>,
}

#[derive(Default)]
struct DayIds {
    runs: Runs,
    /// One for each run in the file.
    filters: Vec<Filter>,
}

#[derive(Default)]
pub(crate) struct UsageIds {
    days: BTreeMap<u64, DayIds>,
}

fn day_of(at: Instant) -> u64 {
    at.0 / DAY_NS
}

/// Filters of runs that a commit has written, by day.
#[derive(Default)]
pub(crate) struct WrittenIds {
    heads: BTreeMap<u64, RunHeads>,
    filters: BTreeMap<u64, Filter>,
}

impl WrittenIds {
    /// Where the IDs of each day are.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (u64, RunHeads)> + '_ {
        self.heads.iter().map(|(day, heads)| (*day, heads.clone()))
    }
}

impl UsageIds {
    fn day(&mut self, day: u64) -> &mut DayIds {
        self.days.entry(day).or_insert_with(|| DayIds { runs: Runs::from_page(day * DAY_PAGES), filters: Vec::new() })
    }

    pub(super) fn add(&mut self, record: &Record, recorded: &UsageRecorded) {
        let report = &recorded.report;
        let ([high, low], payload) = (report.key(), report.payload(&record.identity));
        self.day(day_of(report.to)).runs.add([high, low, payload, record.sequence, 0]);
        if let (Some([high, low]), Some(replaced)) = (report.superseded_key(), &recorded.replaces) {
            let by = record.sequence + 1;
            self.day(day_of(replaced.to)).runs.add([high, low, 0, replaced.sequence, by]);
        }
    }

    /// How many IDs are remembered, and which record superseded which.
    pub(crate) fn count(&self) -> u64 {
        self.days.values().map(|day| day.runs.keys()).sum()
    }

    pub(crate) fn find(&self, key: UsageKey, store: &Store) -> Result<Option<KnownUsage>, BooksError> {
        let [high, low] = key;
        let range = ([high, low, 0, 0, 0], [high, low, u64::MAX, u64::MAX, u64::MAX]);
        let mut found: Vec<RunKey> = Vec::new();
        for day in self.days.values() {
            let runs = (0..).zip(&day.filters).filter(|(_, filter)| filter.may_contain(key)).map(|(place, _)| place);
            day.runs.range_of_digests(USAGE_IDS, store, range, runs, &mut found)?;
        }
        let record = found.iter().find(|[.., by]| *by == 0);
        Ok(record.map(|[_, _, payload, sequence, _]| {
            let by = found.iter().find(|[_, _, _, of, by]| of == sequence && *by > 0);
            KnownUsage { sequence: *sequence, payload: *payload, superseded_by: by.map(|[.., by]| by - 1) }
        }))
    }

    /// Days for which nothing can be reported any more.
    fn is_over(day: u64, now: Instant) -> bool {
        Instant((day + 1).saturating_mul(DAY_NS)).saturating_add(LATE_WINDOW) < now
    }

    /// Writes what is new, and removes the days that are over.
    pub(crate) fn write(
        &self,
        now: Instant,
        store: &Store,
        seal: &Seal,
        ids: &mut redb::Table<'_, u64, &'static [u8]>,
        filters: &mut redb::Table<'_, u64, &'static [u8]>,
    ) -> Result<WrittenIds, BooksError> {
        let io = |error: redb::StorageError| BooksError::Io(error.to_string());
        let mut written = WrittenIds::default();
        for (number, day) in &self.days {
            let before = &day.runs.heads.runs;
            if Self::is_over(*number, now) {
                for run in before {
                    store::remove(filters, run.first).map_err(io)?;
                    (run.first..run.first + run.pages).try_for_each(|page| store::remove(ids, page)).map_err(io)?;
                }
                continue;
            }
            let mut fresh: Option<Filter> = None;
            let mut note = |keys: u64, key: &RunKey| {
                fresh.get_or_insert_with(|| Filter::for_keys(keys)).add([key[0], key[1]]);
            };
            let heads = day.runs.write_noting(USAGE_IDS, store, seal, ids, &mut note)?;
            if let (Some(filter), Some(run)) = (fresh, heads.runs.last()) {
                for gone in before.iter().filter(|gone| !heads.runs.contains(gone)) {
                    store::remove(filters, gone.first).map_err(io)?;
                }
                store::write(filters, seal, USAGE_FILTERS, run.first, None, &filter.to_bytes()).map_err(io)?;
                written.filters.insert(*number, filter);
            }
            written.heads.insert(*number, heads);
        }
        Ok(written)
    }

    pub(crate) fn written(&mut self, mut written: WrittenIds) {
        self.days.retain(|day, _| written.heads.contains_key(day));
        for (number, heads) in written.heads {
            let day = self.day(number);
            if let Some(filter) = written.filters.remove(&number) {
                day.filters.truncate(heads.runs.len() - 1);
                day.filters.push(filter);
            }
            day.runs.written(heads);
        }
    }

    /// Reads the filters of the runs.
    pub(crate) fn read(&mut self, heads: Vec<(u64, RunHeads)>, store: &Store) -> Result<(), BooksError> {
        for (number, heads) in heads {
            let day = self.day(number);
            for run in &heads.runs {
                let bytes = store.expect_entry(USAGE_FILTERS, run.first)?;
                day.filters.push(Filter::from_bytes(&bytes).map_err(|_| store.damage())?);
            }
            day.runs.heads = heads;
        }
        Ok(())
    }
}

impl Books {
    /// The usage record that has an ID, if it is remembered.
    pub fn known_usage(&self, key: UsageKey) -> Result<Option<KnownUsage>, BooksError> {
        self.units.ids.find(key, &self.store)
    }

    /// How many IDs of usage records are remembered.
    pub fn usage_ids(&self) -> u64 {
        self.units.ids.count()
    }
}
