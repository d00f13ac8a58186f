//! How a file journal is laid out; nothing here changes what is recorded.

use super::segment::HEADER_BYTES_U64;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::secret::Secret;
use leasehold_model::Instant;
use std::sync::Arc;

/// May differ from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes allocated for a segment, and so the largest batch.
    pub segment_bytes: u64,
    /// Distance between the places a reader can jump to.
    pub index_bytes: u64,
}

/// What is at hand on this machine, beside the signing keys, to open a journal.
#[derive(Clone)]
pub struct Local {
    /// Authenticates what this daemon wrote and nobody has signed.
    pub secret: Secret,
    pub tail: UnprovedTail,
    /// Directories with segments that were moved away, read-only.
    pub archives: Vec<Arc<dyn Disk>>,
    /// Set if the directory was just restored: when the copy was made. It is sealed.
    pub restored: Option<Instant>,
}

impl Local {
    /// Refuses what cannot be authenticated, and has no archive.
    pub fn new(secret: Secret) -> Self {
        Self { secret, tail: UnprovedTail::Refuse, archives: Vec::new(), restored: None }
    }
}

/// What happens to records after the anchor that cannot be authenticated (SEMANTICS 11, "Local authenticity").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnprovedTail {
    /// The journal is not opened.
    Refuse,
    /// They are discarded.
    Cut,
    /// They count, in a directory of version 1 or one whose secret was lost; otherwise the journal is not opened.
    Accept,
}

/// Room for the header and a record or two.
const SEGMENT_BYTES_MIN: u64 = HEADER_BYTES_U64 + 1024;
/// A torn segment is examined in memory.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, index_bytes: 64 << 10 }
    }
}

impl Options {
    /// Bytes that a clean stop keeps allocated after the last record. If the disk is full at the next start, the records of
    /// that start still fit, and many more starts after it.
    pub(super) fn reserve_bytes(&self) -> u64 {
        self.segment_bytes / 64
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
        if (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            Ok(())
        } else {
            Err(OpenError::BadOptions("a segment has 1120 bytes to 1 GiB; change segment_bytes"))
        }
    }
}
