//! Temporary directories and journals, on the disk of the build directory rather than a memory file system.

use leasehold_cell::{Clock, SystemClock};
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const ORIGIN: &str = "bench.example";

/// A directory that is removed when it is dropped.
pub(crate) fn folder() -> tempfile::TempDir {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    std::fs::create_dir_all(&target).expect("the target directory can be created");
    tempfile::Builder::new().prefix("bench-").tempdir_in(&target).expect("a directory can be created")
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
    let journal = Arc::new(journal.expect("a journal can be created"));
    journal.prepare().expect("there is room");
    journal
}

pub(crate) fn open(folder: &Path) -> Arc<FileJournal> {
    let disk = Arc::new(RealDisk::new(folder));
    let (journal, _) = FileJournal::open(disk, Options::default(), keys(), local(), SystemClock::new().wall())
        .unwrap_or_else(|error| panic!("the journal opens: {error}"));
    Arc::new(journal)
}
