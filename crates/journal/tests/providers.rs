//! Both providers, through the one suite.

use leasehold_journal::conformance::{Harness, local, stamp};
use leasehold_journal::{FileJournal, Journal, Keys, MemoryJournal, Options, RealDisk};
use std::sync::Arc;

const SEGMENT_BYTES: u64 = 3072;

#[derive(Default)]
struct Memory(Option<Arc<MemoryJournal>>);

impl Harness for Memory {
    const BATCH_BYTES: usize = 1024;

    fn create(&mut self, keys: Arc<Keys>) -> Arc<dyn Journal> {
        let journal = Arc::new(MemoryJournal::with_segments(keys, SEGMENT_BYTES));
        self.0 = Some(journal.clone());
        journal
    }
    fn reopen(&mut self) -> Arc<dyn Journal> {
        let journal = Arc::new(self.0.take().expect("it was created").reopen());
        self.0 = Some(journal.clone());
        journal
    }
}

struct Files {
    folder: tempfile::TempDir,
    keys: Option<Arc<Keys>>,
}

impl Default for Files {
    fn default() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test"), keys: None }
    }
}

impl Files {
    fn disk(&self) -> Arc<RealDisk> {
        Arc::new(RealDisk::new(self.folder.path()))
    }
    fn options() -> Options {
        Options { segment_bytes: SEGMENT_BYTES, index_bytes: 512 }
    }
}

impl Harness for Files {
    const BATCH_BYTES: usize = 1024;

    fn create(&mut self, keys: Arc<Keys>) -> Arc<dyn Journal> {
        self.keys = Some(keys.clone());
        Arc::new(FileJournal::create(self.disk(), Self::options(), keys, local(), stamp(0)).expect("a new journal"))
    }
    fn reopen(&mut self) -> Arc<dyn Journal> {
        let keys = self.keys.clone().expect("it was created");
        let opened = FileJournal::open(self.disk(), Self::options(), keys, local(), stamp(0));
        Arc::new(opened.expect("the journal again").0)
    }
}

mod memory {
    leasehold_journal::conformance!(super::Memory);
}
mod files {
    leasehold_journal::conformance!(super::Files);
}
