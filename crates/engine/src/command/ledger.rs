//! Commands of the ledger.

pub use leasehold_ledger::{IssueInvoice, PostUsage, RatedLine};
use leasehold_model::body::{CorrectedLine, PeriodStated};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{EntryId, Instant, InvoiceNo, Leg, Month, Name, ProjectNo, Steps, TenantNo, fields};

fields! {
    /// Starts the ledger. Usage is posted from this hour on, by default from the present one.
    pub struct OpenLedger { pub from: Option<Instant> }
}

fields! { pub struct SettleHour { pub through: Instant, pub as_of_size: u64 } }

fields! {
    /// Reverses an entry and, unless `replacement` is empty, puts another one in its place.
    pub struct CorrectEntry {
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub currency: Currency,
        /// The month of the usage.
        pub original_month: Month,
        pub corrects: EntryId,
        /// The payer's last posting or correction that the books know.
        pub previous: Option<u64>,
        pub line: Option<CorrectedLine>,
        pub reversal: Vec<Leg>,
        pub replacement: Vec<Leg>,
        pub reason: Name,
    }
}

fields! {
    /// Books an entry by hand. The month that it is about is by default the open one.
    pub struct AdjustLedger {
        pub project: ProjectNo,
        pub currency: Currency,
        pub original_month: Option<Month>,
        pub legs: Vec<Leg>,
        pub reason: Name,
    }
}

fields! {
    /// Marks an entry as disputed, or closes the dispute.
    pub struct DisputeEntry {
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub entry: EntryId,
        pub open: bool,
        pub reason: Name,
    }
}

fields! {
    /// States what the records of the month that is being closed say about a tenant (ADR 25).
    #[derive(Copy)]
    pub struct StatePeriod { pub tenant: TenantNo, pub stated: PeriodStated }
}

fields! {
    /// Records a payment of a tenant, by default received now.
    pub struct RecordPayment {
        pub tenant: TenantNo,
        pub currency: Currency,
        pub amount: Steps,
        pub invoice: Option<InvoiceNo>,
        pub reference: Name,
        pub received_at: Option<Instant>,
    }
}

fields! {
    /// Sets the tax rate of a tenant from a month on, by default from the present one.
    pub struct PutTaxRate { pub tenant: TenantNo, pub from: Option<Month>, pub rate: Decimal }
}
