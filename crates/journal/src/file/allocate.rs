//! Allocating ahead: files are filled with zeroes before they are used, so that an append changes neither the
//! length of a file nor its map of blocks, and a full disk shows here and not under a record.

use super::layout::{JOURNAL, segment_path};
use super::segment::HEADER_BYTES_U64;
use super::writer::Prepared;
use crate::disk::{Access, Disk, DiskFile};
use std::io;

const PIECE_BYTES: usize = 1024 * 1024;

/// Writes zeroes over `from..to`.
pub(super) fn zero_fill(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let zeroes = vec![0; PIECE_BYTES];
    let mut at = from;
    while at < to {
        let piece = usize::try_from(to - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        file.write_at(&zeroes[..piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

/// Makes a segment that is not begun. If it fails, nothing of it is left, unless it was there before: on a full disk its
/// bytes are the only ones that there are.
pub(super) fn allocate_segment(disk: &dyn Disk, number: u32, bytes: u64) -> io::Result<Prepared> {
    let path = segment_path(number);
    if let Some(left) = left_by_stop(disk, number, bytes)? {
        return Ok(left);
    }
    let made = (|| {
        let file = disk.open(&path, Access::Create)?;
        zero_fill(file.as_ref(), 0, bytes)?;
        file.sync()?;
        disk.sync_dir(JOURNAL)?;
        Ok(Prepared { number, file, capacity: bytes })
    })();
    if made.is_err() {
        // A file of zeroes is nothing to anyone: should it stay, the next attempt or start takes care of it.
        let _ = disk.remove(&path);
    }
    made
}

/// The segment that a stop left for this start, as long as it is: its bytes are written again, so that they are allocated
/// for certain.
fn left_by_stop(disk: &dyn Disk, number: u32, bytes: u64) -> io::Result<Option<Prepared>> {
    let file = match disk.open(&segment_path(number), Access::Update) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let capacity = file.len()?;
    if !(HEADER_BYTES_U64 + 1..=bytes).contains(&capacity) {
        return Ok(None);
    }
    zero_fill(file.as_ref(), 0, capacity)?;
    file.sync()?;
    Ok(Some(Prepared { number, file, capacity }))
}

/// Brings a segment that was trimmed at a clean stop back to its length, from the end of its batches on.
/// If it fails, the segment is as it was.
pub(super) fn extend_segment(file: &dyn DiskFile, end: u64, bytes: u64) -> io::Result<()> {
    let extended = zero_fill(file, end, bytes).and_then(|()| file.sync());
    if extended.is_err() {
        file.set_len(end)?;
    }
    extended
}
