//! What operators should know about a running cell. The cell has no log: the daemon writes these to its own.

use leasehold_model::{Instant, Span};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The next segment cannot be allocated. Commands are accepted until `room` bytes are used up.
    AllocationFails { why: String, room: u64 },
    /// The allocated bytes are used up: commands are answered `journal_full`.
    Full { why: String },
    /// The next segment was allocated after all.
    RoomAgain { after: Duration },
    /// No snapshot was taken. It is tried again after more records.
    SnapshotFailed { why: String },
    /// The wall clock was set. Deadlines follow the monotonic clock and are not affected.
    ClockJumped(ClockJump),
}

/// A jump of the wall clock, relative to the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// What the wall clock shows now.
    pub wall: Instant,
    /// What it would show without the jump.
    pub expected: Instant,
}

impl ClockJump {
    pub fn is_forward(&self) -> bool {
        self.wall > self.expected
    }
    /// The size of the jump.
    pub fn size(&self) -> Span {
        if self.is_forward() { self.wall.since(self.expected) } else { self.expected.since(self.wall) }
    }
}
