//! Records on disk: frames in batches (docs/reference/journal-format.md, "Batches").
//!
//! One write and one fsync make a batch durable. It is built unsealed, with space for the links and the MAC, and sealed
//! in place: the encoded bytes are hashed and stored without a copy. Batches are written in format version 2; those of
//! version 1, which have no MAC, are only read.

use crate::codec::{DecodeError, Reader};
use crate::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, RECORD_BYTES_MAX, SIGNERS_MAX};
use crate::record::{Hash, Outline, Record};
use sha2::{Digest, Sha256};
use std::fmt;

/// The first bytes of a batch of format version 2.
pub const BATCH_MAGIC: [u8; 4] = *b"LHB2";
/// The first bytes of a batch of format version 1.
pub const BATCH_MAGIC_V1: [u8; 4] = *b"LHB1";
/// Magic, payload length, record count, CRC-32: four bytes each, little-endian.
pub const BATCH_HEADER_BYTES: usize = 16;
/// A MAC by the data directory's secret (SEMANTICS 11), the first part of the payload in version 2.
pub const MAC_BYTES: usize = 32;
/// Where the frames begin in a batch that is being written.
const FRAMES_AT: usize = BATCH_HEADER_BYTES + MAC_BYTES;
/// Length of the hashed bytes, shifted left by two, plus the number of signatures.
const FRAME_HEADER_BYTES: usize = 4;
const HASH_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// Hashes a record's bytes, which begin with the hash of the record before it.
pub fn record_hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// The message that a signature of a record signs.
pub fn signed_message(hash: &Hash) -> Vec<u8> {
    let mut message = b"leasehold record signature v1\n".to_vec();
    message.extend_from_slice(hash);
    message
}

/// Signs records.
pub trait Signer {
    /// The signature of `message` with the key of `public_key`, if the signer has it.
    fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]>;
}

/// A signer without keys, for journals without signed records.
pub struct NoKeys;
impl Signer for NoKeys {
    fn sign(&self, _: &[u8; 32], _: &[u8]) -> Option<[u8; 64]> {
        None
    }
}

/// A record requires a signature with a key that the signer does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingKey(pub [u8; 32]);

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record must be signed with a key that is not available: ")?;
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}
impl std::error::Error for MissingKey {}

/// A batch of records before it is written.
#[derive(Clone, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    count: u32,
    first_sequence: u64,
}

impl Batch {
    /// An empty batch whose first record will have this sequence.
    pub fn new(first_sequence: u64) -> Self {
        let mut bytes = Vec::with_capacity(4096);
        bytes.resize(FRAMES_AT, 0);
        Self { bytes, count: 0, first_sequence }
    }

    /// Empties the batch and keeps its allocation.
    pub fn reset(&mut self, first_sequence: u64) {
        self.bytes.truncate(FRAMES_AT);
        self.count = 0;
        self.first_sequence = first_sequence;
    }

    pub fn push(&mut self, record: &Record) {
        assert_eq!(record.sequence, self.next_sequence(), "records are appended without gaps");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; FRAME_HEADER_BYTES + HASH_BYTES]);
        record.put(&mut self.bytes);
        let length = self.bytes.len() - start - FRAME_HEADER_BYTES;
        assert!(length <= RECORD_BYTES_MAX, "a record of {length} bytes");
        let signatures = record.signers.len();
        let word = u32::try_from(length << 2 | signatures).expect("a record's length fits");
        self.bytes[start..start + FRAME_HEADER_BYTES].copy_from_slice(&word.to_le_bytes());
        if signatures > 0 {
            self.bytes.resize(self.bytes.len() + signatures * SIGNATURE_BYTES, 0);
        }
        self.count += 1;
    }

    pub fn count(&self) -> u32 {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub fn first_sequence(&self) -> u64 {
        self.first_sequence
    }
    /// The sequence the next record must have.
    pub fn next_sequence(&self) -> u64 {
        self.first_sequence + u64::from(self.count)
    }
    /// The bytes of the batch; valid after it is sealed.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The frames of the batch. Their links are valid after it is sealed.
    pub fn frames(&self) -> Frames<'_> {
        Frames { rest: &self.bytes[FRAMES_AT..] }
    }

    /// As [`Self::seal_with`], for batches that nobody authenticates: the MAC is zero.
    pub fn seal(&mut self, prev: &Hash, signer: &dyn Signer) -> Result<Hash, MissingKey> {
        self.seal_with(prev, signer, |_| [0; MAC_BYTES])
    }

    /// Links every record to the one before, beginning at `prev`, signs those that name signers, adds the MAC that
    /// `authenticate` returns, and closes the batch with its checksum. Returns the hash of the last record.
    pub fn seal_with(
        &mut self,
        prev: &Hash,
        signer: &dyn Signer,
        authenticate: impl FnOnce(&Authenticated) -> [u8; MAC_BYTES],
    ) -> Result<Hash, MissingKey> {
        assert!(self.count > 0 && self.count <= BATCH_RECORDS_MAX, "a batch of {} records", self.count);
        let mut head = *prev;
        let mut at = FRAMES_AT;
        while at < self.bytes.len() {
            let mut word = [0u8; FRAME_HEADER_BYTES];
            word.copy_from_slice(&self.bytes[at..at + FRAME_HEADER_BYTES]);
            let word = u32::from_le_bytes(word) as usize;
            let (length, signatures) = (word >> 2, word & 3);
            let body = at + FRAME_HEADER_BYTES;
            self.bytes[body..body + HASH_BYTES].copy_from_slice(&head);
            head = record_hash(&self.bytes[body..body + length]);
            at = body + length;
            if signatures > 0 {
                self.sign_frame(body, length, &head, signer)?;
                at += signatures * SIGNATURE_BYTES;
            }
        }
        let payload = self.bytes.len() - BATCH_HEADER_BYTES;
        assert!(payload <= BATCH_BYTES_MAX, "a batch of {payload} bytes");
        let payload = u32::try_from(payload).expect("a batch's length fits");
        self.bytes[..4].copy_from_slice(&BATCH_MAGIC);
        self.bytes[4..8].copy_from_slice(&payload.to_le_bytes());
        self.bytes[8..12].copy_from_slice(&self.count.to_le_bytes());
        let bound = Authenticated { first_sequence: self.first_sequence, count: self.count, last_hash: head };
        self.bytes[BATCH_HEADER_BYTES..FRAMES_AT].copy_from_slice(&authenticate(&bound));
        let crc = batch_crc(&self.bytes);
        self.bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        Ok(head)
    }

    fn sign_frame(&mut self, body: usize, length: usize, hash: &Hash, signer: &dyn Signer) -> Result<(), MissingKey> {
        let mut r = Reader::new(&self.bytes[body + HASH_BYTES..body + length]);
        let record = Record::get(&mut r).expect("a record that was just encoded");
        let message = signed_message(hash);
        for (i, key) in record.signers.iter().enumerate() {
            let signature = signer.sign(key, &message).ok_or(MissingKey(*key))?;
            let at = body + length + i * SIGNATURE_BYTES;
            self.bytes[at..at + SIGNATURE_BYTES].copy_from_slice(&signature);
        }
        Ok(())
    }
}

/// What the MAC of a batch binds: with the last hash, every byte of every record up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub first_sequence: u64,
    pub count: u32,
    pub last_hash: Hash,
}

impl Authenticated {
    /// The bytes that the MAC is computed over.
    pub fn message(&self) -> [u8; 44] {
        let mut message = [0; 44];
        message[..8].copy_from_slice(&self.first_sequence.to_le_bytes());
        message[8..12].copy_from_slice(&self.count.to_le_bytes());
        message[12..].copy_from_slice(&self.last_hash);
        message
    }
}

/// The checksum of a whole batch: everything but the magic and the checksum itself.
fn batch_crc(bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[4..12]);
    crc.update(&bytes[BATCH_HEADER_BYTES..]);
    crc.finalize()
}

/// Why bytes are not a complete, undamaged batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The end of the file, or only zeroes up to it: the journal ends here.
    Nothing,
    NoMagic,
    /// The lengths in the header are impossible.
    BadHeader,
    /// The file ends inside the batch.
    Truncated,
    BadChecksum,
    /// The checksum is correct but the frames are not: it was forged, not torn.
    BadFrame,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "there is no batch",
            Self::NoMagic => "the magic bytes of a batch are missing",
            Self::BadHeader => "the batch header contains impossible lengths",
            Self::Truncated => "the batch is truncated",
            Self::BadChecksum => "the batch does not match its checksum",
            Self::BadFrame => "the frames do not fill the batch",
        })
    }
}

/// A batch that was read from a file. Its lengths and checksum are verified; its hashes are not.
#[derive(Clone, Copy, Debug)]
pub struct RawBatch<'a> {
    /// Header and payload.
    bytes: &'a [u8],
    count: u32,
    version: u32,
}

impl<'a> RawBatch<'a> {
    /// Reads the batch at the start of `bytes`, in the format version that its first bytes name; more bytes may follow.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let version = if bytes.starts_with(&BATCH_MAGIC_V1) { 1 } else { 2 };
        Self::read_version(bytes, version)
    }

    /// As [`Self::read`], in this format version only.
    pub fn read_version(bytes: &'a [u8], version: u32) -> Result<Self, Damage> {
        let Some((header, rest)) = bytes.split_first_chunk::<BATCH_HEADER_BYTES>() else {
            return Err(if bytes.iter().all(|b| *b == 0) { Damage::Nothing } else { Damage::NoMagic });
        };
        if header[..4] != batch_magic(version) {
            let empty = header.iter().all(|b| *b == 0);
            return Err(if empty { Damage::Nothing } else { Damage::NoMagic });
        }
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (length, count) = (word(4) as usize, word(8));
        let possible = 1..=BATCH_RECORDS_MAX;
        if length > BATCH_BYTES_MAX || !possible.contains(&count) || length < payload_bytes_min(version, count) {
            return Err(Damage::BadHeader);
        }
        if rest.len() < length {
            return Err(Damage::Truncated);
        }
        let bytes = &bytes[..BATCH_HEADER_BYTES + length];
        if batch_crc(bytes) != word(12) {
            return Err(Damage::BadChecksum);
        }
        let batch = Self { bytes, count, version };
        let mut frames = batch.records();
        let mut seen = 0;
        for frame in frames.by_ref() {
            frame?;
            seen += 1;
        }
        if seen != count {
            return Err(Damage::BadFrame);
        }
        Ok(batch)
    }

    pub fn count(&self) -> u32 {
        self.count
    }
    /// The format version.
    pub fn version(&self) -> u32 {
        self.version
    }
    /// The MAC that the batch carries; none in version 1. Whether it is right is for the holder of the secret to say.
    pub fn mac(&self) -> Option<&'a [u8; MAC_BYTES]> {
        if self.version == 1 { None } else { self.bytes[BATCH_HEADER_BYTES..].first_chunk() }
    }
    /// The bytes of the batch in its file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The size of the batch in its file.
    pub fn bytes_total(&self) -> usize {
        self.bytes.len()
    }
    /// Where the first frame begins in the batch.
    pub fn frames_at(&self) -> usize {
        BATCH_HEADER_BYTES + mac_bytes(self.version)
    }
    pub fn records(&self) -> Frames<'a> {
        Frames { rest: &self.bytes[self.frames_at()..] }
    }
}

/// The first bytes of a batch of this format version.
pub fn batch_magic(version: u32) -> [u8; 4] {
    if version == 1 { BATCH_MAGIC_V1 } else { BATCH_MAGIC }
}

/// Bytes of the MAC in a batch of this format version.
fn mac_bytes(version: u32) -> usize {
    if version == 1 { 0 } else { MAC_BYTES }
}

/// The smallest payload of a batch of so many records.
pub fn payload_bytes_min(version: u32, records: u32) -> usize {
    mac_bytes(version) + records as usize * (FRAME_HEADER_BYTES + HASH_BYTES)
}

/// The frames of a batch, in order.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<RawRecord<'a>, Damage>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut r = Reader::new(self.rest);
        let frame = (|| {
            let word = u32::from_le_bytes(r.array().ok()?) as usize;
            let (length, signatures) = (word >> 2, word & 3);
            if !(HASH_BYTES..=RECORD_BYTES_MAX).contains(&length) || signatures > SIGNERS_MAX {
                return None;
            }
            let bytes = r.take(length).ok()?;
            let signatures = r.take(signatures * SIGNATURE_BYTES).ok()?;
            Some(RawRecord { bytes, signatures })
        })();
        match frame {
            Some(frame) => {
                self.rest = &self.rest[self.rest.len() - r.remaining()..];
                Some(Ok(frame))
            }
            None => {
                self.rest = &[];
                Some(Err(Damage::BadFrame))
            }
        }
    }
}

/// The bytes of one record as they are hashed and stored.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    /// The hashed bytes: the previous hash, then the record.
    pub bytes: &'a [u8],
    /// The signatures that follow, 64 bytes each.
    pub signatures: &'a [u8],
}

impl RawRecord<'_> {
    pub fn prev_hash(&self) -> Hash {
        let mut hash = [0u8; HASH_BYTES];
        hash.copy_from_slice(&self.bytes[..HASH_BYTES]);
        hash
    }
    pub fn hash(&self) -> Hash {
        record_hash(self.bytes)
    }
    /// Decodes strictly: only the canonical encoding is accepted.
    #[inline]
    pub fn decode(&self) -> Result<Record, DecodeError> {
        // Checked where it is: taking it out and returning it again would copy it twice.
        let decoded = Record::get(&mut self.after_link()?);
        if let Ok(record) = &decoded
            && record.signers.len() * SIGNATURE_BYTES != self.signatures.len()
        {
            return Err(DecodeError::Forbidden("a record without the signatures it names"));
        }
        decoded
    }
    /// Fails where [`Self::decode`] fails, with the same error, without building the record.
    #[inline]
    pub fn validate(&self) -> Result<Outline, DecodeError> {
        let outline = Record::validate(&mut self.after_link()?)?;
        if outline.signers * SIGNATURE_BYTES != self.signatures.len() {
            return Err(DecodeError::Forbidden("a record without the signatures it names"));
        }
        Ok(outline)
    }
    /// Reads only the sequence, for searches.
    pub fn sequence(&self) -> Result<u64, DecodeError> {
        self.after_link()?.varint()
    }
    /// Reads only the code of the kind, for searches.
    pub fn kind(&self) -> Result<u64, DecodeError> {
        let mut reader = self.after_link()?;
        reader.varint()?;
        <crate::Instant as crate::codec::Field>::get(&mut reader)?;
        reader.varint()
    }
    /// The link to the previous record, if the record is long enough; a `RawRecord` can be created from any bytes.
    fn after_link(&self) -> Result<Reader<'_>, DecodeError> {
        self.bytes.get(HASH_BYTES..).map(Reader::new).ok_or(DecodeError::Truncated)
    }
    pub fn signature(&self, index: usize) -> Option<[u8; 64]> {
        self.signatures.as_chunks::<SIGNATURE_BYTES>().0.get(index).copied()
    }
}
