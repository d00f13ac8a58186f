//! The steps of a group of requests, in order. Entries and invoices are read when their page is.

use super::{HourUsage, InvoicedLine, Request, Timeline, TimelinePlace, TimelineStep, TimelineWhat, lives};
use crate::correlations::Found;
use crate::facts::{Books, BooksError};
use crate::ledger::{Entry, EntryKind, InvoiceHead, InvoiceLineKey, StoryLines, entries_of};
use crate::row::Row;
use crate::trail::{StepKind, TrailStep};
use leasehold_model::rate::Currency;
use leasehold_model::{AllocationNo, Instant, LeaseNo, LineKey, Month, ProjectNo, TenantNo};
use std::collections::{BTreeMap, BTreeSet};

/// The place of a step in its group: its time, its record, and its rank among those of the same record.
type Place = (Instant, u64, u32);

/// Usage comes before the records of the same instant. No step is the first record of a journal.
const WITHOUT_RECORD: u64 = 0;

/// Records with lines of the hours of one payer that are looked at: of more than ten years.
const HOUR_RECORDS_MAX: usize = 100_000;

enum Draft {
    Ready(TimelineWhat),
    /// A record that has lines of an hour; perhaps those of other leases.
    Posting {
        kind: StepKind,
        tenant: TenantNo,
        payer: ProjectNo,
    },
    /// Lines of an invoice.
    Invoice {
        head: InvoiceHead,
        keys: BTreeSet<InvoiceLineKey>,
    },
}

/// The steps of a group.
pub(super) struct Gathered<'b> {
    books: &'b Books,
    steps: BTreeMap<Place, Draft>,
    /// The lines to which the leases contribute.
    lines: BTreeSet<(ProjectNo, Currency, LineKey)>,
    rows: BTreeMap<LeaseNo, Row>,
    stories: BTreeMap<AllocationNo, crate::stories::Story>,
}

impl<'b> Gathered<'b> {
    pub(super) fn of(books: &'b Books, found: Vec<Found>) -> Result<Self, BooksError> {
        let mut gathered = Self {
            books,
            steps: BTreeMap::new(),
            lines: BTreeSet::new(),
            rows: BTreeMap::new(),
            stories: BTreeMap::new(),
        };
        let mut tenants = BTreeMap::new();
        for found in found {
            let lines = gathered.add(found)?;
            for line in lines {
                tenants.insert(line.payer, line.tenant);
                gathered.lines.insert((line.payer, line.currency, line.key));
            }
        }
        gathered.add_postings(&tenants)?;
        Ok(gathered)
    }

    fn add(&mut self, found: Found) -> Result<StoryLines, BooksError> {
        match found {
            Found::Denied { sequence, at, of_allocation } => {
                let kind = if of_allocation { StepKind::Denied } else { StepKind::LeaseDenied };
                let step = TrailStep { kind, sequence, at, count: 1 };
                self.add_record(step, Request::Denial(sequence), None);
                Ok(Vec::new())
            }
            Found::Usage { sequence, at, part } => {
                let step = TrailStep { kind: StepKind::UsageRecorded, sequence, at, count: 1 };
                self.add_record(step, Request::Usage(sequence), None);
                Ok(self.books.line_of_part(part).into_iter().collect())
            }
            Found::Leases(rows) => {
                let request = Request::Grant(rows.first().map_or(0, |row| row.life.sequence));
                self.add_leases(rows, request)
            }
            Found::Allocation(story) => {
                let number = story.outline.number;
                let request = Request::Allocation(number);
                lives::of_allocation(&story).into_iter().for_each(|step| self.add_record(step, request, None));
                let leases: BTreeSet<LeaseNo> =
                    story.attempts.iter().flat_map(|attempt| attempt.numbers()).map(LeaseNo).collect();
                let rows = self.books.leases_of(leases)?.into_iter().map(|(row, _)| row).collect();
                self.stories.insert(number, *story);
                self.add_leases(rows, request)
            }
        }
    }

    fn add_record(&mut self, step: TrailStep, request: Request, lease: Option<LeaseNo>) {
        let TrailStep { kind, sequence, at, count } = step;
        let what = || Draft::Ready(TimelineWhat::Record { kind, request, leases: Vec::new(), count: 0 });
        let draft = self.steps.entry((at, sequence, kind as u32)).or_insert_with(what);
        if let Draft::Ready(TimelineWhat::Record { leases, count: most, .. }) = draft {
            leases.extend(lease);
            *most = count.max(*most);
        }
    }

    fn add_leases(&mut self, rows: Vec<Row>, request: Request) -> Result<StoryLines, BooksError> {
        for row in &rows {
            let steps = lives::of_lease(self.books, row);
            steps.into_iter().for_each(|step| self.add_record(step, request, Some(row.lease)));
        }
        let lines = self.books.story_lines(&rows)?;
        for line in lines.iter().filter(|line| line.usage > 0) {
            let usage = HourUsage {
                payer: line.payer,
                currency: line.currency,
                key: line.key.clone(),
                usage: line.usage,
                cost: line.cost.clone(),
            };
            // After the usage that was complete at the same instant.
            let last = self.steps.range((line.at, WITHOUT_RECORD, 0)..=(line.at, WITHOUT_RECORD, u32::MAX)).next_back();
            let rank = last.map_or(0, |((_, _, rank), _)| rank + 1);
            let what = TimelineWhat::Usage { request, usage };
            self.steps.insert((line.at, WITHOUT_RECORD, rank), Draft::Ready(what));
        }
        self.rows.extend(rows.into_iter().map(|row| (row.lease, row)));
        Ok(lines)
    }

    /// Adds the records that have lines of the same hours, and the invoices of the months in which they are booked.
    fn add_postings(&mut self, tenants: &BTreeMap<ProjectNo, TenantNo>) -> Result<(), BooksError> {
        let mut payers: BTreeMap<(ProjectNo, Currency), BTreeMap<Instant, Vec<&LineKey>>> = BTreeMap::new();
        for (payer, currency, key) in &self.lines {
            payers.entry((*payer, *currency)).or_default().entry(key.hour).or_default().push(key);
        }
        let mut invoiced: BTreeMap<(TenantNo, Currency, Month), BTreeSet<InvoiceLineKey>> = BTreeMap::new();
        for ((payer, currency), hours) in &payers {
            let (Some((first, _)), Some((last, _))) = (hours.first_key_value(), hours.last_key_value()) else {
                continue;
            };
            let tenant = tenants[payer];
            for record in self.books.hour_records(*payer, *currency, (*first, *last), HOUR_RECORDS_MAX)? {
                let Some(keys) = hours.get(&record.hour) else { continue };
                let kind = if record.is_correction { StepKind::Corrected } else { StepKind::Posted };
                let posting = Draft::Posting { kind, tenant, payer: *payer };
                self.steps.entry((record.at, record.sequence, kind as u32)).or_insert(posting);
                let key = |key: &&LineKey| match record.is_correction {
                    true => InvoiceLineKey::of_correction(*payer, Month::of(key.hour), Some(key)),
                    false => InvoiceLineKey::of_usage(*payer, key),
                };
                invoiced.entry((tenant, *currency, record.month)).or_default().extend(keys.iter().map(key));
            }
        }
        for ((tenant, currency, month), keys) in invoiced {
            let is_it = |head: &&InvoiceHead| (head.tenant, head.currency, head.month) == (tenant, currency, month);
            if let Some(head) = self.books.invoices().iter().find(is_it) {
                let place = (head.issued_at, head.sequence, StepKind::Invoiced as u32);
                self.steps.insert(place, Draft::Invoice { head: head.clone(), keys });
            }
        }
        Ok(())
    }

    /// Adds a page of the steps after a place, and says where it ended if there are more.
    pub(super) fn take(
        mut self,
        after: Option<TimelinePlace>,
        limit: usize,
        group: (TenantNo, u64),
        page: &mut Timeline,
    ) -> Result<Option<TimelinePlace>, BooksError> {
        let after = after.map(|after| (after.at, after.sequence, after.rank));
        let steps = std::mem::take(&mut self.steps);
        let mut left = steps.into_iter().filter(|(place, _)| after.is_none_or(|after| *place > after)).peekable();
        let mut last = None;
        while page.steps.len() < limit
            && let Some(((at, sequence, rank), draft)) = left.next()
        {
            last = Some(TimelinePlace { group, at, sequence, rank });
            let Some(what) = self.read(sequence, draft)? else { continue };
            page.steps.push(TimelineStep { at, sequence: (sequence != WITHOUT_RECORD).then_some(sequence), what });
        }
        page.leases.append(&mut self.rows);
        page.allocations.append(&mut self.stories);
        Ok(last.filter(|_| left.peek().is_some()))
    }

    fn read(&self, sequence: u64, draft: Draft) -> Result<Option<TimelineWhat>, BooksError> {
        match draft {
            Draft::Ready(what) => Ok(Some(what)),
            Draft::Posting { kind, tenant, payer } => {
                let stored = self.books.stored_entry(sequence)?.ok_or_else(|| self.books.store.damage())?;
                let is_line = |entry: &Entry| {
                    entry
                        .line
                        .as_ref()
                        .is_some_and(|line| self.lines.contains(&(payer, entry.currency, line.key.clone())))
                };
                let mut entries = entries_of(sequence, &stored);
                if !entries.iter().any(is_line) {
                    return Ok(None);
                }
                // The rounding belongs to the correction.
                entries.retain(|entry| is_line(entry) || entry.kind == EntryKind::Rounding);
                Ok(Some(TimelineWhat::Entries { kind, tenant, payer, entries }))
            }
            Draft::Invoice { head, keys } => {
                let invoice = self.books.invoice(head.number)?.ok_or_else(|| self.books.store.damage())?;
                let lines = (1..).zip(invoice.lines).filter(|(_, (key, _))| keys.contains(key));
                let lines: Vec<InvoicedLine> =
                    lines.map(|(number, (key, line))| InvoicedLine { number, key, line }).collect();
                let InvoiceHead { number, tenant, month, currency, .. } = head;
                let what = TimelineWhat::Invoice { number, tenant, month, currency, lines };
                Ok(Some(what).filter(|what| !matches!(what, TimelineWhat::Invoice { lines, .. } if lines.is_empty())))
            }
        }
    }
}
