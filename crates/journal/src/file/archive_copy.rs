//! Copying one segment to an archive, and checking the copy: the bytes against the original, and the records against
//! the segment that continues them.

use super::batches::BatchReader;
use super::segment::{HEADER_BYTES, HEADER_BYTES_U64, Header};
use super::tail::end_of_bytes;
use crate::disk::{DiskFile, read_full};
use leasehold_model::{Damage, RawRecord};
use std::io;
use std::sync::Arc;

/// A segment and the one after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) header: Header,
    pub(super) next: Header,
}

const PIECE_BYTES: usize = 1024 * 1024;
/// Bytes between syncs: synced all at once, they would hold up the syncs of a daemon on the same disk.
const SYNC_BYTES: u64 = 4 << 20;

/// Checks that every record follows from the one before, from the header of the segment to that of the next one, and
/// hands each of them out. Returns where the last batch ends.
pub(super) fn check_links(
    file: &Arc<dyn DiskFile>,
    link: &Link,
    visit: &mut dyn FnMut(&RawRecord<'_>) -> Result<(), String>,
) -> Result<u64, String> {
    let mut bytes = [0; HEADER_BYTES];
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(|error| error.to_string())?;
    if Header::parse(&bytes[..read]) != Ok(link.header) {
        return Err("its header was changed".into());
    }
    let mut batches = BatchReader::new(Arc::clone(file), HEADER_BYTES_U64).of_version(link.header.version);
    let (mut sequence, mut hash) = (link.header.first_sequence, link.header.prev);
    while sequence < link.next.first_sequence {
        let (offset, first) = (batches.offset(), sequence);
        let at = |why: &str| format!("at offset {offset} (record {first}): {why}");
        let batch = batches.next().map_err(|error| at(&error.to_string()))?.map_err(|d: Damage| at(&d.to_string()))?;
        for record in batch.records() {
            let record = record.map_err(|damage| at(&damage.to_string()))?;
            if record.sequence() != Ok(sequence) || record.prev_hash() != hash {
                return Err(at("a record does not continue the one before it"));
            }
            visit(&record).map_err(|why| at(&why))?;
            (sequence, hash) = (sequence + 1, record.hash());
        }
    }
    let end = batches.offset();
    if (sequence, hash) != (link.next.first_sequence, link.next.prev) {
        return Err(format!("its last record is not the one that segment {} continues", link.next.number));
    }
    match end_of_bytes(file.as_ref(), end).map_err(|error| error.to_string())? {
        None => Ok(end),
        Some(_) => Err(format!("at offset {end}: there are bytes after its last record")),
    }
}

/// Copies the first `end` bytes and makes them durable. Returns false if `progress` asked to stop.
pub(super) fn copy(
    from: &dyn DiskFile,
    to: &dyn DiskFile,
    end: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<bool> {
    let mut unsynced = 0;
    let whole = pieces(from, end, |at, piece| {
        to.write_at(piece, at)?;
        unsynced += piece.len() as u64;
        if unsynced >= SYNC_BYTES {
            to.sync()?;
            unsynced = 0;
        }
        Ok(progress(at + piece.len() as u64))
    })?;
    if whole {
        to.sync()?;
    }
    Ok(whole)
}

/// Whether the files have the same first `end` bytes, and the second one nothing but zeroes after them. An answer of
/// `progress` is ignored: to compare takes a moment.
pub(super) fn compare(
    original: &dyn DiskFile,
    other: &dyn DiskFile,
    end: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<bool> {
    let mut buffer = vec![0; PIECE_BYTES];
    let same = pieces(original, end, |at, piece| {
        let there = &mut buffer[..piece.len()];
        let read = read_full(other, there, at)?;
        progress(at + piece.len() as u64);
        Ok(&there[..read] == piece)
    })?;
    Ok(same && end_of_bytes(other, end)?.is_none())
}

/// Hands out the first `end` bytes in pieces, until `take` says false. Returns whether all were taken.
fn pieces(file: &dyn DiskFile, end: u64, mut take: impl FnMut(u64, &[u8]) -> io::Result<bool>) -> io::Result<bool> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < end {
        let wanted = usize::try_from(end - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        let read = read_full(file, &mut buffer[..wanted], at)?;
        if read < wanted {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the segment became shorter"));
        }
        if !take(at, &buffer[..read])? {
            return Ok(false);
        }
        at += read as u64;
    }
    Ok(true)
}
