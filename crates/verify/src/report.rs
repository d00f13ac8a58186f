//! The report about an intact journal.

use crate::anchor_file::Anchor;
use crate::join::Joiner;
use crate::keys::Rotation;
use crate::segments::Segments;
use crate::trust::{Trust, TrustError};
use leasehold_model::{Hash, Instant, Span};
use leasehold_tlog::{KeyId, VerifierKey};
use std::time::Duration;

/// What a verified journal holds, how far it is proved to be complete, and by what.
#[derive(Clone, Debug)]
pub struct Report {
    pub origin: String,
    /// The number of records of the journal, including archived ones.
    pub records: u64,
    /// The first record found: 0 unless earlier segments are missing.
    pub first_sequence: u64,
    /// Timestamps of the first and the last record found.
    pub stamps: Option<(Instant, Instant)>,
    /// Bytes of segment headers and batches; padding does not count.
    pub bytes: u64,
    /// Numbers of the first and last segment read.
    pub segments: Option<(u32, u32)>,
    /// Hash of the last record.
    pub head: Hash,
    /// Root of the tree over all records.
    pub root: Hash,
    /// The size of the anchor's checkpoint; later records are chained, not signed.
    pub checkpoint_size: u64,
    /// Up to this size, a missing record would have been detected.
    pub complete_up_to: u64,
    pub proved_by: ProvedBy,
    /// Every witness in the trust file that cosigned the anchor's checkpoint.
    pub witnessed: Vec<Witnessed>,
    /// The names of the other witnesses in the trust file.
    pub missing_witnesses: Vec<String>,
    /// How many witnesses the trust file requires.
    pub required_witnesses: usize,
    /// The ids of the keys that were in force, in order.
    pub keys: Vec<KeyId>,
    pub rotations: Vec<Rotation>,
    /// Whether the statements about months were recomputed; none if there are none.
    pub statements: Option<Statements>,
    pub torn_tail: Option<TornTail>,
    /// One of the anchor's slots is damaged; the other one was used.
    pub anchor_slot_damaged: bool,
    /// Segments found in several directories; the first directory given was used.
    pub duplicate_segments: Vec<u32>,
    /// The newest signed checkpoint, for the auditor to pin.
    pub newest_checkpoint: String,
    /// The key in force at the end.
    pub key_in_force: Option<VerifierKey>,
    pub duration: Duration,
}

/// How far the last timestamp may be ahead of the verifier's clock without a warning: clocks differ a little.
pub const STAMP_TOLERANCE: Span = Span::from_secs(60);

/// What proves that no record is missing up to some size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvedBy {
    /// The checkpoint in the auditor's trust file.
    Pinned,
    /// A cosignature by a witness in the trust file.
    Witness(Witnessed),
    /// Only the local anchor: somebody with the operator's key could have replaced it together with the segments.
    Anchor,
}

/// A witness's cosignature of the anchor's checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witnessed {
    pub name: String,
    pub size: u64,
    /// The time of the cosignature according to the witness, in seconds since 1970.
    pub seconds: u64,
}

/// What became of the statements about the records of months, by which tenants prove their invoices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statements {
    /// So many were recomputed from the records.
    Recomputed(u64),
    /// The records before this one are not here, so none could be recomputed.
    OutOfReach { first: u64 },
}

/// The rest of a write that a crash interrupted. It was never acknowledged, and is not part of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub segment: u32,
    pub offset: u64,
    pub bytes: u64,
}

impl Report {
    pub(crate) fn new(
        joiner: Joiner<'_>,
        anchor: &Anchor,
        trust: &Trust,
        segments: &Segments,
        (statements, torn_tail): (Option<Statements>, Option<TornTail>),
        anchor_slot_damaged: bool,
        duration: Duration,
    ) -> Self {
        let pinned_size = trust.pinned().map_or(0, |pinned| pinned.checkpoint.size());
        let newest = match trust.pinned() {
            Some(pinned) if pinned_size > anchor.size => &pinned.note,
            _ => &anchor.signed.note,
        };
        let (complete_up_to, proved_by) = match joiner.cosigned.by.first() {
            Some(witness) if witness.size > pinned_size => (witness.size, ProvedBy::Witness(witness.clone())),
            _ if pinned_size > 0 => (pinned_size, ProvedBy::Pinned),
            _ => (anchor.size, ProvedBy::Anchor),
        };
        let read = &segments.files[..segments.begun];
        Self {
            origin: trust.origin().to_owned(),
            records: joiner.size(),
            first_sequence: joiner.first_sequence.unwrap_or(0),
            stamps: joiner.first_stamp.zip(joiner.last.map(|last| last.stamp)),
            bytes: joiner.bytes,
            segments: read.first().zip(read.last()).map(|(first, last)| (first.number, last.number)),
            head: joiner.head,
            root: joiner.tree.root(),
            checkpoint_size: anchor.size,
            complete_up_to,
            proved_by,
            witnessed: joiner.cosigned.by,
            missing_witnesses: joiner.cosigned.missing,
            required_witnesses: trust.required(),
            key_in_force: joiner.keys.in_force().cloned(),
            keys: joiner.keys.seen,
            rotations: joiner.keys.rotations,
            statements,
            torn_tail,
            anchor_slot_damaged,
            duplicate_segments: segments.duplicates.clone(),
            newest_checkpoint: newest.to_string(),
            duration,
        }
    }

    /// Records that no checkpoint covers yet.
    pub fn records_after_checkpoint(&self) -> u64 {
        self.records - self.checkpoint_size
    }

    /// How far the last timestamp is in the future of `now`, the auditor's clock, if that is more than clocks differ.
    ///
    /// Timestamps are the operator's word: nothing in the files proves them. This much can be noticed from outside.
    pub fn stamp_ahead(&self, now: Instant) -> Option<Span> {
        let (_, last) = self.stamps?;
        let ahead = last.since(now);
        (ahead > STAMP_TOLERANCE).then_some(ahead)
    }

    /// The trust file for the next verification: with the key now in force, and the newest checkpoint pinned.
    ///
    /// # Errors
    /// When `trust` is about another origin.
    pub fn updated_trust(&self, trust: &Trust) -> Result<Trust, TrustError> {
        let mut updated = trust.clone();
        if let Some(key) = &self.key_in_force {
            updated.add_key(key.clone())?;
        }
        updated.pin(&self.newest_checkpoint)?;
        Ok(updated)
    }
}
