//! Reported usage in the histories of the ledger: sent as by a server, and looked up in the books by its IDs.

use super::story::{Step, Story};
use leasehold_books::KnownUsage;
use leasehold_model::body::{Body, UsageKey};
use leasehold_model::limits::LATE_WINDOW;
use leasehold_model::{Instant, Item, Record};
use leasehold_sim::draw;
use std::collections::BTreeMap;

/// Whether it posts usage units.
pub(super) fn posts_units(record: &Record) -> bool {
    let is_unit = |item: Item| matches!(item, Item::Unit(_));
    matches!(&record.body, Body::LedgerPosted(posted) if posted.lines.iter().any(|line| is_unit(line.key.item)))
}

impl Story {
    /// A runtime reports usage, at times, or a unit gets a price.
    pub(crate) fn report(&mut self) -> Step<()> {
        let request = draw::about_usage(self.engine.state(), &self.records, self.now);
        request.map_or(Ok(()), |request| self.decide(&request).map(drop))
    }

    /// The books know every ID that is to be remembered, with the right record. They may know others for longer.
    pub(crate) fn check_usage_ids(&self) -> Step<()> {
        let now = self.records.last().map_or(Instant(0), |record| record.stamp);
        let mut last: BTreeMap<UsageKey, (Instant, KnownUsage)> = BTreeMap::new();
        for record in &self.records {
            let Body::UsageRecorded(recorded) = &record.body else { continue };
            let report = &recorded.report;
            let old = report.superseded_key().and_then(|key| last.get_mut(&key));
            if let Some((_, old)) = old {
                old.superseded_by = Some(record.sequence);
            }
            let known = KnownUsage {
                sequence: record.sequence,
                payload: report.payload(&record.identity),
                superseded_by: None,
            };
            last.insert(report.key(), (report.to, known));
        }
        for (key, (to, theirs)) in last {
            let ours = self.books().known_usage(key).map_err(|error| error.to_string())?;
            let must = to.saturating_add(LATE_WINDOW) >= now;
            let text = |known: &KnownUsage| (known.sequence, known.payload, known.superseded_by);
            let same = ours.as_ref().is_none_or(|ours| text(ours) == text(&theirs));
            if !same || must && ours.is_none() {
                let ours = ours.as_ref().map(text);
                return Err(format!("usage {key:?} to {to}: books {ours:?}, model {:?}", text(&theirs)));
            }
        }
        Ok(())
    }
}
