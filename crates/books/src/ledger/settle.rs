//! Settlement: what has to be posted next (SEMANTICS 12, "Posting").

use super::rating::PayerLines;
use super::{Partial, PayerBook};
use crate::facts::{Books, BooksError};
use leasehold_ledger::{PostUsage, RatedLine};
use leasehold_meter::Window;
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::limits::LEDGER_LINES_MAX;
use leasehold_model::{Instant, Month};

/// What one payer has to be posted: requests to be made one after the other. Each but the first must name the record of
/// the one before it as `previous`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayerPosting {
    pub parts: Vec<PostUsage>,
}

/// What all payers have to be posted for an hour, or for the cut of a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The end of the last hour that it covers.
    pub through: Instant,
    pub as_of_size: u64,
    pub postings: Vec<PayerPosting>,
}

/// Lines in the order of their months and keys, in groups of one month that fit a record.
fn grouped(lines: PayerLines, after: Option<&Partial>) -> Vec<(Month, Vec<RatedLine>)> {
    let mut groups: Vec<(Month, Vec<RatedLine>)> = Vec::new();
    for (month, line) in lines {
        if after.is_some_and(|after| (month, &line.key) <= (after.month, &after.key)) {
            continue;
        }
        match groups.last_mut().filter(|(of, lines)| *of == month && lines.len() < LEDGER_LINES_MAX) {
            Some((_, lines)) => lines.push(line),
            None => groups.push((month, vec![line])),
        }
    }
    groups
}

impl Books {
    /// The settlement of the next hour, or `None` if there is none to be settled: the hour is not over, or something
    /// that ended in it is not recorded yet.
    pub fn next_settlement(&self) -> Result<Option<Settlement>, BooksError> {
        let from = self.ledger.settled_through;
        let through = Instant(from.0.saturating_add(HOUR_NS));
        let is_due = self.ledger.opened.is_some() && self.ledger.closing.is_none() && self.is_known_until(through);
        if !is_due {
            return Ok(None);
        }
        // Where a settlement was interrupted, the rest is computed from the same records.
        let posted = |payer: &PayerBook| match &payer.partial {
            Some(partial) => (partial.through, partial.as_of_size),
            None => (payer.through, payer.as_of_size),
        };
        let begun = self.ledger.payers.values().map(posted).filter(|(of, _)| *of == through).map(|(_, size)| size);
        let as_of_size = begun.min().unwrap_or(self.cursor);
        self.settlement(Window::new(from, through), as_of_size).map(Some)
    }

    /// The settlement at the cut of the month that is being closed: what the records before it say, and was not posted.
    pub fn closing_settlement(&self) -> Result<Option<Settlement>, BooksError> {
        let Some(cut) = self.ledger.closing else { return Ok(None) };
        let settled = self.ledger.settled_through;
        self.settlement(Window::new(settled, settled), cut.sequence).map(Some)
    }

    fn settlement(&self, new: Window, as_of_size: u64) -> Result<Settlement, BooksError> {
        let through = new.to;
        let mut postings = Vec::new();
        for ((project, currency), (tenant, lines)) in self.rated(new, as_of_size)? {
            let book = self.ledger.payers.get(&(project, currency));
            let partial = book.and_then(|book| book.partial.as_ref());
            // It was posted before the settlement was interrupted.
            let is_done = book.is_some_and(|book| book.through == through && book.as_of_size == as_of_size);
            if is_done {
                continue;
            }
            let groups = grouped(lines, partial);
            let count = groups.len();
            let part = |(place, (month, lines)): (usize, (Month, Vec<RatedLine>))| PostUsage {
                tenant,
                project,
                currency,
                month,
                through,
                complete: place + 1 == count,
                as_of_size,
                previous: book.map(|book| book.last).filter(|_| place == 0),
                lines,
            };
            let parts: Vec<PostUsage> = groups.into_iter().enumerate().map(part).collect();
            if !parts.is_empty() {
                postings.push(PayerPosting { parts });
            }
        }
        Ok(Settlement { through, as_of_size, postings })
    }

    /// Whether everything that happened before an instant is recorded: a later record is, and no lease is past a
    /// deadline before the instant without its expiry.
    pub fn is_known_until(&self, at: Instant) -> bool {
        self.last_stamp >= at && !self.overdue_rows().any(|row| row.held.to < at)
    }

    /// What would be posted now, for the hours that are not settled: a draft.
    pub fn unposted(&self, until: Instant) -> Result<Vec<PayerPosting>, BooksError> {
        let settled = self.ledger.settled_through;
        let next = Instant(settled.0.saturating_add(HOUR_NS));
        let draft = |from: Instant| self.settlement(Window::new(from, until.max(from)), self.cursor);
        let mut postings = draft(settled)?.postings;
        // A settlement under way, or interrupted: some payers are posted for the next hour already.
        let is_ahead = |posting: &PayerPosting| {
            let first = posting.parts.first().and_then(|part| self.ledger.payers.get(&(part.project, part.currency)));
            first.is_some_and(|book| book.through == next)
        };
        if self.ledger.payers.values().any(|book| book.through == next) {
            postings.retain(|posting| !is_ahead(posting));
            postings.extend(draft(next)?.postings.into_iter().filter(is_ahead));
            postings.sort_by_key(|posting| posting.parts.first().map(|part| (part.project, part.currency)));
        }
        Ok(postings)
    }
}
