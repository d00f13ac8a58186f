//! The few operations on files that the file provider needs, as a trait: the real disk is one, and a simulator
//! that tears, loses, flips and refuses writes is another.
//!
//! Paths are relative to the folder of the journal and written with `/`. A new, renamed or removed name is durable after
//! [`Disk::sync_dir`] of its folder, bytes and length of a file after [`DiskFile::sync`]; before that a crash may keep any part of them.

use std::io;
use std::sync::Arc;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading a file that is there.
    Read,
    /// Reading and writing a file that is there.
    Update,
    /// Reading and writing a file that is made, or emptied if it is there.
    Create,
}

/// A folder.
pub trait Disk: Send + Sync {
    /// Names of the files and folders in `dir` (`""` is the journal's folder itself), in any order.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes a folder, and those above it; it may be there already.
    fn create_dir(&self, dir: &str) -> io::Result<()>;
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn DiskFile>>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Replaces `to`, if it is there, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Takes the lock at `path` until the guard is dropped. Fails with [`io::ErrorKind::WouldBlock`] if another has it.
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>>;
    /// Like [`lock`](Self::lock), for the folder itself, which cannot be removed unnoticed as a file in it can. `None` if the
    /// file system has no such locks.
    fn lock_folder(&self) -> io::Result<Option<Box<dyn DiskLock>>> {
        Ok(None)
    }
}

/// An open file. Reads and writes name their offset: there is no cursor to share.
pub trait DiskFile: Send + Sync {
    /// Reads some bytes, as many as it likes; 0 only at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes, growing the file if need be, or fails having written any part of them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all that was written durable, with the length (fdatasync).
    fn sync(&self) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Holds a lock as long as it lives.
pub trait DiskLock: Send + Sync {
    /// Whether what was locked is still in its place. If it was moved, removed or replaced, somebody else can lock what is
    /// there now.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// Reads until `bytes` is full or the file ends; returns how many it read.
pub(crate) fn read_full(file: &dyn DiskFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Whether the error says that there is no room, which is survivable where no record depends on it.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether the error says that the process (`EMFILE`) or the machine (`ENFILE`) has too many files open. That is no
/// failure of the disk: nothing was written, and it may be tried again.
pub fn is_out_of_files(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
