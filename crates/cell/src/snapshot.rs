//! Snapshots are made by a fold in the background: the next one is computed from the previous one and the records after
//! it, read from the files. That does not slow down requests.

use crate::open::{StartError, newest_state};
use crate::replay::fold_checkpointed;
use leasehold_journal::{Journal, SnapshotError};
use std::fmt;

/// Why no snapshot was taken. The only consequence is a slower startup.
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

/// Folds up to the newest checkpoint and stores the result. Returns its size, or `None` if there are no new records
/// since the last snapshot.
pub fn take_snapshot(journal: &dyn Journal) -> Result<Option<u64>, SnapshotFailure> {
    let target = journal.checkpointed().position;
    // As at startup, a snapshot that is damaged or of another version is skipped.
    let (mut state, from) = newest_state(journal, target.size(), &mut Vec::new()).map_err(SnapshotFailure::Replay)?;
    if target.size() == from.size {
        return Ok(None);
    }
    fold_checkpointed(journal, &mut state, target.size()).map_err(SnapshotFailure::Replay)?;
    journal.put_snapshot(&target, &state.to_snapshot()).map_err(SnapshotFailure::Store)?;
    journal.prune_snapshots().map_err(SnapshotFailure::Store)?;
    Ok(Some(target.size()))
}
