//! How a file journal is laid out; nothing here changes what is recorded.

use super::segment::HEADER_BYTES_U64;
use crate::error::OpenError;

/// May differ from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes allocated for a segment, and so the largest batch.
    pub segment_bytes: u64,
    /// Distance between the places a reader can jump to.
    pub index_bytes: u64,
}

/// Room for the header and a record or two.
const SEGMENT_BYTES_MIN: u64 = HEADER_BYTES_U64 + 1024;
/// A torn segment is looked at in memory.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, index_bytes: 64 << 10 }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), OpenError> {
        if (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            Ok(())
        } else {
            Err(OpenError::BadOptions("a segment has 1120 bytes to 1 GiB; change segment_bytes"))
        }
    }
}
