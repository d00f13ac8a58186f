//! The end of the last segment: clean, torn, or damaged (journal-format.md, "A torn end").

use super::allocate::zero_fill;
use crate::disk::{DiskFile, read_full};
use leasehold_model::RawBatch;
use leasehold_model::frame::batch_magic;
use std::io;

const PIECE_BYTES: usize = 1024 * 1024;

/// What follows the last good batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Zeroes, or nothing.
    Clean,
    /// Bytes up to here (`end` is the end of the last that is not zero), and no good batch among them.
    Torn { end: u64 },
    /// A good batch begins at `offset`: what is before it is damage.
    GoodBatch { offset: u64 },
}

/// The end of the last byte from `from` on that is not zero.
pub(super) fn end_of_bytes(file: &dyn DiskFile, from: u64) -> io::Result<Option<u64>> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = from;
    let mut end = None;
    loop {
        let read = read_full(file, &mut piece, at)?;
        if read == 0 {
            return Ok(end);
        }
        if let Some(last) = piece[..read].iter().rposition(|byte| *byte != 0) {
            end = Some(at + last as u64 + 1);
        }
        at += read as u64;
    }
}

/// Examines everything from `from` on, where no good batch begins; `sequence` is that of the record that would be
/// there, and `versions` are the format versions that a batch there may have.
pub(super) fn inspect(file: &dyn DiskFile, from: u64, sequence: u64, versions: &[u32]) -> io::Result<Tail> {
    let Some(end) = end_of_bytes(file, from)? else {
        return Ok(Tail::Clean);
    };
    let rest = usize::try_from(file.len()?.saturating_sub(from)).map_err(io::Error::other)?;
    let mut bytes = vec![0; rest];
    let read = read_full(file, &mut bytes, from)?;
    let bytes = &bytes[..read];
    for (at, window) in bytes.windows(4).enumerate().skip(1) {
        let version = versions.iter().find(|version| window == batch_magic(**version));
        if version.is_some_and(|version| is_later_batch(&bytes[at..], *version, sequence)) {
            let offset = from + at as u64;
            return Ok(Tail::GoodBatch { offset });
        }
    }
    Ok(Tail::Torn { end })
}

/// Whether a batch begins here whose records decode and come at or after `sequence`. Anything else is text
/// inside a record: someone's idempotency key must not be able to pass for a batch.
fn is_later_batch(bytes: &[u8], version: u32, sequence: u64) -> bool {
    let Ok(batch) = RawBatch::read_version(bytes, version) else {
        return false;
    };
    let mut records = batch.records().map(|raw| raw.ok()?.decode().ok());
    records.all(|record| record.is_some_and(|record| record.sequence >= sequence))
}

/// Overwrites a torn end with zeroes. If it returns `Ok`, that is durable.
pub(super) fn cut(file: &dyn DiskFile, from: u64, end: u64) -> io::Result<()> {
    zero_fill(file, from, end)?;
    file.sync()
}

/// Writes the bytes of `from..to` again, the same bytes, and syncs it.
///
/// The last batch may be one whose sync failed: it can then still be read from the system's cache, as clean pages
/// that no later sync would write. Written again it is dirty, and the sync makes it durable.
pub(super) fn write_again(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let length = usize::try_from(to - from).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    if read_full(file, &mut bytes, from)? != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.write_at(&bytes, from)?;
    file.sync()
}
