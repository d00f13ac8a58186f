//! The daemon: the HTTP API over a cell, access checks, the event stream, metrics.
//!
//! In: requests with tokens, a configuration, a clock. Out: answers, for changes only after they are durable; records
//! as they become durable, to event streams; metrics.
//! Access is decided here from the tokens in the state; business rules are decided by the engine.
//! Never: a rule about leases, a read of the deciding state, a secret in a log.
// A problem is created once for a refused request and passed up a few calls, so its size does not matter.
#![allow(clippy::result_large_err)]

mod access;
mod agents;
mod answer;
mod app;
mod archive_state;
mod body;
mod books;
pub mod config;
mod context;
mod daemon;
mod data_directory;
mod deliveries;
mod docs_page;
mod empty_nodes;
mod explain;
mod invoice_page;
mod invoice_proof;
mod key_history;
mod key_memory;
pub mod listen;
mod live;
pub mod logging;
mod losses;
pub mod metrics;
mod names;
mod notices;
mod past;
mod permissions;
mod prices;
mod problem;
mod profiles;
mod proofs;
pub mod rate;
mod record_leases;
mod records;
mod refusal_names;
pub mod reload;
mod reply;
mod reserved_capacity;
mod routes;
mod scans;
mod scrub;
mod settings;
mod settlement;
mod shares;
mod show;
mod show_allocations;
mod show_apps;
mod show_custody;
mod show_ledger;
mod show_rates;
mod show_timeline;
mod statements;
mod strict;
pub mod template;
mod tls;
mod turns;
mod unavailable_node;
mod usage_reports;

pub use access::{SECRET_PREFIX, new_secret, secret_hash};
pub use archive_state::ArchiveState;
pub use daemon::{Daemon, DaemonError, Start};
pub use data_directory::{DataDirectory, DataDirectoryError, software};
pub use leasehold_journal::UnprovedTail;
