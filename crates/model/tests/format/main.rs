//! The byte format and its JSON view, held to what the pages in `docs/reference` say.
//!
//! `LEASEHOLD_FUZZ_CASES` sets how many cases each property tries; a failure prints what it found
//! and can be replayed with `PROPTEST_RNG_SEED`.

mod arbitrary;
mod arbitrary_allocations;
mod arbitrary_apps;
mod arbitrary_charges;
mod arbitrary_ledger;
mod arbitrary_quotas;
mod arbitrary_sharing;
mod arbitrary_sinks;
mod arbitrary_windows;
mod golden_bytes;
mod of_journals;
mod refusals;
mod samples;
mod sealing;
mod sizes;
mod story;
mod strictness;
mod texts;
mod view;
mod view_page;
