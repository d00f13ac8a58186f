//! The outcome of a request, in one type from the engine to the caller.

use crate::refusal::Refusal;
use leasehold_model::{LeaseNo, Record};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The records of one command, usually a single one. They are part of a batch that the answers to all its requests
/// share: a record is large, and an answer passes through many hands.
#[derive(Clone, Debug)]
pub struct Records {
    batch: Arc<Vec<Record>>,
    own: Range<usize>,
}

impl Records {
    /// The records of a batch with these indexes.
    pub fn part_of(batch: &Arc<Vec<Record>>, own: Range<usize>) -> Self {
        assert!(own.start <= own.end && own.end <= batch.len(), "a command's records are in its batch");
        Self { batch: Arc::clone(batch), own }
    }
}

impl From<Vec<Record>> for Records {
    fn from(all: Vec<Record>) -> Self {
        let own = 0..all.len();
        Self { batch: Arc::new(all), own }
    }
}

impl Deref for Records {
    type Target = [Record];
    fn deref(&self) -> &[Record] {
        &self.batch[self.own.clone()]
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = &'a Record;
    type IntoIter = std::slice::Iter<'a, Record>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
impl Eq for Records {}

/// The position of a command's records in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences {
    pub first: u64,
    /// Zero for a repeated command: nothing was written for the repetition.
    pub count: u32,
}

/// The outcome of a request. `R` is [`Sequences`] until the records are durable, and [`Records`] after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<R = Records> {
    /// At least one: a denial is recorded, too.
    pub records: R,
    /// The leases that a command on several leases left out, with the reason for each.
    pub refused: Vec<(LeaseNo, Refusal)>,
    /// Whether the same idempotency key was used before, and this is the outcome of that request.
    pub repeated: bool,
}

impl<R> Sealed<R> {
    /// The outcome of a repeated request.
    pub fn again(records: R) -> Self {
        Self { records, refused: Vec::new(), repeated: true }
    }
}

impl Sealed {
    pub fn first(&self) -> &Record {
        self.records.first().expect("an outcome has at least one record")
    }
    pub fn sequence(&self) -> u64 {
        self.first().sequence
    }
}
