//! The ledger as a whole: an engine that decides, books that follow its records, and settlement between them.
//!
//! The worked examples have every number by hand.

mod bills;
mod corrections;
mod months;
mod postings;
mod prepaid;
mod reported;
mod timelines;
mod world;
