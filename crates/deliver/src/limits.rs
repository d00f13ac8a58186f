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
/// Bytes of events in memory, of all sinks together, unless one sink may have more. Each may have the same share of it,
/// and `SHARE_BYTES_MIN` in any case.
pub const MEMORY_BYTES: usize = 256 << 20;
/// Bytes of events in memory, of one sink, unless it may have more events than fit.
pub const BUFFER_BYTES_MIN: usize = 8 << 20;
/// What an event takes in memory, generously: most take between one and two thousand bytes.
pub const EVENT_BYTES: usize = 2 << 10;
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

impl Limits {
    /// As by default, with memory for so many events.
    pub fn for_events(buffer_size: usize) -> Self {
        let buffer_bytes = buffer_size.saturating_mul(EVENT_BYTES).max(BUFFER_BYTES_MIN);
        Self { buffer_size, buffer_bytes, ..Self::default() }
    }

    /// Bytes of events in memory, of all sinks together.
    pub fn memory_bytes(&self) -> usize {
        self.buffer_bytes.max(MEMORY_BYTES)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_size: 10_000,
            buffer_bytes: 10_000 * EVENT_BYTES,
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
