//! The ledger: posting hours, closing a month, and balances, by the daemon's own settlement. The same double entries are
//! posted into PostgreSQL in the same run.
//!
//! The daemon runs in this process, with a clock that is advanced by hand: the books compute what has to be posted, the
//! settlement submits it, the engine rounds and seals it, and an hour is done when the books have its last record.

mod balance;
mod cluster;
mod daemon;
mod hours;
mod month;
mod proof;
mod proof_month;
mod served;
mod transfers;

pub(crate) use hours::post_hours;
pub(crate) use month::close_month;
pub(crate) use proof::invoice_proof;
