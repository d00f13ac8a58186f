//! A client of the HTTP API, used by the command line, the agent and the tests.
//!
//! In: a [`Config`], typed requests of `leasehold_api`. Out: typed answers, [`Error`]s with advice, records as they become
//! durable ([`Events`]), and leases that are renewed while they are held ([`Lease`]).
//! Every change can safely be sent again if the answer was lost: it has an idempotency key, or is idempotent without one.
//! Never: a rule about leases, a retry without a deadline, a secret in a message.
//!
//! `examples/hold_a_gpu.rs` is a complete program that holds a GPU while it works.

mod book_query;
mod call;
mod client;
mod config;
mod connection_error;
mod endpoints;
mod error;
mod events;
mod lease;
mod page;
mod random;
mod retry;
mod secret;
mod settings;
mod sse;
mod waiting;

pub use book_query::BookQuery;
pub use call::{Answer, Bytes, Call, Download, Json, Text};
pub use client::Client;
pub use config::{Config, ConfigError, Timeouts};
pub use error::Error;
pub use events::{Event, EventFilter, Events};
pub use lease::{Keep, Lease, Lost, Report, Why};
pub use page::{Page, Pages};
pub use secret::Secret;
pub use settings::{Named, Settings};
pub use waiting::Placed;

/// The wire types, so that one dependency is enough.
pub use leasehold_api as api;
