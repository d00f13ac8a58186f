//! Whether an invoice follows from the records of its tenant (ADR 25, "What is checked").
//!
//! Whether the records are in the journal, and who signed for it, is checked elsewhere.

mod chain;
mod checker;
mod corrections;
mod invoice;
mod replay;
mod shares;
mod together;

pub use together::check_together;

use crate::list::{ClaimedNodes, CommonList, TenantList};
use checker::Checker;
use leasehold_ledger::InvoiceLineKey;
use leasehold_model::body::{InvoiceIssued, PeriodStated, PrepaidApplied};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{EntryId, Hash, LineKey, Month, ProjectNo, Record, Steps, TenantNo};
use std::fmt;

/// A record with its place in the journal and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evident {
    pub sequence: u64,
    pub hash: Hash,
    pub record: Record,
}

/// All that a proof of an invoice rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub tenant: TenantNo,
    pub month: Month,
    pub currency: Currency,
    /// The sequence of the statement, and what it says.
    pub statement: (u64, PeriodStated),
    pub common_at_start: CommonList,
    pub list_at_start: TenantList,
    pub claimed_nodes: ClaimedNodes,
    /// In order: the tenant's and the common records of the range; `period.closing` of the previous month, unless the
    /// ledger was opened in this one; and the tenant's records from the cut to its invoice, with the `prepaid.applied`
    /// that follow it. `period.closing` of the month, `period.closed` and `ledger.hour_settled` may be among them.
    pub records: Vec<Evident>,
}

/// Where something does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One of the lists, by its name.
    List(&'static str),
    /// The records of the range: those of the tenant, or the common ones.
    Records(&'static str),
    /// A record that cannot follow those before it.
    Record(u64),
    /// A line that was posted, or should have been.
    Line { payer: ProjectNo, key: LineKey },
    /// An entry of the ledger.
    Entry(EntryId),
    /// A line of the invoice.
    InvoiceLine(InvoiceLineKey),
    /// What a project owes by the invoice.
    Project(ProjectNo),
    /// The tax with one rate.
    Tax(Decimal),
    /// A figure of the invoice, by its name.
    Invoice(&'static str),
}

/// Something that is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub place: Place,
    pub expected: String,
    pub found: String,
    /// By how much, where that is a number.
    pub difference: Option<String>,
    /// A sentence.
    pub why: String,
}

/// Something that this evidence cannot prove, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotProved(pub String);

impl fmt::Display for NotProved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was found about a line of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its usage and its amount follow from the records.
    Proved,
    /// Its amount is the sum of entries that were booked by hand, as recorded.
    ByHand,
    /// It is a share of a cost of which other tenants bear or know a part: that part is not proved.
    Shared,
    /// It depends on records that are not in the evidence.
    NotProved,
    /// It does not follow from the records.
    Wrong,
}

/// A line of an invoice with what was found about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedLine {
    pub key: InvoiceLineKey,
    /// Quanta × nanoseconds, or 10^-18 of a usage unit.
    pub usage: i128,
    pub posted: Steps,
    pub verdict: Verdict,
}

/// What was found about an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The invoice and the sequence of its record, if it is among the records.
    pub invoice: Option<(u64, InvoiceIssued)>,
    pub lines: Vec<CheckedLine>,
    /// What prepaid credit paid of it.
    pub prepaid: Vec<(u64, PrepaidApplied)>,
    pub mismatches: Vec<Mismatch>,
    pub not_proved: Vec<NotProved>,
}

impl Report {
    /// Whether nothing contradicts the invoice. What is in `not_proved` has to be believed.
    pub fn is_proved(&self) -> bool {
        self.invoice.is_some() && self.mismatches.is_empty()
    }
}

/// Checks an invoice against the records, the lists and the statement of its month.
pub fn check(evidence: &Evidence) -> Report {
    let mut checker = Checker::new(evidence);
    checker.check_lists();
    // Lists that are not those of the statement are anybody's: nothing is computed from them.
    let replayed = if checker.fits_so_far() { checker.replay() } else { None };
    if let Some(replayed) = &replayed {
        checker.check_usage(replayed);
        checker.check_shares(replayed);
        checker.check_invoice(replayed);
    }
    checker.report()
}
