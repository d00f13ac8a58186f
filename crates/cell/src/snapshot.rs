//! Snapshots by a background fold: the previous snapshot and the records after it make the next
//! one, from files alone. The lease path is not touched.

use crate::open::{StartError, newest_state};
use crate::replay::replay_to;
use leasehold_journal::{Journal, SnapshotError};
use std::fmt;

/// Why no snapshot was taken. Nothing is lost by it but time at the next start.
#[derive(Debug)]
pub enum SnapshotFailure {
    Replay(StartError),
    Store(SnapshotError),
}

impl fmt::Display for SnapshotFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for SnapshotFailure {}

/// Folds up to the newest checkpoint and keeps the result. Returns its size, or `None` if there is
/// nothing new since the last one.
pub fn take_snapshot(journal: &dyn Journal) -> Result<Option<u64>, SnapshotFailure> {
    let target = journal.checkpointed().position;
    // One of another version, or damaged, is passed over as at a start: the next one takes its place.
    let (mut state, from) = newest_state(journal, target.size(), &mut Vec::new()).map_err(SnapshotFailure::Replay)?;
    if target.size() == from.size {
        return Ok(None);
    }
    replay_to(journal, &mut state, from, target.size()).map_err(SnapshotFailure::Replay)?;
    journal.put_snapshot(&target, &state.to_snapshot()).map_err(SnapshotFailure::Store)?;
    journal.prune_snapshots().map_err(SnapshotFailure::Store)?;
    Ok(Some(target.size()))
}
