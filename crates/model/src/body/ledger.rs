//! The ledger: postings, corrections, months, invoices and payments (SEMANTICS 12).

use crate::fields;
use crate::id::{ProjectNo, TenantNo};
use crate::instant::Instant;
use crate::ledger::{EntryId, ExactSteps, InvoiceNo, Leg, LineKey, Month, Residual, Steps, UsageDelta};
use crate::name::Name;
use crate::rate::{Currency, Decimal};

fields! {
    /// Usage is posted from this hour on.
    pub struct LedgerOpened { pub from: Instant }
}

fields! {
    /// One line of a posting: an entry that debits the payer's receivable and credits the revenue of the item.
    pub struct PostedLine {
        pub key: LineKey,
        /// What was used since the last posting, less what turned out not to be charged.
        pub usage: UsageDelta,
        /// The cost of that.
        pub exact: ExactSteps,
        pub posted: Steps,
    }
}

fields! {
    /// A part of what a payer owes for an hour: its usage in the hour, and what has changed in earlier hours since its
    /// last posting. The payer is the project in the record's head.
    pub struct LedgerPosted {
        pub currency: Currency,
        /// The month in which it is booked.
        pub month: Month,
        /// The end of the last hour that it covers.
        pub through: Instant,
        /// Whether the payer's postings up to that instant are complete with it.
        pub complete: bool,
        /// The number of records that it is computed from.
        pub as_of_size: u64,
        /// The payer's previous posting or correction in this currency.
        pub previous: Option<u64>,
        /// In order of their keys, also from one part to the next.
        pub lines: Vec<PostedLine>,
        /// What is left for the payer's next posting.
        pub residual: Residual,
    }
}

fields! {
    /// All payers of an hour are posted.
    pub struct HourSettled {
        /// The end of the hour.
        pub through: Instant,
        /// Whatever the records before this one say is posted.
        pub as_of_size: u64,
    }
}

fields! {
    /// The line of the posting that an entry belongs to, for entries that correct it.
    pub struct CorrectedLine { pub key: LineKey, pub usage: UsageDelta, pub exact: ExactSteps }
}

fields! {
    /// An entry was reversed and, unless it was wrong altogether, replaced. Position 0 is the reversal, 1 the
    /// replacement, and 2 the rounding.
    pub struct LedgerCorrected {
        pub currency: Currency,
        /// The month in which it is booked.
        pub month: Month,
        /// The month of the usage.
        pub original_month: Month,
        pub corrects: EntryId,
        /// The payer's previous posting or correction in this currency.
        pub previous: Option<u64>,
        /// The line of the corrected entry, if it was one of usage.
        pub line: Option<CorrectedLine>,
        pub reversal: Vec<Leg>,
        /// Empty if nothing takes the place of the entry.
        pub replacement: Vec<Leg>,
        /// Keeps the residual within half a step: a debit of the payer and a credit of rounding.
        pub rounding: Steps,
        pub residual: Residual,
        pub reason: Name,
    }
}

fields! {
    /// An entry that was booked by hand.
    pub struct LedgerAdjusted {
        pub currency: Currency,
        pub month: Month,
        /// The month that it is about.
        pub original_month: Month,
        pub previous: Option<u64>,
        pub legs: Vec<Leg>,
        pub reason: Name,
    }
}

fields! {
    /// A payer disputes an entry, or the dispute is closed.
    pub struct LedgerDisputed { pub entry: EntryId, pub open: bool, pub reason: Name }
}

fields! {
    /// The cut of a month: what was recorded before this belongs to it, whatever comes later to the next one.
    pub struct PeriodClosing { pub month: Month }
}

fields! {
    /// The tax on the part of an invoice with one rate.
    pub struct TaxLine {
        /// A factor: 0.19 is 19 %.
        pub rate: Decimal,
        /// What was posted with this rate.
        pub posted: Steps,
        /// That, rounded to the decimals of the currency.
        pub net: Steps,
        pub tax: Steps,
    }
}

fields! {
    /// An invoice, or a credit note. The tenant is the one in the record's head.
    pub struct InvoiceIssued {
        pub number: InvoiceNo,
        pub month: Month,
        pub currency: Currency,
        /// What each project was posted for the month. It is owed by the tenant from now on.
        pub projects: Vec<(ProjectNo, Steps)>,
        /// In order of rate.
        pub taxes: Vec<TaxLine>,
        /// What has to be paid: the rounded nets and their taxes.
        pub total: Steps,
        /// The number of lines, and the SHA-256 of their encoding.
        pub lines: u64,
        pub lines_hash: [u8; 32],
        pub due_at: Instant,
    }
}

fields! {
    /// A month is closed for ever.
    pub struct PeriodClosed { pub month: Month, pub invoices: u64, pub credit_notes: u64 }
    added {
        /// How many tenants can prove their invoices by a statement (ADR 25).
        1 pub statements: Option<u64>,
    }
}

fields! {
    /// A payment of a tenant.
    pub struct PaymentRecorded {
        pub currency: Currency,
        pub amount: Steps,
        /// The invoice that it was for, if the payer said so.
        pub invoice: Option<InvoiceNo>,
        /// Unique for the tenant.
        pub reference: Name,
        pub received_at: Instant,
    }
}

fields! {
    /// The tax rate of a tenant from a month on.
    pub struct TaxRatePut { pub tenant: TenantNo, pub from: Month, pub rate: Decimal }
}
