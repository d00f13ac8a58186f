//! The header of a segment (journal-format.md, "Segments").

use leasehold_model::FORMAT_VERSION;
use leasehold_model::record::Hash;
use sha2::{Digest, Sha256};

pub(super) const HEADER_BYTES: usize = 96;
pub(super) const HEADER_BYTES_U64: u64 = 96;
const MAGIC: [u8; 8] = *b"LHSEGMNT";
const CRC_AT: usize = 92;

/// The contents of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The format version of the segment and of every batch in it.
    pub(super) version: u32,
    pub(super) number: u32,
    pub(super) first_sequence: u64,
    /// Hash of the record before the first one here.
    pub(super) prev: Hash,
    /// SHA-256 of the origin's name.
    pub(super) origin: Hash,
}

/// Why bytes are not the header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFlaw {
    /// Cut short, not ours, or damaged.
    Damaged,
    NewerFormat(u32),
}

pub(super) fn origin_hash(origin: &str) -> Hash {
    Sha256::digest(origin.as_bytes()).into()
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[24..56].copy_from_slice(&self.prev);
        bytes[56..88].copy_from_slice(&self.origin);
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeaderFlaw> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(HeaderFlaw::Damaged)?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        if header[..8] != MAGIC || crc32fast::hash(&header[..CRC_AT]) != word(CRC_AT) {
            return Err(HeaderFlaw::Damaged);
        }
        if word(8) > FORMAT_VERSION {
            return Err(HeaderFlaw::NewerFormat(word(8)));
        }
        if word(8) == 0 || word(88) != 0 {
            return Err(HeaderFlaw::Damaged);
        }
        Ok(Self {
            version: word(8),
            number: word(12),
            first_sequence: u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")),
            prev: header[24..56].try_into().expect("32 bytes"),
            origin: header[56..88].try_into().expect("32 bytes"),
        })
    }
}
