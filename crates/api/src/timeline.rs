//! Timelines: everything about a correlation ID, in order.

use crate::{AllocationId, LedgerAmount, LedgerEntry, LedgerLine, MonthText, Priority, When};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a step of a timeline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimelineKind {
    /// A request was submitted, changed or put on hold.
    Request,
    /// A decision of the daemon: a grant, a denial, a placement, a reservation or a preemption.
    Decision,
    /// A record about leases: renewed, revoked, ended, torn down or fenced.
    Lease,
    /// A record about an allocation: started, checkpointed, interrupted or ended.
    Allocation,
    /// Usage in an hour, and its cost.
    Usage,
    /// Entries of the ledger that contain usage of the timeline.
    Entry,
    /// Entries that correct those.
    Correction,
    /// Lines of an invoice that contain usage of the timeline.
    Invoice,
}

/// Usage of the timeline in one hour, at one price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineUsage {
    /// The line of the payer that this usage is a part of, with the part of its quantity and exact cost.
    #[serde(flatten)]
    pub line: LedgerLine,
    /// Name of the project that pays.
    pub payer: String,
    /// Cost, rounded to six decimals.
    pub cost: LedgerAmount,
    /// Currency code of three capital letters.
    pub currency: String,
}

/// A line of an invoice that contains usage of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineInvoiceLine {
    /// Number of the line on the invoice, counted from one.
    pub line: usize,
    /// Month of the usage.
    pub month: MonthText,
    /// Name of the project that pays.
    pub project: String,
    /// Name of the pool; null for entries by hand.
    pub pool: Option<String>,
    /// Name of the resource class; null for usage units and entries by hand.
    pub class: Option<String>,
    /// Name of the usage unit; null for everything else.
    pub usage_unit: Option<String>,
    /// Priority of the leases; null for entries by hand.
    pub priority: Option<Priority>,
    /// Whether it comes from a correction.
    pub correction: bool,
    /// Amount of the whole line, which may contain usage of others.
    pub amount: LedgerAmount,
}

/// An invoice or credit note with lines that contain usage of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineInvoice {
    /// Number of the invoice.
    pub number: String,
    /// Month of the invoice.
    pub month: MonthText,
    /// Currency code of three capital letters.
    pub currency: String,
    /// The lines that contain usage of the timeline.
    pub lines: Vec<TimelineInvoiceLine>,
}

/// One step of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineStep {
    /// When it was recorded; for usage, when the usage of the hour was complete.
    pub at: When,
    /// Sequence number of its record; null for usage, which has none.
    pub sequence: Option<u64>,
    /// What it is about.
    pub kind: TimelineKind,
    /// Kind of the record, such as `lease.granted`; `usage` for usage.
    pub event: String,
    /// The step in a few words.
    pub text: String,
    /// ID of the allocation. Absent if the step belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<AllocationId>,
    /// IDs of the leases that the record is about. Absent if it is about none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lease_ids: Vec<String>,
    /// Number of records of this kind that the step stands for; it is at the last of them.
    pub count: u32,
    /// The usage. Absent unless the step is usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<TimelineUsage>>,
    /// Those entries of the record that contain usage of the timeline. Absent unless the step is about entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<LedgerEntry>,
    /// The invoice. Absent unless the step is an invoice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoice: Option<TimelineInvoice>,
}

/// One page of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// The correlation ID, as a UUID.
    pub correlation_id: String,
    /// Number of records that the answer is computed from.
    pub as_of_size: u64,
    /// Steps in order of time. If the ID has more than 64 requests, they are told in groups of 64 requests.
    pub steps: Vec<TimelineStep>,
    /// Pass as `cursor` to get the next page. Absent on the last page. A page can have fewer steps than its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
