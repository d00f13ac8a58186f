//! Journals with a past, and small tools to look at them.

use crate::faulty_disk::{FaultyDisk, Image, create};
use leasehold_journal::conformance::{append, stamp};
use leasehold_journal::{FileJournal, Journal, Keys, OpenError, Recovered};
use leasehold_model::Record;
use std::sync::Arc;

/// Appends batches of these counts, checkpointing after those before `checkpointed`, and dies.
pub fn journal_of(counts: &[u64], checkpointed: usize, keys: &Arc<Keys>) -> Image {
    let disk = FaultyDisk::default();
    let journal = create(&disk, keys);
    for (round, count) in counts.iter().enumerate() {
        append(&journal, keys, *count);
        if round < checkpointed {
            journal.checkpoint(stamp(0)).unwrap();
        }
    }
    disk.image()
}

pub const SEGMENT: &str = "journal/00000001.seg";

pub fn end_of_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)
}

pub fn code(opened: Result<(FileJournal, Recovered), OpenError>) -> &'static str {
    let error = opened.err().expect("a refusal");
    assert!(!error.to_string().is_empty());
    error.code()
}

/// A record at another instant.
pub trait Restamped {
    fn restamped(self, sequence: u64) -> Self;
}
impl Restamped for Record {
    fn restamped(mut self, sequence: u64) -> Self {
        self.stamp = stamp(sequence);
        self.effective_at = self.stamp;
        self
    }
}
