//! The log lines about the disk and the clock.

use leasehold_cell::Notice;

pub(crate) fn log(notice: &Notice) {
    match notice {
        Notice::AllocationFails { why, room } => tracing::warn!(
            why,
            room_bytes = room,
            "the next segment of the journal cannot be allocated; commands are accepted until this room is used up"
        ),
        Notice::Full { why } => tracing::error!(
            why,
            "the disk of the journal is full: commands are answered journal_full, reads continue; free some space"
        ),
        Notice::RoomAgain { after } => tracing::info!(
            after_seconds = after.as_secs(),
            "the disk of the journal has room again: commands are accepted"
        ),
        Notice::SnapshotFailed { why } => {
            tracing::warn!(
                why,
                "a snapshot failed; it is tried again after more records, and the next start takes longer"
            );
        }
        Notice::ClockJumped(jump) => tracing::warn!(
            direction = if jump.is_forward() { "forward" } else { "back" },
            by = %jump.size(),
            wall = %jump.wall,
            expected = %jump.expected,
            "the wall clock jumped; deadlines follow the monotonic clock and do not change"
        ),
    }
}
