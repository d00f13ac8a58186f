//! The sealed journal: one append-only log that is event log, audit chain and write-ahead log.
//!
//! In: batches of records that a cell decided, one at a time; the time, as a parameter; signing keys.
//! Out: the promise that what was appended is durable; the records again, in order; signed checkpoints of
//! the tree over them; snapshots of folded state, kept for whoever folded it.
//!
//! One trait ([`Journal`]), two providers here ([`MemoryJournal`], [`FileJournal`]) and one suite that both must pass
//! (`conformance`); [`ReadOnly`], the folder read by somebody who never
//! touches it; and [`Mirror`], the copy that a collector keeps of a journal it cannot sign. Bytes: `docs/reference/journal-format.md`. Rules: SEMANTICS 6.
//! Never: what records mean (but for genesis and key rotation), a clock, randomness, a retry of a failed sync.

mod admission;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod disk;
mod error;
mod file;
mod fold;
mod keyring;
mod memory;
mod provider;
mod real_disk;
mod retention;
mod text;

pub use error::{AppendError, Failure, KeyringError, Misfit, OpenError, PrepareError, ReadError, SnapshotError};
pub use file::{Entry, FileJournal, Mirror, Options, ReadOnly, Recovered, Scanned, SignedHead, TornTail};
pub use fold::{Broken, Flaw, Fold};
pub use keyring::Keys;
pub use memory::MemoryJournal;
pub use provider::{
    DamagedSnapshot, Head, Journal, LoadedSnapshot, Position, SignedCheckpoint, Snapshot, StoredRecord, Visit,
    VisitBatch, VisitVerified,
};
pub use real_disk::RealDisk;
pub use retention::{SNAPSHOT_EVERY, SNAPSHOTS_NEWEST, snapshots_to_remove};
