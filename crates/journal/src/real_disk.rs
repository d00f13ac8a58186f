//! The disk of this machine.

use crate::disk::{Access, Disk, DiskFile, DiskLock};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// New files and folders are for their owner alone: records name users and workloads, and nobody else may write here.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// A folder of the machine's file system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// The folder need not be there before a journal is created in it.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    pub fn root(&self) -> &Path {
        &self.root
    }
    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

impl Disk for RealDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        fs::read_dir(self.at(dir))?
            // A name that is not UTF-8 is not one of ours; it is shown as well as it can be.
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(self.at(dir))
    }
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(FILE_MODE);
        match access {
            Access::Read => {}
            Access::Update => {
                options.write(true);
            }
            Access::Create => {
                options.write(true).create(true).truncate(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(self.at(path))?)))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        File::open(self.at(dir))?.sync_all()
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        let path = self.at(path);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(&path)?;
        Ok(Box::new(RealLock::take(file, path)?))
    }
    fn lock_folder(&self) -> io::Result<Option<Box<dyn DiskLock>>> {
        let folder = File::open(&self.root)?;
        match RealLock::take(folder, self.root.clone()) {
            Ok(lock) => Ok(Some(Box::new(lock))),
            // Network file systems may have locks for files that are open for writing only, which a folder cannot be.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

/// The system releases the lock when the file is closed, also when the process dies.
struct RealLock {
    file: File,
    path: PathBuf,
}

impl RealLock {
    fn take(file: File, path: PathBuf) -> io::Result<Self> {
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl DiskLock for RealLock {
    fn is_in_place(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for RealLock {
    /// Closing the file is not enough: a process that was forked a moment ago and has not yet executed its program shares
    /// it, and would keep the lock.
    fn drop(&mut self) {
        // If this fails, closing the file gives the lock up a little later.
        let _ = self.file.unlock();
    }
}
