//! Segment files: which there are, what their headers say, and their batches (journal-format.md, "Segments").

use super::anchor::newer_format;
use super::cannot_read;
use crate::problem::Problem;
use leasehold_model::frame::{BATCH_HEADER_BYTES, BATCH_MAGIC};
use leasehold_model::limits::BATCH_BYTES_MAX;
use leasehold_model::{Damage, FORMAT_VERSION, Hash, RawBatch};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 96;
const PIECE_BYTES: usize = 1 << 20;

/// The segment files by number; where several folders hold one, the first folder counts.
pub(super) fn list(data: &Path, archives: &[PathBuf]) -> Result<BTreeMap<u32, PathBuf>, Problem> {
    let mut found = BTreeMap::new();
    for folder in std::iter::once(&data.join("journal")).chain(archives) {
        for entry in std::fs::read_dir(folder).map_err(|error| cannot_read(folder, &error))? {
            let entry = entry.map_err(|error| cannot_read(folder, &error))?;
            if let Some(number) = entry.file_name().to_str().and_then(segment_number) {
                found.entry(number).or_insert_with(|| entry.path());
            }
        }
    }
    Ok(found)
}

fn segment_number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".seg")?;
    let number = (digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?;
    number.filter(|number| *number > 0)
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u32,
    pub(super) first_sequence: u64,
    pub(super) prev: Hash,
    /// SHA-256 of the origin's name.
    pub(super) origin: Hash,
}

/// An open segment, with the bytes read ahead.
pub(super) struct Segment {
    pub(super) path: PathBuf,
    file: File,
    /// Where in the file `buffer[taken]` lies.
    offset: u64,
    buffer: Vec<u8>,
    taken: usize,
}

/// What a file is, by its first bytes.
pub(super) enum Found {
    Begun(Header, Segment),
    /// Allocated ahead, or gone again: it holds nothing.
    Unbegun,
    /// Neither zeroes nor a header.
    Damaged,
}

pub(super) fn open(path: &Path) -> Result<Found, Problem> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A clean stop removes the segment it had allocated ahead.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Unbegun),
        Err(error) => return Err(cannot_read(path, &error)),
    };
    let mut segment = Segment { path: path.to_owned(), file, offset: 0, buffer: Vec::new(), taken: 0 };
    segment.want(HEADER_BYTES)?;
    match parse_header(segment.ahead()) {
        Some((version, _)) if version > FORMAT_VERSION => Err(newer_format(path, version)),
        Some((FORMAT_VERSION, header)) => {
            segment.skip(HEADER_BYTES);
            Ok(Found::Begun(header, segment))
        }
        _ if segment.ahead().iter().take(HEADER_BYTES).all(|b| *b == 0) => Ok(Found::Unbegun),
        _ => Ok(Found::Damaged),
    }
}

fn parse_header(bytes: &[u8]) -> Option<(u32, Header)> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let hash = |at: usize| -> Hash { header[at..at + 32].try_into().expect("32 bytes") };
    if header[..8] != *b"LHSEGMNT" || crc32fast::hash(&header[..92]) != word(92) {
        return None;
    }
    let first_sequence = u64::from_le_bytes(header[16..24].try_into().expect("eight bytes"));
    Some((word(8), Header { number: word(12), first_sequence, prev: hash(24), origin: hash(56) }))
}

impl Segment {
    /// Where the next batch begins, if there is one.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next batch, or why there is none. [`Self::pass`] goes on to the one after it.
    pub(super) fn batch(&mut self) -> Result<Result<RawBatch<'_>, Damage>, Problem> {
        self.want(BATCH_HEADER_BYTES)?;
        if let Some(header) = self.ahead().first_chunk::<BATCH_HEADER_BYTES>()
            && header[..4] == BATCH_MAGIC
        {
            let length = u32::from_le_bytes(header[4..8].try_into().expect("four bytes"));
            self.want(BATCH_HEADER_BYTES + (length as usize).min(BATCH_BYTES_MAX))?;
        }
        Ok(RawBatch::read(self.ahead()))
    }

    pub(super) fn pass(&mut self, bytes: usize) {
        self.skip(bytes);
    }

    /// Forgets what was read ahead: the file may hold more by now.
    pub(super) fn look_again(&mut self) {
        self.buffer.clear();
        self.taken = 0;
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }
    fn skip(&mut self, bytes: usize) {
        self.taken += bytes;
        self.offset += bytes as u64;
    }

    /// Sees to it that so many bytes are ahead, if the file has them.
    fn want(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.ahead().len() >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let mut filled = self.buffer.len();
        self.buffer.resize(bytes.max(PIECE_BYTES), 0);
        while filled < self.buffer.len() {
            match self.file.read_at(&mut self.buffer[filled..], self.offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot_read(&self.path, &error)),
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}
