//! The client of the HTTP API: what the command line, the agent and the tests speak to the daemon with.
//!
//! In: a [`Config`], typed requests of `leasehold_api`. Out: typed answers, [`Error`]s that say what to do, records as
//! they become durable ([`Events`]), and leases that stay held while they are needed ([`Lease`]).
//! Every change carries an idempotency key, so that it is sent again without fear where the answer was lost.
//! Never: a rule about leases, a retry without a deadline, a secret in a text.

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
