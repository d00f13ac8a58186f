//! Deliveries: events of the journal, sent to webhooks (SEMANTICS 10 and 13; ADR 26).
//!
//! A sink is a cursor over the journal, which is the durable outbox. In: events from a [`Source`], which the server
//! implements over the journal; sinks; outcomes of requests. Out: signed HTTP requests, at least once, in order for
//! each order key, with the same ID every time; progress in one small file; status.
//!
//! Never: decide anything about leases, delay whoever writes the journal, skip an event without counting and
//! remembering it, believe a stored value that has no valid MAC, connect to an address that was not checked, or show a
//! secret. After a crash events may be repeated, never lost.

mod differences;
mod event;
mod guard;
mod http;
mod jobs;
mod lanes;
pub mod limits;
mod message;
mod outcome;
mod progress;
mod ranges;
mod secret;
mod secret_ref;
mod service;
mod signature;
pub mod sink;
mod source;
mod status;
mod store;
mod task;
mod transport;
mod vault;
mod webhook;
mod webhook_secrets;

pub use differences::Difference;
pub use event::{Event, Page, Place, SignatureKind, SinkId, SinkSpec, matches_kind};
pub use guard::{BadCidr, Cidr, Endpoint, Guard, Refused, is_public};
pub use http::HttpError;
pub use jobs::{Plan, Report, Which};
pub use lanes::JobNo;
pub use limits::{Limits, OnOverflow};
pub use message::Message;
pub use outcome::{Outcome, retry_after};
pub use progress::{Attempt, Changes, Counters, DeadLetter, Progress, Stored};
pub use ranges::Ranges;
pub use secret::Secret;
pub use secret_ref::{SecretError, SecretReader, SecretRef, SecretState, Variables, process_variables};
pub use service::{Clock, DeliverError, Deliveries, OnDisabled, Parts};
pub use signature::{BadSecret, Signer, signatures};
pub use source::{Source, SourceError};
pub use status::SinkStatus;
pub use store::{Damaged, Opened, Store, StoreError};
pub use transport::{Sending, Transport};
pub use vault::{Vault, VaultAuth, VaultConfig, VaultError};
pub use webhook::Webhook;
pub use webhook_secrets::{OVERLAP, SECRETS_MAX, Shown, WebhookSecrets, WebhookSecretsError};
