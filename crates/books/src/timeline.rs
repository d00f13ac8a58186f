//! Timelines: everything about a correlation ID, in order of time.
//!
//! The records of the lives of its leases and allocations, their usage hour by hour, the entries of the ledger whose
//! lines contain this usage, and the lines of invoices. An ID with many requests is told in groups of requests.

mod gather;
mod lives;

use crate::correlations::{Found, RequestPlace};
use crate::facts::{Books, BooksError};
use crate::ledger::{Entry, InvoiceLine, InvoiceLineKey};
use crate::row::Row;
use crate::stories::Story;
use crate::trail::StepKind;
use gather::Gathered;
use leasehold_model::body::Correlation;
use leasehold_model::id::CorrelationId;
use leasehold_model::ledger::ExactSteps;
use leasehold_model::rate::Currency;
use leasehold_model::{AllocationNo, Instant, InvoiceNo, LeaseNo, LineKey, Month, ProjectNo, TenantNo};
use std::collections::BTreeMap;

/// A query for a timeline.
#[derive(Clone, Debug)]
pub struct TimelineQuestion {
    pub id: CorrelationId,
    /// The sequence from which the ID is derived, if it is one that the daemon made.
    pub derived: Option<u64>,
    /// Only requests of this tenant.
    pub tenant: Option<TenantNo>,
    /// The page starts after this place.
    pub after: Option<TimelinePlace>,
    /// The size of the page.
    pub limit: usize,
}

/// The place of a step: the group of requests that it belongs to, and its place among the steps of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimelinePlace {
    /// The tenant and the first record of the first request in the group.
    pub group: (TenantNo, u64),
    pub at: Instant,
    pub sequence: u64,
    pub rank: u32,
}

/// The request that a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    Allocation(AllocationNo),
    /// The sequence of a grant without an allocation.
    Grant(u64),
    /// The sequence of a denial.
    Denial(u64),
    /// The sequence of a usage record.
    Usage(u64),
}

/// What leases used in an hour, at one price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourUsage {
    pub payer: ProjectNo,
    pub currency: Currency,
    pub key: LineKey,
    /// Charged quanta × nanoseconds.
    pub usage: u128,
    /// The exact cost of that.
    pub cost: ExactSteps,
}

/// A line of an invoice that contains usage of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoicedLine {
    /// Counted from one.
    pub number: usize,
    pub key: InvoiceLineKey,
    pub line: InvoiceLine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimelineWhat {
    /// A record, or the last of several of the same kind.
    Record {
        kind: StepKind,
        request: Request,
        leases: Vec<LeaseNo>,
        count: u32,
    },
    Usage {
        request: Request,
        usage: HourUsage,
    },
    /// A posting or a correction, with those of its entries that contain usage of the timeline.
    Entries {
        kind: StepKind,
        tenant: TenantNo,
        payer: ProjectNo,
        entries: Vec<Entry>,
    },
    Invoice {
        number: InvoiceNo,
        tenant: TenantNo,
        month: Month,
        currency: Currency,
        lines: Vec<InvoicedLine>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineStep {
    pub at: Instant,
    /// None for usage, which has no record of its own.
    pub sequence: Option<u64>,
    pub what: TimelineWhat,
}

/// A page of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// In order of time, within each group of requests.
    pub steps: Vec<TimelineStep>,
    /// The cursor of the next page; none on the last page. A page may end early.
    pub next: Option<TimelinePlace>,
    /// The leases and allocations that the steps name.
    pub leases: BTreeMap<LeaseNo, Row>,
    pub allocations: BTreeMap<AllocationNo, Story>,
}

/// Requests that are told together, and the leases after which a group ends.
const GROUP_REQUESTS: usize = 64;
const GROUP_LEASES: usize = 4096;
/// Parts that a usage record has at most, with a price that changes twice a day for a year.
const PARTS_MAX: usize = 1024;
/// Groups that one page looks at.
const GROUPS_MAX: usize = 16;

/// Requests that are told together.
struct Group {
    found: Vec<Found>,
    /// Where the next group begins.
    next: Option<RequestPlace>,
}

fn lease_count(found: &Found) -> usize {
    match found {
        Found::Allocation(story) => story.attempts.iter().map(|attempt| attempt.leases as usize).sum(),
        Found::Leases(rows) => rows.len(),
        Found::Denied { .. } | Found::Usage { .. } => 0,
    }
}

impl Books {
    /// A page of the timeline of an ID: of the requests for whose owner `sees` returns true. None if there are none.
    pub fn timeline(
        &self,
        question: &TimelineQuestion,
        sees: impl Fn(TenantNo, ProjectNo) -> bool,
    ) -> Result<Option<Timeline>, BooksError> {
        let first = question
            .after
            .map_or(RequestPlace::FIRST, |after| RequestPlace { tenant: after.group.0, sequence: after.group.1 });
        let mut page = Timeline::default();
        let (mut place, mut any) = (first, question.after.is_some());
        for _ in 0..GROUPS_MAX {
            let group = self.group(question, place, &sees)?;
            any |= !group.found.is_empty();
            let of_group = (place.tenant, place.sequence);
            let after = question.after.filter(|after| after.group == of_group);
            let gathered = Gathered::of(self, group.found)?;
            let last = gathered.take(after, question.limit, of_group, &mut page)?;
            if last.is_some() {
                page.next = last;
                return Ok(Some(page));
            }
            let Some(next) = group.next else {
                page.next = None;
                return Ok(any.then_some(page));
            };
            place = next;
            page.next =
                Some(TimelinePlace { group: (next.tenant, next.sequence), at: Instant(0), sequence: 0, rank: 0 });
            if !page.steps.is_empty() {
                break;
            }
        }
        Ok(Some(page))
    }

    fn group(
        &self,
        question: &TimelineQuestion,
        from: RequestPlace,
        sees: &impl Fn(TenantNo, ProjectNo) -> bool,
    ) -> Result<Group, BooksError> {
        let mut group = Group { found: Vec::new(), next: None };
        // What the daemon derived the ID from came before everything that was given it.
        if let Some(sequence) = question.derived.filter(|_| from == RequestPlace::FIRST) {
            let of_tenant = |tenant, project| question.tenant.is_none_or(|own| own == tenant) && sees(tenant, project);
            group.found.extend(self.request(Correlation::Derived(sequence), sequence, &of_tenant)?);
        }
        let mut leases: usize = group.found.iter().map(lease_count).sum();
        let given = self.given(question.id.0, question.tenant, from, GROUP_REQUESTS + PARTS_MAX)?;
        let mut last = None;
        for (read, (place, key)) in given.iter().enumerate() {
            // The parts of a usage record are told together.
            let is_full = read >= GROUP_REQUESTS || read > 0 && leases > GROUP_LEASES;
            if is_full && last != Some(*place) {
                group.next = Some(*place);
                break;
            }
            last = Some(*place);
            let found = self.request_given(question.id.0, key, sees)?;
            leases += found.iter().map(lease_count).sum::<usize>();
            group.found.extend(found);
        }
        Ok(group)
    }
}
