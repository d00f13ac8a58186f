//! Whether the bytes after the last valid batch may be the rest of an interrupted write (journal-format.md, "A torn end").

use leasehold_model::frame::{BATCH_HEADER_BYTES, batch_magic};
use leasehold_model::limits::BATCH_BYTES_MAX;
use leasehold_model::{RawBatch, RawRecord};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const WINDOW_BYTES: usize = 2 * (BATCH_HEADER_BYTES + BATCH_BYTES_MAX);
/// After this many bytes of apparent batches have been checksummed, the file is taken to be forged. A file that consists
/// of beginnings of batches would take hours otherwise.
const CHECKSUMMED_BYTES_MAX: usize = 1 << 30;

/// Whether the batch at `offset` has the right checksum: then it was written completely, and is not torn.
pub(crate) fn has_right_checksum(path: &Path, offset: u64, version: u32) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    (&mut file).take(BATCH_HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    let Some(header) = bytes.first_chunk::<BATCH_HEADER_BYTES>().copied() else {
        return Ok(false);
    };
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let length = word(4) as usize;
    if header[..4] != batch_magic(version) || length > BATCH_BYTES_MAX {
        return Ok(false);
    }
    file.take(length as u64).read_to_end(&mut bytes)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[4..12]);
    crc.update(&bytes[BATCH_HEADER_BYTES..]);
    Ok(bytes.len() == BATCH_HEADER_BYTES + length && crc.finalize() == word(12))
}

/// Searches from `begin` on for a valid batch, of one of these format versions, of records with at least the number `sequence`.
///
/// The bytes of a batch inside a record (an idempotency key can contain some sixty) are not such a batch: they do not
/// decode to records with such numbers.
pub(crate) fn good_batch_from(path: &Path, mut begin: u64, sequence: u64, versions: &[u32]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut window = Vec::new();
    let mut bytes_left = CHECKSUMMED_BYTES_MAX;
    loop {
        file.seek(SeekFrom::Start(begin))?;
        window.clear();
        (&mut file).take(WINDOW_BYTES as u64).read_to_end(&mut window)?;
        // Batches that begin in the second half of a full window are found in the next window.
        let last = window.len() < WINDOW_BYTES;
        let candidates = if last { window.len() } else { WINDOW_BYTES / 2 };
        for (at, version) in offsets_of_magic(&window, candidates, versions) {
            let bytes = &window[at..];
            let length = bytes[4..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
            bytes_left = bytes_left.saturating_sub(length.min(BATCH_BYTES_MAX));
            if bytes_left == 0 || is_batch_from(bytes, version, sequence) {
                return Ok(true);
            }
        }
        if last {
            return Ok(false);
        }
        begin += (WINDOW_BYTES / 2) as u64;
    }
}

/// Offsets at which a batch of one of these format versions might begin, with the version.
fn offsets_of_magic(window: &[u8], candidates: usize, versions: &[u32]) -> impl Iterator<Item = (usize, u32)> {
    let last = window.len().saturating_sub(BATCH_HEADER_BYTES).min(candidates);
    (0..last).filter_map(move |at| {
        let version = versions.iter().find(|version| window[at..at + 4] == batch_magic(**version));
        version.map(|version| (at, *version))
    })
}

fn is_batch_from(bytes: &[u8], version: u32, sequence: u64) -> bool {
    let belongs = |record: RawRecord<'_>| record.decode().is_ok_and(|record| record.sequence >= sequence);
    RawBatch::read_version(bytes, version).is_ok_and(|batch| batch.records().all(|record| record.is_ok_and(belongs)))
}

/// The end of the last byte at or after `from` that is not zero; `from` if all are zero.
pub(crate) fn end_of_bytes(path: &Path, from: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut piece = vec![0; 256 * 1024];
    let (mut at, mut end) = (from, from);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(end);
        }
        if let Some(last) = piece[..read].iter().rposition(|byte| *byte != 0) {
            end = at + last as u64 + 1;
        }
        at += read as u64;
    }
}
