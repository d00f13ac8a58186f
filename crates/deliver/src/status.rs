//! What can be asked about a sink.

use crate::event::{Place, SinkId, SinkSpec};
use crate::limits::Limits;
use crate::progress::Counters;
use crate::sink::Sink;
use leasehold_model::{Instant, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkStatus {
    pub id: SinkId,
    pub name: String,
    /// Whether events are sent: it is enabled, and did not answer 410.
    pub enabled: bool,
    /// Everything before this place is acknowledged, dead or dropped.
    pub cursor: Place,
    /// Records after the cursor.
    pub lag_records: u64,
    /// Events that are due and not delivered, dead or dropped.
    pub lag_events: u64,
    pub in_memory_events: u64,
    pub in_memory_bytes: u64,
    /// Events that are behind and only in the journal.
    pub on_disk_events: u64,
    /// When the oldest event in memory happened, or of a disabled sink the oldest one that is due, and how long ago that is.
    pub oldest: Option<Instant>,
    pub oldest_age: Option<Span>,
    pub counters: Counters,
    /// Dead letters that are kept now.
    pub dead_letters: u64,
    /// How much of the memory queue is filled, by events or by bytes, in thousandths.
    pub memory_permille: u64,
    /// The memory queue is filled to 80 % or more.
    pub is_memory_high: bool,
    /// More than `disk_buffer_max_events` are behind.
    pub is_over_threshold: bool,
    /// The endpoint as a whole fails; the next attempt is at this time.
    pub backs_off_until: Option<Instant>,
    pub last_error: Option<String>,
    pub last_success: Option<Instant>,
    /// Records that were archived or deleted before their events were read: the first of each range, and the one after
    /// it.
    pub lost_records: Vec<(u64, u64)>,
    /// Why the sink began again where it was created, if it did.
    pub restarted: Option<String>,
    /// Why events cannot be read from the journal, if they cannot.
    pub source_error: Option<String>,
}

impl SinkStatus {
    /// `of_disabled` is when the oldest event happened, if the sink reads none into memory.
    pub(crate) fn of(
        spec: &SinkSpec,
        limits: &Limits,
        sink: &Sink,
        of_disabled: Option<Instant>,
        (head, due, now): (u64, u64, Instant),
    ) -> Self {
        let (events, bytes) = sink.in_memory();
        let (cursor, lag_events, oldest) = (sink.cursor(), sink.lag(due), sink.oldest().or(of_disabled));
        Self {
            id: spec.id,
            name: spec.name.clone(),
            enabled: spec.enabled && !sink.is_disabled(),
            cursor,
            lag_records: head.saturating_sub(cursor.sequence),
            lag_events,
            in_memory_events: events as u64,
            in_memory_bytes: bytes as u64,
            on_disk_events: lag_events.saturating_sub(events as u64),
            oldest,
            oldest_age: oldest.map(|oldest| now.since(oldest)),
            counters: sink.counters(),
            dead_letters: sink.dead().len() as u64,
            memory_permille: sink.memory_permille(),
            is_memory_high: sink.is_memory_high(),
            is_over_threshold: lag_events > limits.disk_buffer_max_events,
            backs_off_until: sink.backs_off_until(),
            last_error: sink.last_error().map(str::to_owned),
            last_success: sink.last_success(),
            lost_records: sink.lost_records(),
            restarted: None,
            source_error: None,
        }
    }
}
