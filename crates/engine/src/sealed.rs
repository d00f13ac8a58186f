//! The outcome of a request, in one type from the engine to the caller.

use crate::refusal::Refusal;
use leasehold_model::{LeaseNo, Record};
use smallvec::SmallVec;

/// The records of one command, usually a single one.
pub type Records = SmallVec<[Record; 1]>;

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
