//! What became of a request: the same type from the engine that decides it to whoever asked.

use crate::refusal::Refusal;
use leasehold_model::{LeaseNo, Record};
use smallvec::SmallVec;

/// The records of one command, nearly always one.
pub type Records = SmallVec<[Record; 1]>;

/// Where the records of a command stand in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences {
    pub first: u64,
    /// None where the command was sealed before: nothing was written then.
    pub count: u32,
}

/// What a request was sealed as. `R` are its records: where they stand while they are not durable yet, and the records
/// themselves after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<R = Records> {
    /// At least one; a denial is a record too.
    pub records: R,
    /// Leases that a command on many left out, and why.
    pub refused: Vec<(LeaseNo, Refusal)>,
    /// It was sealed before, under the same idempotency key.
    pub repeated: bool,
}

impl<R> Sealed<R> {
    /// Sealed before.
    pub fn again(records: R) -> Self {
        Self { records, refused: Vec::new(), repeated: true }
    }
}

impl Sealed {
    pub fn first(&self) -> &Record {
        self.records.first().expect("what was sealed has a record")
    }
    pub fn sequence(&self) -> u64 {
        self.first().sequence
    }
}
