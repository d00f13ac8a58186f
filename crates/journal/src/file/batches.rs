//! Reading the batches of one segment, one after the other, in large pieces.

use crate::disk::{DiskFile, read_full};
use leasehold_model::frame::{BATCH_HEADER_BYTES, BATCH_MAGIC, BATCH_MAGIC_V1};
use leasehold_model::limits::BATCH_BYTES_MAX;
use leasehold_model::{Damage, RawBatch};
use std::io;
use std::sync::Arc;

/// The first piece is small, for those who want one record; a scan soon reads in large ones.
const PIECE_BYTES_FIRST: usize = 32 * 1024;
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// A cursor over the batches of a file.
pub(super) struct BatchReader {
    file: Arc<dyn DiskFile>,
    /// The offset of `buffer[0]` in the file.
    base: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read.
    filled: usize,
    /// Bytes of the buffer that were returned.
    taken: usize,
    piece_bytes: usize,
    /// The only format version that counts, where one is given.
    version: Option<u32>,
}

impl BatchReader {
    pub(super) fn new(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self {
            file,
            base: offset,
            buffer: Vec::new(),
            filled: 0,
            taken: 0,
            piece_bytes: PIECE_BYTES_FIRST,
            version: None,
        }
    }

    /// Batches of another format version than this are damage.
    pub(super) fn of_version(mut self, version: u32) -> Self {
        self.version = Some(version);
        self
    }

    /// Where the next batch begins, if there is one.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.taken as u64
    }

    /// The next batch, or why there is none. Must not be called again after damage.
    pub(super) fn next(&mut self) -> io::Result<Result<RawBatch<'_>, Damage>> {
        self.want(BATCH_HEADER_BYTES)?;
        let bytes = match self.buffer[self.taken..self.filled].first_chunk::<BATCH_HEADER_BYTES>() {
            Some(header) if header[..4] == BATCH_MAGIC || header[..4] == BATCH_MAGIC_V1 => {
                let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
                BATCH_HEADER_BYTES + (length as usize).min(BATCH_BYTES_MAX)
            }
            _ => BATCH_HEADER_BYTES,
        };
        self.want(bytes)?;
        let begin = self.taken;
        self.taken = self.filled.min(begin + bytes);
        let bytes = &self.buffer[begin..self.filled];
        Ok(match self.version {
            Some(version) => RawBatch::read_version(bytes, version),
            None => RawBatch::read(bytes),
        })
    }

    /// Reads until so many bytes after `taken` are in the buffer, if the file has them.
    fn want(&mut self, bytes: usize) -> io::Result<()> {
        if self.filled - self.taken >= bytes {
            return Ok(());
        }
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.base += self.taken as u64;
        self.filled -= self.taken;
        self.taken = 0;
        let target = bytes.max(self.piece_bytes);
        self.piece_bytes = (self.piece_bytes * 4).min(PIECE_BYTES_MAX);
        if self.buffer.len() < target {
            self.buffer.resize(target, 0);
        }
        let at = self.base + self.filled as u64;
        self.filled += read_full(self.file.as_ref(), &mut self.buffer[self.filled..target], at)?;
        Ok(())
    }
}
