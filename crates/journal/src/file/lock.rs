//! The lock of a data directory: one process writes to it.
//!
//! The directory itself is locked, which cannot be removed without notice, and the file `lock` in it, for file systems
//! that cannot lock a directory and for earlier versions of this program. Before each new segment and each checkpoint the
//! journal looks whether what it locked is still in its place.

use super::layout::LOCK;
use crate::disk::{Disk, DiskLock};
use crate::error::{Failure, OpenError};
use std::io;

pub(super) struct Lock {
    folder: Option<Box<dyn DiskLock>>,
    file: Box<dyn DiskLock>,
}

impl Lock {
    pub(super) fn take(disk: &dyn Disk) -> Result<Self, OpenError> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse,
            io::ErrorKind::NotFound => OpenError::NoJournal,
            _ => OpenError::io("locking the journal")(error),
        };
        let folder = disk.lock_folder().map_err(refused)?;
        let file = disk.lock(LOCK).map_err(refused)?;
        Ok(Self { folder, file })
    }

    /// Fails if another process could have locked the directory meanwhile.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let locked = self.folder.as_ref().unwrap_or(&self.file);
        let in_place = locked.is_in_place().map_err(|error| Failure::new("looking for the lock", &error))?;
        match in_place {
            true => Ok(()),
            false => Err(Failure::displaced()),
        }
    }
}

/// Whether a process has the journal open for writing. Takes the lock for a moment if none has.
pub fn in_use(disk: &dyn Disk) -> bool {
    matches!(Lock::take(disk), Err(OpenError::InUse))
}
