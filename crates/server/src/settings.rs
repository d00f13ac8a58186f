//! Settings that requests read and a reload can change: each is one number, so that reading one costs nothing.

use crate::config::{Config, Requests};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct Settings {
    body_bytes: AtomicUsize,
    batch_body_bytes: AtomicUsize,
    metrics_open: AtomicBool,
    request_log: AtomicU8,
}

const REQUEST_LOGS: [Requests; 3] = [Requests::All, Requests::Refused, Requests::None];

impl Settings {
    pub(crate) fn new(config: &Config) -> Self {
        let (zero, closed) = (|| AtomicUsize::new(0), AtomicBool::new(false));
        let new =
            Self { body_bytes: zero(), batch_body_bytes: zero(), metrics_open: closed, request_log: AtomicU8::new(0) };
        new.set(config);
        new
    }

    pub(crate) fn set(&self, config: &Config) {
        let usize_of = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        self.body_bytes.store(usize_of(config.limits.body_bytes), Relaxed);
        self.batch_body_bytes.store(usize_of(config.limits.batch_body_bytes), Relaxed);
        self.metrics_open.store(config.metrics.open, Relaxed);
        let place = (0..).zip(REQUEST_LOGS).find(|(_, which)| *which == config.log.requests);
        self.request_log.store(place.expect("every word is in the list").0, Relaxed);
    }

    /// The largest body, except for batches.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body_bytes.load(Relaxed)
    }
    pub(crate) fn batch_body_bytes(&self) -> usize {
        self.batch_body_bytes.load(Relaxed)
    }
    /// Whether the metrics can be read without a token.
    pub(crate) fn metrics_open(&self) -> bool {
        self.metrics_open.load(Relaxed)
    }
    /// Which requests are logged.
    pub(crate) fn request_log(&self) -> Requests {
        REQUEST_LOGS[usize::from(self.request_log.load(Relaxed))]
    }
}
