//! What can be asked about a sink.

use super::Sink;
use crate::event::Place;
use crate::progress::{Attempt, Counters};
use crate::ranges::Ranges;
use leasehold_model::Instant;
use std::collections::BTreeSet;

/// From here on the memory queue counts as nearly full.
const MEMORY_HIGH_PERMILLE: u64 = 800;

impl Sink {
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter()
    }
    pub fn counters(&self) -> Counters {
        self.progress.counters
    }
    pub fn dropped(&self) -> &Ranges {
        &self.progress.dropped
    }
    /// Records that were not at hand when they should have been read: the first of each range, and the one after it.
    pub fn lost_records(&self) -> Vec<(u64, u64)> {
        self.progress.lost.iter().map(|(from, to)| (from.sequence, to.sequence)).collect()
    }
    pub fn dead(&self) -> &BTreeSet<Place> {
        &self.dead
    }
    /// Events and their bytes in memory.
    pub fn in_memory(&self) -> (usize, usize) {
        (self.lanes.len(), self.lanes.bytes())
    }
    pub fn read_next(&self) -> u64 {
        self.read_next
    }
    /// How much of the memory queue is filled, by events or by bytes, in thousandths.
    pub fn memory_permille(&self) -> u64 {
        let (events, bytes) = self.in_memory();
        let of = |part: usize, whole: usize| part as u64 * 1_000 / (whole.max(1) as u64);
        of(events, self.limits.buffer_size).max(of(bytes, self.bytes_max()))
    }
    /// Whether the memory queue is filled to 80 %.
    pub fn is_memory_high(&self) -> bool {
        self.memory_permille() >= MEMORY_HIGH_PERMILLE
    }
    /// When the oldest event happened that is not delivered.
    pub fn oldest(&self) -> Option<Instant> {
        self.lanes.outstanding().next().map(|(_, _, item)| item.message.time)
    }
    /// Whether an event is acknowledged, dead or dropped.
    pub fn is_done(&self, place: Place) -> bool {
        place < self.cursor() || self.done().contains(place)
    }
    /// Places that wait to be delivered by themselves.
    pub fn pending(&self) -> impl Iterator<Item = Place> {
        self.lanes.outstanding().map(|(place, ..)| place)
    }
    /// Until when the sink as a whole waits.
    pub fn backs_off_until(&self) -> Option<Instant> {
        self.outage.as_ref().map(|outage| outage.until)
    }
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
    pub fn last_success(&self) -> Option<Instant> {
        self.progress.last_success_ns.map(Instant)
    }
}
