//! Answers questions about the past: usage, peaks, cost, waste, and the history of every lease and allocation.
//!
//! In: durable records, in order. Out: the same answers as a pass over the whole journal, but without reading it. The
//! books are stored in one file next to the journal; a missing, old or damaged file is rebuilt from the journal.
//!
//! The books are never ahead of the durable records. They contain no samples, estimates or implicit rounding; no names
//! of tenants and other objects, only numbers; and nothing about HTTP.

mod activity;
mod allocations;
mod ask;
mod balance;
mod buckets;
mod bytes;
mod chunk;
mod claims;
mod correlations;
mod cost;
mod facts;
mod finder;
mod follow;
mod keeper;
mod leases;
mod ledger;
mod losses;
mod mix;
mod names;
mod nodes;
mod overdue;
mod peak;
mod persist;
mod reserved;
mod row;
mod runs;
mod scan;
mod seal;
mod sensitivity;
mod stays;
mod store;
mod stories;
mod summary;
mod table;
mod timeline;
mod trail;
mod units;
mod usage;
mod usage_lines;
mod waste;

pub use activity::{Activities, Activity};
pub use allocations::{AllocationPage, AllocationQuestion};
pub use ask::{DIMS_MAX, Dim, Filter, HeldAs, Key, LINES_MAX, NONE, Question, Workloads};
pub use balance::Balance;
pub use buckets::{BUCKETS_MAX, BadBuckets, Bucket, Buckets, month_of};
pub use cost::{CostLine, LiveRate};
pub use facts::{Books, BooksError};
pub use keeper::{COMMIT_RECORDS, Keeper, Opened, Written};
pub use leases::{LeasePage, LeaseQuestion};
pub use ledger::{
    Entry, EntryKind, EntryLine, EntryPage, EntryQuestion, Invoice, InvoiceDraft, InvoiceHead, InvoiceLine,
    InvoiceLineKey, LineLease, LineSource, PayerPosting, Payment, PrepaidEntry, PrepaidEvent, Settlement, Share,
};
pub use losses::{EndedClaim, EndedOnNode};
pub use names::{NamedKind, NamedObject};
pub use nodes::{CapacityKey, CapacityLine, CapacitySeries, EmptyNode};
pub use peak::{PeakLine, PeaksTogether};
pub use row::{End, Ending, Life, Rare, Renewals, Revocation, Row};
pub use sensitivity::{KindProfile, Sensitivity, WorkloadProfile};
pub use stories::{Attempt, Checkpoint, Outline, Over, Story};
pub use timeline::{
    HourUsage, InvoicedLine, Request, Timeline, TimelinePlace, TimelineQuestion, TimelineStep, TimelineWhat,
};
pub use trail::{StepKind, TrailStep};
pub use units::{AppAnchors, KnownUsage, UnitLine, UnitSeries};
pub use usage_lines::{Usage, UsageLine};
pub use waste::{FRAGMENTED_LEASE_COUNT, LeaseWaste, Waste, WasteClass};
