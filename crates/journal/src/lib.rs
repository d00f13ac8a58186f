//! The sealed journal: one append-only log that is event log, audit chain and write-ahead log.
//!
//! In: batches of records that a cell decided, one at a time; the time, as a parameter; signing keys and the directory's
//! secret. Out: durable records, read back in order; signed checkpoints of the tree over them; snapshots of folded
//! state, stored for the caller that folded it.
//!
//! One trait ([`Journal`]), two providers here ([`MemoryJournal`], [`FileJournal`]) and one suite that both must pass
//! (`conformance`); [`ReadOnly`], a data directory that is only read; and [`Mirror`], the copy that a collector keeps of
//! a journal that it cannot sign. Bytes: `docs/reference/journal-format.md`. Rules: SEMANTICS 6 and 11.
//! Never: what records mean (except genesis, start, key rotation and conversion), a clock, randomness, a retry of a
//! failed sync.

mod admission;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod disk;
mod error;
mod file;
mod fold;
mod keyring;
mod memory;
pub mod private_file;
mod provider;
mod real_disk;
mod retention;
mod secret;
mod text;

pub use error::{
    AppendError, Failure, KeyringError, Misfit, OpenError, PrepareError, ReadError, SnapshotError, Unproved,
};
pub use file::{
    ArchiveError, Archiver, Deleted, Deleter, DeletionError, DeletionPlan, Entry, FileJournal, Kept, Local, Mirror,
    Moved, Options, Places, Plan, ReadOnly, Recovered, Scanned, Scrub, ScrubDamage, ScrubPlace, ScrubPosition,
    ScrubStep, SensitiveWork, SignedHead, TornTail, UnprovedTail, Wanted, in_use,
};
pub use fold::{Broken, Flaw, Fold};
pub use keyring::Keys;
pub use memory::MemoryJournal;
pub use provider::{
    DamagedSnapshot, Head, Journal, LoadedSnapshot, Position, SignedCheckpoint, Snapshot, StoredRecord, Visit,
    VisitBatch, VisitVerified,
};
pub use real_disk::RealDisk;
pub use retention::{SNAPSHOT_EVERY, SNAPSHOTS_NEWEST, snapshots_to_remove};
pub use secret::{MacKey, Secret, SecretError};
