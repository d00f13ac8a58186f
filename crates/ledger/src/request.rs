//! What is asked of the engine: postings and invoices, as the books compute them.

use leasehold_model::ledger::ExactSteps;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Instant, LineKey, Month, ProjectNo, Steps, TenantNo, UsageDelta, fields};

fields! {
    /// A line that is to be posted, with its exact cost.
    pub struct RatedLine { pub key: LineKey, pub usage: UsageDelta, pub exact: ExactSteps }
}

fields! {
    /// A part of what a payer owes, as the books know it. See `LedgerPosted`; the engine rounds it.
    pub struct PostUsage {
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub currency: Currency,
        pub month: Month,
        pub through: Instant,
        pub complete: bool,
        pub as_of_size: u64,
        pub previous: Option<u64>,
        pub lines: Vec<RatedLine>,
    }
}

fields! {
    /// Issues the invoice of a tenant in one currency for the month that is being closed. The engine numbers it and
    /// computes tax and total.
    pub struct IssueInvoice {
        pub tenant: TenantNo,
        pub currency: Currency,
        pub projects: Vec<(ProjectNo, Steps)>,
        /// What was posted with each tax rate, in order of rate.
        pub taxed: Vec<(Decimal, Steps)>,
        pub lines: u64,
        pub lines_hash: [u8; 32],
        pub due_at: Instant,
    }
}
