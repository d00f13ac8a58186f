//! Until when the idempotency keys of a request are certain to be remembered, which its answer says in a header.

use axum::http::{HeaderMap, HeaderValue};
use leasehold_api::{WRITTEN_MAX, When};
use leasehold_cell::Sealed;
use leasehold_model::Instant;
use leasehold_model::limits::IDEMPOTENCY_SURE;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const HEADER: &str = "idempotency-key-remembered-until";

/// The earliest such instant among the operations of a request; shared by the handler and whoever sends its answer.
#[derive(Clone)]
pub(crate) struct KeyMemory(Arc<AtomicU64>);

const NO_KEY: u64 = u64::MAX;

impl KeyMemory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(NO_KEY)))
    }

    /// Takes an operation into account that was sent with a key. A repeated one counts from its first record.
    pub(crate) fn add(&self, sealed: &Sealed) {
        let until = sealed.first().stamp.saturating_add(IDEMPOTENCY_SURE);
        self.0.fetch_min(until.0, Ordering::Relaxed);
    }

    pub(crate) fn put(&self, headers: &mut HeaderMap) {
        let until = self.0.load(Ordering::Relaxed);
        if until != NO_KEY {
            let text = When(Instant(until)).write(&mut [0; WRITTEN_MAX]).to_owned();
            headers.insert(HEADER, HeaderValue::try_from(text).expect("an instant is printable ASCII"));
        }
    }
}
