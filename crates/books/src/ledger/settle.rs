//! Settlement: what has to be posted next (SEMANTICS 12, "Posting").

use super::Partial;
use super::rating::{PayerLines, Rated};
use crate::facts::{Books, BooksError};
use leasehold_ledger::{Amount, PostUsage, RatedLine};
use leasehold_meter::Window;
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::limits::LEDGER_LINES_MAX;
use leasehold_model::{Instant, Month, UsageDelta};

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
fn grouped(lines: PayerLines) -> Vec<(Month, Vec<RatedLine>)> {
    let mut groups: Vec<(Month, Vec<RatedLine>)> = Vec::new();
    for (month, line) in lines {
        match groups.last_mut().filter(|(of, lines)| *of == month && lines.len() < LEDGER_LINES_MAX) {
            Some((_, lines)) => lines.push(line),
            None => groups.push((month, vec![line])),
        }
    }
    groups
}

impl Partial {
    /// Whether its parts contain a line of the settlement that it belongs to: lines are posted in order.
    fn contains(&self, (month, line): &(Month, RatedLine)) -> bool {
        (*month, &line.key) <= (self.month, &self.key)
    }
}

/// What is left of a line; `None` if the amounts cannot be represented.
fn less(line: Option<RatedLine>, posted: RatedLine) -> Option<RatedLine> {
    let (usage, exact) = match &line {
        Some(line) => (line.usage.0, Amount::decoded(&line.exact)?),
        None => (0, Amount::zero()),
    };
    let exact = (exact - &Amount::decoded(&posted.exact)?).encoded().ok()?;
    Some(RatedLine { usage: UsageDelta(usage - posted.usage.0), exact, ..posted })
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
        let begun = self.ledger.begun().filter(|(of, _)| *of == through).map(|(_, size)| size);
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
        let mut rated = self.rated(new, as_of_size)?;
        self.add_unit_lines(&mut rated, new.to, as_of_size)?;
        for (payer, (_, lines)) in &mut rated {
            let partial = self.ledger.payers.get(payer).and_then(|book| book.partial.as_ref());
            // Lines of usage units are left out already, because they are counted until they are posted.
            if let Some(partial) = partial {
                lines.retain(|line| !partial.contains(line));
            }
        }
        Ok(self.postings_of(rated, new.to, as_of_size))
    }

    fn postings_of(&self, rated: Rated, through: Instant, as_of_size: u64) -> Settlement {
        let mut postings = Vec::new();
        for ((project, currency), (tenant, lines)) in rated {
            let book = self.ledger.payers.get(&(project, currency));
            // It was posted before the settlement was interrupted.
            let is_done = book.is_some_and(|book| book.through == through && book.as_of_size == as_of_size);
            if is_done {
                continue;
            }
            let groups = grouped(lines);
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
        Settlement { through, as_of_size, postings }
    }

    /// Takes away what the parts of incomplete postings contain. What was recorded since they were computed stays.
    fn take_posted_parts(&self, rated: &mut Rated) -> Result<(), BooksError> {
        let books = self.ledger.payers.iter().filter_map(|(payer, book)| Some((payer, book.partial.as_ref()?)));
        for (payer, partial) in books {
            let window = Window::new(self.ledger.settled_through, partial.through);
            let Some((tenant, lines)) = self.rated(window, partial.as_of_size)?.remove(payer) else { continue };
            let (_, due) = rated.entry(*payer).or_insert_with(|| (tenant, PayerLines::new()));
            for (month, posted) in lines.into_iter().filter(|line| partial.contains(line)) {
                let place = due.binary_search_by(|(of, line)| (*of, &line.key).cmp(&(month, &posted.key)));
                let (before, place) = match place {
                    Ok(place) => (Some(due.remove(place).1), place),
                    Err(place) => (None, place),
                };
                let line = less(before, posted).ok_or_else(|| self.store.damage())?;
                if line.usage.0 != 0 || !line.exact.numerator.is_zero() {
                    due.insert(place, (month, line));
                }
            }
        }
        rated.retain(|_, (_, lines)| !lines.is_empty());
        Ok(())
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
        let draft = |from: Instant| -> Result<Settlement, BooksError> {
            let window = Window::new(from, until.max(from));
            let mut rated = self.rated(window, self.cursor)?;
            self.take_posted_parts(&mut rated)?;
            self.add_unit_lines(&mut rated, window.to, self.cursor)?;
            Ok(self.postings_of(rated, window.to, self.cursor))
        };
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
