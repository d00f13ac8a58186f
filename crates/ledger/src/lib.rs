//! The rules of the ledger: how exact costs become amounts that are posted, corrected and invoiced.
//!
//! In: exact amounts, what a payer's earlier postings left over, weights, tax rates. Out: whole steps of a currency that
//! add up, entries that sum to zero, and the figures of an invoice.
//!
//! Never: I/O, a clock, floating point, an amount that is rounded twice. The crate does not know where usage comes from.
//! The engine, the books and the verifier use the same rules.

pub mod difference;
pub mod entry;
pub mod exact;
pub mod invoice;
pub mod invoice_line;
pub mod posting;
pub mod request;
mod residual;
pub mod share;
mod small;

pub use entry::{correction_parts, line_legs, payer_amount, shared_legs, sums_to_zero};
pub use exact::Amount;
pub use invoice::{Taxed, round_to_currency, total, total_rounding};
pub use invoice_line::{InvoiceLine, InvoiceLineKey, lines_hash};
pub use leasehold_meter::Overflow;
pub use leasehold_model::ledger::STEPS_PER_UNIT;
pub use leasehold_model::{Residual, Steps};
pub use posting::{Posted, reversed, rounded};
pub use request::{IssueInvoice, PostUsage, RatedLine};
pub use share::shared;
