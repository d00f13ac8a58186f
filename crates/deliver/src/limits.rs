//! Limits and their defaults. Everything here is bounded.

use leasehold_model::Span;

/// The most sinks.
pub const SINKS_MAX: usize = 1_000;
/// The most dead letters of one sink. The oldest beyond them becomes a dropped event.
pub const DEAD_LETTERS_MAX: usize = 10_000;
/// How many attempts are remembered for each sink.
pub const ATTEMPTS_KEPT: usize = 100;
/// The most ranges of events that are remembered for each sink.
pub const RANGES_MAX: usize = 1_000;
/// Bytes of events in memory, of all sinks together. Each may have the same share of it, and this much in any case.
pub const MEMORY_BYTES: usize = 256 << 20;
pub const SHARE_BYTES_MIN: usize = 256 << 10;
/// The most bytes that are read from the body of an answer.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The most characters that are kept of the reason of a failure.
pub const REASON_CHARS_MAX: usize = 300;

/// What happens when a sink is further behind than `disk_buffer_max_events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverflow {
    /// Everything is kept; the status says so.
    #[default]
    Alert,
    /// The oldest events are skipped, counted and remembered; `reconcile` sends them.
    Drop,
}

/// The limits of each sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events in memory. The events of one record are read together, so there may be those of one record more.
    pub buffer_size: usize,
    /// Bytes of events in memory.
    pub buffer_bytes: usize,
    /// Requests at the same time.
    pub in_flight: usize,
    /// How many events a sink may be behind before `on_overflow` applies.
    pub disk_buffer_max_events: u64,
    pub on_overflow: OnOverflow,
    /// An order key that fails alone this many times, over at least `key_time`, gives up its first event.
    pub key_attempts: u32,
    pub key_time: Span,
    pub backoff_base: Span,
    pub backoff_max: Span,
    pub retry_after_max: Span,
    /// The whole of an attempt: resolving, connecting, sending, and reading the answer.
    pub timeout: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_size: 10_000,
            buffer_bytes: 8 << 20,
            in_flight: 16,
            disk_buffer_max_events: 100_000,
            on_overflow: OnOverflow::Alert,
            key_attempts: 20,
            key_time: Span::from_secs(3_600),
            backoff_base: Span::from_secs(1),
            backoff_max: Span::from_secs(300),
            retry_after_max: Span::from_secs(3_600),
            timeout: Span::from_secs(15),
        }
    }
}
