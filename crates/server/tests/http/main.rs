//! The daemon over HTTP, as its callers meet it. One program of tests, so that it is linked once.

mod access;
mod agents;
mod allocations;
mod api;
mod audit;
mod authenticity;
mod bad_input;
mod books;
mod ceilings;
mod charged;
mod claims;
mod clock;
mod conform;
mod empty_nodes;
mod evictions;
mod explain;
mod fairness;
mod ledger;
mod past;
mod placement;
mod prepaid;
mod quotas;
mod rates;
mod reports;
#[path = "../../../api/tests/support/schema.rs"]
mod schema;
mod scrub;
mod scrub_forgery;
mod status;
mod streams;
mod takeovers;
mod timelines;
mod waiting;
mod windows;
mod words;
mod world;
