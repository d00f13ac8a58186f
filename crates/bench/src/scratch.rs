//! Folders and journals for a benchmark, on the disk that holds the build: not on a memory file system.

use leasehold_cell::{Clock, SystemClock};
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const ORIGIN: &str = "bench.example";

/// A folder that is gone when the benchmark is.
pub(crate) fn folder() -> tempfile::TempDir {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    std::fs::create_dir_all(&target).expect("the target folder can be made");
    tempfile::Builder::new().prefix("bench-").tempdir_in(&target).expect("a folder can be made")
}

pub(crate) fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(ORIGIN, &[7; 32]).expect("a valid origin"))
}

pub(crate) fn local() -> Local {
    Local::new(Secret::new([7; 32]))
}

pub(crate) fn create(folder: &Path) -> Arc<FileJournal> {
    let disk = Arc::new(RealDisk::new(folder));
    let journal = FileJournal::create(disk, Options::default(), keys(), local(), SystemClock::new().wall());
    let journal = Arc::new(journal.expect("a journal can be made"));
    journal.prepare().expect("there is room");
    journal
}

pub(crate) fn open(folder: &Path) -> Arc<FileJournal> {
    let disk = Arc::new(RealDisk::new(folder));
    let (journal, _) = FileJournal::open(disk, Options::default(), keys(), local(), SystemClock::new().wall())
        .unwrap_or_else(|error| panic!("the journal opens: {error}"));
    Arc::new(journal)
}
