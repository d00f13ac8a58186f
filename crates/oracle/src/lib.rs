//! The independent brute-force model that the simulator compares the engine with.
//!
//! In: the records of a journal in order, and the contents of requests. Out: a [`Violation`] for the first record that
//! the rules forbid; a plain [`Summary`] of the state; the answer that a request must get ([`Expected`]); usage over
//! any window.
//!
//! It is written from SEMANTICS 1–7, never from the engine. Every figure is recomputed from the list of all leases: no
//! counters, no indexes, no heap of timers.
//!
//! Never: depend on the engine or the meter, store a derived figure, do I/O, read a clock, use randomness or floats.

mod access;
pub mod accounts;
mod acts;
mod agents;
mod allocation;
mod apps;
mod assurance;
mod assured_start;
mod attachments;
mod booking;
mod capacity;
mod catalog;
mod ceiling;
mod ceiling_claims;
mod claim;
mod command;
mod custody;
mod dice;
#[cfg(test)]
mod driven;
mod due;
mod entitlements;
mod eviction;
mod foretell;
mod foretell_quota;
mod gang;
mod grant;
mod heat;
mod holder;
mod invariants;
mod lease;
pub mod ledger;
mod lifecycle;
mod loss;
mod nodes;
mod oracle;
mod own_eviction;
pub mod placement;
mod policies;
mod pool_access;
mod prepaid;
mod prepaid_admission;
mod prepaid_credits;
mod prepaid_records;
mod protection;
mod queue;
mod quota;
mod rates;
mod request;
mod reservation;
mod shares;
mod sharing;
mod sinks;
mod standing;
mod submission;
mod summary;
mod takeover;
mod transitions;
mod usage;
mod usage_records;
mod violation;
mod window;
mod world;

pub use apps::{AppInstanceWish, AppTypeWish, UnitPriceWish};
pub use attachments::{AttachmentWish, RenewalWish};
pub use custody::{Custody, EndedClaim};
pub use dice::Dice;
pub use entitlements::EntitlementLine;
pub use foretell::{BudgetWishes, Caller, Foretold, Wish};
pub use foretell_quota::QuotaWish;
pub use leasehold_model::body::SettingsChanged as Settings;
pub use loss::{EndedLease, OpenLoss};
pub use oracle::Oracle;
pub use policies::PolicyWish;
pub use prepaid_admission::Shortfall;
pub use prepaid_records::TopUpWish;
pub use request::{Expected, RequestFacts};
pub use sharing::SharingWish;
pub use sinks::{SinkLine, SinkWish};
pub use submission::{Change, Word};
pub use summary::{
    AllocationLine, CapacityLine, CeilingLine, CountedFor, EpisodeLine, LeaseLine, NodeLine, QuotaLine, StandingLine,
    Summary,
};
pub use usage_records::UsageWish;
pub use violation::Violation;
pub use window::WindowWish;
