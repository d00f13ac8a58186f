//! How far a sink is behind, and what is skipped when that is too far.
//!
//! Two numbers say how many events are due and not read. The first is kept by whoever publishes records; it is at hand at
//! any time, and may be too large: which leases belong to an allocation, whose end is told for all of them together, is
//! only known when the journal is read. The second was counted in the journal, and may be too small by what has been
//! published since. Only the second one lets events be skipped.

use super::Sink;
use crate::event::Place;
use crate::limits::{OnOverflow, RANGES_MAX};

impl Sink {
    /// With `on_overflow: drop`, skips the oldest events in memory until the sink is behind by no more than allowed, as
    /// far as that was counted. Returns how many; the caller reads on and calls again while it is not zero.
    pub fn drop_excess(&mut self) -> u64 {
        let excess = self.certain_lag().saturating_sub(self.limits.disk_buffer_max_events);
        if self.limits.on_overflow != OnOverflow::Drop || excess == 0 {
            return 0;
        }
        let most = usize::try_from(excess).unwrap_or(usize::MAX);
        let idle = self.lanes.outstanding().filter(|(_, _, item)| !self.lanes.is_flying(item));
        let oldest: Vec<_> = idle.take(most).map(|(place, ordinal, _)| (place, ordinal)).collect();
        for (place, ordinal) in &oldest {
            let from = match self.last_dropped {
                Some((before, at)) if before + 1 == *ordinal => at,
                _ => *place,
            };
            self.last_dropped = Some((*ordinal, *place));
            self.lanes.remove(*place);
            self.skipped(from, place.after());
        }
        oldest.len() as u64
    }

    /// The records from where [`Sink::wants`] said up to this one are not at hand. Their events count as skipped, and are
    /// sent by a job if the records are brought back. Returns where they begin.
    pub fn lost(&mut self, until: u64) -> u64 {
        assert!(until > self.read_next, "what is not at hand lies ahead");
        let from = std::mem::replace(&mut self.read_next, until);
        let (start, end) = (Place::start_of(from), Place::start_of(until));
        for ranges in [&mut self.progress.lost, &mut self.progress.dropped] {
            ranges.add(start, end);
            ranges.coarsen(RANGES_MAX);
        }
        // How many events they had is not known, but some are missing until a job has looked.
        self.progress.counters.dropped_open = self.progress.counters.dropped_open.max(1);
        self.count_read(0, until);
        self.changed = true;
        from
    }

    /// From which record on the caller should count what is due, and call [`Sink::counted`]: the sink may be too far
    /// behind, and what was counted does not say so.
    pub fn wants_count(&self, due: u64) -> Option<u64> {
        let most = self.limits.disk_buffer_max_events;
        let is_unsure = self.lag(due) > most && self.certain_lag() <= most;
        (self.limits.on_overflow == OnOverflow::Drop && is_unsure).then(|| self.counted_to.max(self.read_next))
    }

    /// Exactly so many more events are due, from where [`Sink::wants_count`] said up to this record. `due` is the
    /// source's counter when the journal ended there.
    pub fn counted(&mut self, events: u64, to: u64, due: u64) {
        self.counted += events;
        self.counted_to = to;
        self.set_unread(self.counted, due);
    }

    /// That many events were read, up to this record.
    pub(super) fn count_read(&mut self, events: u64, next: u64) {
        if next < self.counted_to {
            self.counted = self.counted.saturating_sub(events);
        } else {
            (self.counted, self.counted_to) = (0, next);
        }
    }

    /// That many events were counted as due which turned out not to be, when their records were read.
    pub fn overcounted(&mut self, events: u64) {
        self.read_since += events;
    }

    /// Says how many events had not been read when the source's counter had this value.
    pub fn set_unread(&mut self, unread: u64, due: u64) {
        (self.unread, self.due_then, self.read_since) = (unread, due, 0);
    }

    /// Events that are due and not read yet.
    fn unread(&self, due: u64) -> u64 {
        (self.unread + due.saturating_sub(self.due_then)).saturating_sub(self.read_since)
    }

    /// Events that are due and neither acknowledged, dead nor dropped; perhaps fewer.
    pub fn lag(&self, due: u64) -> u64 {
        self.lanes.of_cursor() as u64 + self.unread(due)
    }

    /// The same; perhaps more.
    fn certain_lag(&self) -> u64 {
        self.lanes.of_cursor() as u64 + self.counted
    }
}
