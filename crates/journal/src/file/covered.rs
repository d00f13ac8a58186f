//! What a restart needs of the journal: which segments may be moved away, and later be deleted.

use super::archiver::{ArchiveError, io};
use super::read_only::SignedHead;
use super::segment::Header;
use super::snapshot::{self, Owner, SnapshotHead};
use crate::disk::Disk;
use crate::secret::Secret;
use std::io;

/// How many records each of those covers that stand in for the beginning of the journal at a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    /// The newest checkpoint.
    pub(super) signed: u64,
    /// The newest usable snapshot, if there is one.
    pub(super) snapshot: Option<u64>,
    /// What the books have committed.
    pub(super) books: u64,
}

impl Covered {
    pub(super) fn read(
        data: &dyn Disk,
        signed: &SignedHead,
        secret: Option<&Secret>,
        books: u64,
    ) -> Result<Self, ArchiveError> {
        let owner = Owner { origin: &signed.origin, mac: secret.map(|secret| &secret.snapshot) };
        let signed = signed.head.size;
        let snapshot = newest_snapshot(data, &owner, signed).map_err(io("reading the snapshots"))?;
        Ok(Self { signed, snapshot, books })
    }

    /// Whether a restart needs nothing that precedes this segment. The books also need the record before the first one
    /// that they have not committed.
    pub(super) fn is_behind(&self, next: &Header) -> bool {
        next.first_sequence <= self.signed.min(self.snapshot.unwrap_or(0)) && next.first_sequence < self.books
    }
}

fn newest_snapshot(disk: &dyn Disk, owner: &Owner<'_>, size_max: u64) -> io::Result<Option<u64>> {
    for size in snapshot::list(disk)?.into_iter().rev().filter(|size| *size <= size_max) {
        // One of an earlier version lacks the hash of the first record, which a start needs.
        if let Some(SnapshotHead { genesis: Some(_), .. }) = snapshot::head(disk, owner, size)? {
            return Ok(Some(size));
        }
    }
    Ok(None)
}
