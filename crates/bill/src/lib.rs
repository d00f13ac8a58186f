//! What the records of a month amount to for one tenant (ADR 25).
//!
//! In: records in the order of the journal, either all of them or those that concern one tenant, with the lists that say
//! how things stood before. Out: whose record each is, the lists, the statements of a month, what each line used, and
//! whether an invoice follows from all that.
//!
//! Never: I/O, a clock, floating point, a decision. The books do not use this crate: they compute usage another way, so
//! that an error in either makes a proof fail.

mod check;
mod common;
mod concern;
mod fold;
mod found;
mod idle;
mod kept;
mod kinds;
mod leases;
mod list;
mod outside;
pub mod proof_file;
mod recheck;
mod reported;
mod saved;
mod sharing;
mod sorted;
mod statement;
mod tenant;
mod tenant_facts;
mod usage;

pub use check::{CheckedLine, Evidence, Evident, Mismatch, NotProved, Place, Report, Verdict, check, check_together};
pub use concern::Concern;
pub use fold::{Contradiction, Fold};
pub use found::{Found, OfMonth};
pub use list::{
    Attempt, Card, ClaimedNode, ClaimedNodes, CommonList, Ending, KnownApp, Limit, OpenClaim, OpenLease, Outage, Payer,
    Phase, Revocation, TenantList,
};
pub use recheck::{Failed, Visit, Wrong, recheck};
pub use sorted::{Keyed, Sorted};
pub use statement::{Progress, Stated, StatedTenant, Statements};
pub use usage::{Used, UsedLines};
