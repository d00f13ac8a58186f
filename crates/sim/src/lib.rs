//! The seeded simulator: the real engine, journal and cell on a disk that fails, compared with a brute-force model
//! that shares no code with them.
//!
//! In: a seed. Out: nothing, or the seed, the step and what went wrong.
//!
//! Everything runs on one thread with a simulated clock, so that a run depends only on its seed. Never: real files,
//! real time, other randomness.

mod answers;
mod apps;
mod apps_events;
mod ceilings;
mod claims;
mod compare;
pub mod draw;
mod entitlements;
mod entitlements_events;
mod events;
mod fault_disk;
mod gangs;
mod headroom;
mod ledgers;
mod life;
mod losses;
mod maintenance;
mod months;
mod policies;
mod prepaid;
mod prepaid_events;
mod prices;
mod readings;
mod requests;
mod run;
mod shares;
mod sharing;
mod sharing_events;
mod sinks;
mod usage;
mod usage_events;
mod wishes;

pub use fault_disk::{FaultDisk, Faults};
pub use leasehold_oracle::Dice;
pub use run::{Failure, Tally, run_months, run_seed, run_seeds, tell_months, tell_seed};
