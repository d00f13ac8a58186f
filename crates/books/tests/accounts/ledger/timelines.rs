//! Timelines against the leases behind each line: an entry is told where one of them has the ID.

use super::story::{Step, Story};
use leasehold_books::{EntryQuestion, LeaseQuestion, TimelineQuestion, TimelineWhat};
use leasehold_model::body::{Body, Correlation};
use leasehold_model::id::CorrelationId;
use leasehold_model::{EntryId, LeaseNo, Record};
use std::collections::{BTreeMap, BTreeSet};

/// More than any of these histories has.
const ALL: usize = 100_000;

impl Story {
    /// Compares the entries in the timelines of all leases; returns how many there are.
    pub(super) fn check_timelines(&self) -> Step<usize> {
        let books = self.books();
        let failed = |error: leasehold_books::BooksError| error.to_string();
        let mut behind: BTreeMap<Correlation, BTreeSet<EntryId>> = BTreeMap::new();
        for entry in books.entries(&EntryQuestion { limit: ALL, ..EntryQuestion::default() }).map_err(failed)?.entries {
            let (Some(line), Some(payer)) = (&entry.line, entry.project) else { continue };
            for lease in books.line_source(payer, &line.key, ALL).map_err(failed)?.leases {
                behind.entry(lease.row.correlation()).or_default().insert(entry.id);
            }
        }
        let question = LeaseQuestion { limit: ALL, ..LeaseQuestion::default() };
        let leases = books.leases(&question, |_| true).map_err(failed)?.leases;
        // Of leases whose end was corrected, entries are told to which they once contributed.
        let mut corrected: BTreeMap<Correlation, bool> = BTreeMap::new();
        let is_corrected = |lease: LeaseNo| {
            let names =
                |record: &Record| matches!(&record.body, Body::EndsCorrected(one) if one.leases.0.contains(&lease));
            self.records.iter().any(names)
        };
        for (row, _) in &leases {
            *corrected.entry(row.correlation()).or_default() |= is_corrected(row.lease);
        }
        let mut told = 0;
        for (correlation, corrected) in corrected {
            let (id, derived) = match correlation {
                Correlation::Given(id) => (id, None),
                Correlation::Derived(sequence) => (u128::MAX, Some(sequence)),
            };
            let id = CorrelationId(id);
            let asked = TimelineQuestion { id, derived, tenant: None, after: None, limit: ALL };
            let found =
                books.timeline(&asked, |_, _| true).map_err(failed)?.ok_or("an ID without a timeline".to_owned())?;
            let mut shown = BTreeSet::new();
            for step in &found.steps {
                if let TimelineWhat::Entries { entries, .. } = &step.what {
                    shown.extend(entries.iter().filter(|entry| entry.line.is_some()).map(|entry| entry.id));
                }
            }
            let wanted = behind.remove(&correlation).unwrap_or_default();
            let missing: Vec<_> = wanted.difference(&shown).collect();
            let strange: Vec<_> = shown.difference(&wanted).collect();
            if !missing.is_empty() || !strange.is_empty() && !corrected {
                return Err(format!("{correlation:?}: entries {missing:?} are missing, {strange:?} are strange"));
            }
            told += shown.len();
        }
        Ok(told)
    }
}
