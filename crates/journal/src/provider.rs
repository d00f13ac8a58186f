//! The one trait every journal keeps, and the few values that cross it.

use crate::error::{AppendError, Failure, PrepareError, ReadError, SnapshotError};
use leasehold_model::body::Body;
use leasehold_model::record::Hash;
use leasehold_model::{Batch, DecodeError, Instant, RawBatch, RawRecord, Record};
use leasehold_tlog::Frontier;
use std::ops::ControlFlow;

/// How far a journal goes: the number of records, and the hash of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of records, which is the sequence of the next one.
    pub size: u64,
    /// The hash of the last record; 32 zero bytes before the first.
    pub hash: Hash,
}

impl Head {
    /// Before the first record.
    pub const EMPTY: Self = Self { size: 0, hash: [0; 32] };
}

/// A head with the tree over the same records: all that is needed to verify from there on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub head: Head,
    /// The tree of `head.size` leaves.
    pub tree: Frontier,
}

impl Position {
    pub fn empty() -> Self {
        Self { head: Head::EMPTY, tree: Frontier::new() }
    }
    pub fn size(&self) -> u64 {
        self.head.size
    }
}

/// What the journal has signed for: everything before `position`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    pub position: Position,
    /// A C2SP tlog-checkpoint in a signed note.
    pub note: String,
}

impl SignedCheckpoint {
    pub fn size(&self) -> u64 {
        self.position.head.size
    }
}

/// One record taken out of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The hashed bytes.
    pub bytes: Vec<u8>,
    /// The signatures that follow them, 64 bytes each.
    pub signatures: Vec<u8>,
}

impl StoredRecord {
    pub fn raw(&self) -> RawRecord<'_> {
        RawRecord { bytes: &self.bytes, signatures: &self.signatures }
    }
    pub fn decode(&self) -> Result<Record, DecodeError> {
        self.raw().decode()
    }
}

/// Folded state as its owner wrote it, and where in the journal it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub position: Position,
    pub state: Vec<u8>,
}

/// A snapshot that could not be used, and why. Nothing is lost by it but time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedSnapshot {
    pub size: u64,
    pub why: String,
}

/// What [`Journal::load_snapshot`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedSnapshot {
    pub snapshot: Option<Snapshot>,
    /// The newer ones that were passed over.
    pub damaged: Vec<DamagedSnapshot>,
}

/// Is handed each sealed batch with the sequence of its first record; a `Break` ends the scan.
pub type VisitBatch<'a> = dyn FnMut(u64, RawBatch<'_>) -> ControlFlow<()> + 'a;
/// Is handed each record with its sequence; a `Break` ends the scan.
pub type Visit<'a> = dyn FnMut(u64, RawRecord<'_>) -> ControlFlow<()> + 'a;
/// As [`Visit`], with the record's hash.
pub type VisitVerified<'a> = dyn FnMut(u64, RawRecord<'_>, &Hash) -> ControlFlow<()> + 'a;

/// The sealed journal of one origin, open for writing by this process alone.
///
/// All methods may be called from any thread. [`append`](Self::append) has one caller at a time, the cell's writer;
/// [`prepare`](Self::prepare) and [`checkpoint`](Self::checkpoint) belong to background loops and hold nothing that
/// `append` waits for while they read or write files.
pub trait Journal: Send + Sync {
    /// The name under which the journal signs.
    fn origin(&self) -> &str;

    /// Grows by one each time the journal is opened for writing.
    fn epoch(&self) -> u64;

    /// The end of what is durable.
    fn head(&self) -> Head;

    /// Seals `batch` and makes it durable.
    ///
    /// If it returns `Ok`, all records of the batch are durable, and no crash takes them back. If it returns
    /// [`AppendError::Failed`], it is unknown whether they are: every later append fails too, the process is
    /// to stop, and the next start finds out. After any other error nothing was written and the batch may be appended again.
    ///
    /// The first batch of a journal begins with its genesis record.
    ///
    /// # Panics
    /// If the batch is empty or does not begin at `head().size`.
    fn append(&self, batch: &mut Batch) -> Result<Head, AppendError>;

    /// How long the disk took to make the last batch durable, where there is a disk.
    fn last_sync(&self) -> Option<std::time::Duration> {
        None
    }

    /// Bytes (of [`Batch::bytes`]) that can be appended for certain, in any number of batches, before
    /// `append` says [`AppendError::Full`]. Does not count what an `append` in progress will use.
    fn room(&self) -> u64;

    /// Allocates ahead what appends will need, so that an append never does. Nothing to do if that is done;
    /// may be called again after any error.
    fn prepare(&self) -> Result<(), PrepareError>;

    /// Hands out the durable batches as they were sealed, in order, from the one that holds record `from` on, up to
    /// the head at the time of the call.
    ///
    /// Checksums are checked, hashes are not. `from` past the head visits nothing.
    fn scan_batches(&self, from: u64, visit: &mut VisitBatch<'_>) -> Result<(), ReadError>;

    /// As [`scan_batches`](Self::scan_batches), record by record, beginning with the record `from` itself.
    fn scan(&self, from: u64, visit: &mut Visit<'_>) -> Result<(), ReadError> {
        self.scan_batches(from, &mut |first, batch| {
            for (record, sequence) in batch.records().zip(first..) {
                let record = record.expect("the frames were looked at when the batch was read");
                if sequence >= from && visit(sequence, record).is_break() {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// As [`scan`](Self::scan) from `from.size` on, and checks that every record follows from the one before by
    /// its hash, beginning with `from.hash`. Returns where it ended.
    fn scan_verified(&self, from: Head, visit: &mut VisitVerified<'_>) -> Result<Head, ReadError> {
        let mut at = from;
        let mut broken = None;
        self.scan(from.size, &mut |sequence, record| {
            if record.prev_hash() != at.hash || record.sequence() != Ok(sequence) {
                broken = Some(ReadError::BrokenChain { sequence });
                return ControlFlow::Break(());
            }
            let hash = record.hash();
            at = Head { size: sequence + 1, hash };
            visit(sequence, record, &hash)
        })?;
        match broken {
            Some(error) => Err(error),
            None => Ok(at),
        }
    }

    /// The record with this sequence; `None` if there is no such durable record.
    fn record(&self, sequence: u64) -> Result<Option<StoredRecord>, ReadError> {
        let mut found = None;
        self.scan(sequence, &mut |_, record| {
            found = Some(StoredRecord { bytes: record.bytes.to_vec(), signatures: record.signatures.to_vec() });
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Reads back what became durable since the last checkpoint, decodes and hashes it again, and signs for it.
    /// `None` if there is nothing new, or if it must wait because no more files can be opened.
    ///
    /// If it returns `Ok(Some(…))`, the checkpoint and its anchor are durable. What was read back and is not what
    /// was appended stops the journal, as a failed write does.
    fn checkpoint(&self, now: Instant) -> Result<Option<SignedCheckpoint>, Failure>;

    /// The newest checkpoint; of size 0 in a new journal.
    fn checkpointed(&self) -> SignedCheckpoint;

    /// Keeps `state`, the fold of the records before `at`, which is the position of some checkpoint.
    /// If it returns `Ok`, the snapshot is durable.
    fn put_snapshot(&self, at: &Position, state: &[u8]) -> Result<(), SnapshotError>;

    /// The sizes at which snapshots are kept, ascending. Some may turn out to be damaged.
    fn snapshots(&self) -> Result<Vec<u64>, SnapshotError>;

    /// The newest undamaged snapshot whose size is at most `size_max`.
    fn load_snapshot(&self, size_max: u64) -> Result<LoadedSnapshot, SnapshotError>;

    /// Removes the snapshots that [`crate::snapshots_to_remove`] names, and returns their sizes.
    fn prune_snapshots(&self) -> Result<Vec<u64>, SnapshotError>;

    /// The number of the first segment that cannot be read, where early ones were moved away: what has to be rebuilt from
    /// the first record on cannot be rebuilt without it.
    fn missing_segment(&self) -> Option<u32> {
        None
    }

    /// The hash of the first record, which identifies the journal; `None` before there is one. It is known even if the first
    /// segment was moved away.
    fn genesis(&self) -> Result<Option<Hash>, ReadError> {
        Ok(self.record(0)?.map(|first| first.raw().hash()))
    }

    /// What opening the journal found out about it (a conversion, an unproved tail that was cut or accepted). The first
    /// batch appended begins with these, in this order.
    fn to_seal(&self) -> Vec<Body> {
        Vec::new()
    }

    /// A clean stop: appends end, then a last checkpoint, no padding, the lock released. The anchor says that nothing
    /// follows it.
    fn close(&self, now: Instant) -> Result<(), Failure>;
}
