//! The file with which a payer proves an invoice (docs/reference/invoice-proof.md).
//!
//! It holds the invoice's number, a signed checkpoint, on request what leads to it from an earlier one, records of the
//! journal, the lists at the start of the month, and the hashes that lead from the records to the checkpoint's root. Nothing in it is believed: [`ProofFile::root`] says
//! to which root it leads, and only records under a signed root count. What can be derived is left out, so that one
//! content has one file: the link of a record whose predecessor is in the file too, the number of hashes, and the hash
//! beside a record that follows from its link.

mod evidence;
mod growth;
mod writer;

pub use evidence::{Bill, Needed, Opened, Place, Rotated};
pub use growth::Growth;
pub use writer::ProofWriter;

use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::frame::signed_message;
use leasehold_model::limits::{RECORD_BYTES_MAX, SIGNERS_MAX};
use leasehold_model::record::Record;
use leasehold_model::{Hash, InvoiceNo};
use leasehold_tlog::limits::NOTE_BYTES_MAX;
use leasehold_tlog::{ProofError, leaf_hash, multiproof_root, verify_raw};
use sha2::{Digest, Sha256};
use std::fmt;

const FAMILY: &[u8] = b"leasehold-invoice-proof v";
/// With which every file begins.
pub const FIRST_LINE: &[u8] = b"leasehold-invoice-proof v1\n";
const HASH_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// A proof file that was read. Its parts are those of the file; nothing is copied or verified.
#[derive(Clone, Debug)]
pub struct ProofFile<'a> {
    pub invoice: InvoiceNo,
    /// The signed note of a checkpoint.
    pub checkpoint: &'a str,
    /// What leads to the checkpoint from an earlier size of the journal, if somebody asked for it.
    pub growth: Option<Growth>,
    /// In order of sequence.
    pub records: Vec<FileRecord<'a>>,
    pub lists: Lists<&'a [u8]>,
    /// The hashes of the multiproof.
    hashes: &'a [Hash],
}

/// The encoded lists of a proof file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lists<B> {
    /// The state at the start of the range that all tenants have in common.
    pub common: B,
    /// The tenant's state at the start of the range.
    pub tenant: B,
    /// The nodes that the tenant claimed in the range.
    pub claimed_nodes: B,
}

/// A record of a proof file.
#[derive(Clone, Copy, Debug)]
pub struct FileRecord<'a> {
    pub sequence: u64,
    /// The hashed bytes after the link.
    bytes: &'a [u8],
    /// The hash of the previous record, where that is not in the file.
    link: Option<&'a Hash>,
    signatures: &'a [u8],
}

/// Why bytes are not a proof file, or lead to no root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadProofFile {
    NotAProof,
    NewerFormat,
    /// A part of the file cannot be read.
    Part {
        what: &'static str,
        why: DecodeError,
    },
    /// The record after this many cannot be read.
    Record {
        after: usize,
        why: DecodeError,
    },
    /// Records come in order of sequence.
    Unsorted {
        before: u64,
        sequence: u64,
    },
    BadSignature {
        sequence: u64,
    },
    /// Hashes fill the rest of the file, 32 bytes each.
    PartOfAHash,
    Proof(ProofError),
    /// The journal at the earlier size is not the beginning of the one that the checkpoint signs.
    NotGrown {
        from: u64,
    },
    /// A key rotation does not name its two keys as its signers.
    BadRotation {
        sequence: u64,
    },
    /// The file must have exactly one such record.
    Needed(Needed),
    /// A record has no place in the proof of this invoice.
    Unneeded {
        sequence: u64,
    },
    /// There are more records in the range of the month than the statement counts.
    MoreThanStated {
        counted: u64,
    },
}

impl From<ProofError> for BadProofFile {
    fn from(error: ProofError) -> Self {
        Self::Proof(error)
    }
}

impl<'a> FileRecord<'a> {
    fn get(r: &mut Reader<'a>, before: Option<u64>, word: u64) -> Result<Self, DecodeError> {
        let (length, signatures) = (word >> 2, word & 3);
        let length = usize::try_from(length).ok().filter(|length| *length <= RECORD_BYTES_MAX - HASH_BYTES);
        let bytes = r.take(length.ok_or(DecodeError::Forbidden("a record longer than its limit"))?)?;
        let signatures = usize::try_from(signatures).ok().filter(|count| *count <= SIGNERS_MAX);
        let signatures = signatures.ok_or(DecodeError::Forbidden("more signatures than a record has"))?;
        let sequence = Reader::new(bytes).varint()?;
        let follows = before.is_some_and(|before| before.checked_add(1) == Some(sequence));
        let link = if follows { None } else { Some(r.array_ref()?) };
        Ok(Self { sequence, bytes, link, signatures: r.take(signatures * SIGNATURE_BYTES)? })
    }

    /// The record itself, strictly decoded.
    ///
    /// # Errors
    /// When the bytes are not a record that this version knows.
    pub fn decode(&self) -> Result<Record, DecodeError> {
        let record = Record::get(&mut Reader::new(self.bytes))?;
        match record.signers.len() * SIGNATURE_BYTES == self.signatures.len() {
            true => Ok(record),
            false => Err(DecodeError::Forbidden("a record without the signatures it names")),
        }
    }

    fn check_signatures(&self, hash: &Hash, record: &Record) -> Result<(), BadProofFile> {
        let (signatures, _) = self.signatures.as_chunks::<SIGNATURE_BYTES>();
        let message = signed_message(hash);
        let right = |(key, signature)| verify_raw(key, &message, signature).is_ok();
        match record.signers.iter().zip(signatures).all(right) {
            true => Ok(()),
            false => Err(BadProofFile::BadSignature { sequence: self.sequence }),
        }
    }
}

impl<'a> ProofFile<'a> {
    /// Reads a file. Memory is bounded by its size.
    ///
    /// # Errors
    /// When the bytes are not in the one form that a file has.
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadProofFile> {
        let Some(rest) = bytes.strip_prefix(FIRST_LINE) else {
            return Err(if is_newer(bytes) { BadProofFile::NewerFormat } else { BadProofFile::NotAProof });
        };
        let mut r = Reader::new(rest);
        let part = |what| move |why| BadProofFile::Part { what, why };
        let invoice = InvoiceNo::get(&mut r).map_err(part("the invoice's number"))?;
        let checkpoint = get_note(&mut r).map_err(part("the checkpoint"))?;
        let growth = Growth::get(&mut r).map_err(part("the earlier size"))?;
        let records = get_records(&mut r)?;
        let mut list = |what| get_list(&mut r).map_err(part(what));
        let lists = Lists {
            common: list("the list of prices and classes")?,
            tenant: list("the tenant's list")?,
            claimed_nodes: list("the list of claimed nodes")?,
        };
        let rest = r.take(r.remaining()).map_err(part("the hashes"))?;
        match rest.as_chunks::<HASH_BYTES>() {
            (hashes, []) => Ok(Self { invoice, checkpoint, growth, records, lists, hashes }),
            _ => Err(BadProofFile::PartOfAHash),
        }
    }

    /// The root of a tree of this size to which all records and hashes lead; `each` gets every record, in order, with
    /// its hash. Record signatures are checked. Nothing that `each` got is proved before the root is compared with a
    /// signed one.
    ///
    /// # Errors
    /// When a record cannot be decoded, a signature is wrong, or the hashes are not those that such a tree needs.
    pub fn root<E: From<BadProofFile>>(
        &self,
        tree_size: u64,
        mut each: impl FnMut(Record, Hash) -> Result<(), E>,
    ) -> Result<Hash, E> {
        let mut head = Hash::default();
        // The leaf of a record, which comes after that of its predecessor.
        let mut second = None;
        let mut records = self.records.iter().enumerate();
        let leaves = std::iter::from_fn(|| {
            if let Some(leaf) = second.take() {
                return Some(Ok(leaf));
            }
            let (after, record) = records.next()?;
            let link = record.link.copied().unwrap_or(head);
            head = Sha256::new().chain_update(link).chain_update(record.bytes).finalize().into();
            let leaf = (record.sequence, leaf_hash(&head));
            let decoded = record.decode().map_err(|why| BadProofFile::Record { after, why });
            let checked = decoded.and_then(|decoded| {
                record.check_signatures(&head, &decoded)?;
                Ok(decoded)
            });
            if let Err(error) = checked.map_err(E::from).and_then(|decoded| each(decoded, head)) {
                return Some(Err(Stopped::Each(error)));
            }
            Some(Ok(match sibling_known(record) {
                false => leaf,
                true => {
                    second = Some(leaf);
                    (record.sequence - 1, leaf_hash(&link))
                }
            }))
        });
        multiproof_root(tree_size, leaves, self.hashes.iter().copied()).map_err(|stopped| match stopped {
            Stopped::Each(error) => error,
            Stopped::Proof(error) => BadProofFile::Proof(error).into(),
        })
    }
}

/// Why the way to the root ended.
enum Stopped<E> {
    Each(E),
    Proof(ProofError),
}

impl<E> From<ProofError> for Stopped<E> {
    fn from(error: ProofError) -> Self {
        Self::Proof(error)
    }
}

/// Records with odd sequences are right children. If the left one is not in the file, its leaf follows from the link.
fn sibling_known(record: &FileRecord<'_>) -> bool {
    record.link.is_some() && record.sequence % 2 == 1
}

/// A first line of this family with a greater number.
fn is_newer(bytes: &[u8]) -> bool {
    let line = bytes.strip_prefix(FAMILY).and_then(|rest| rest.split(|byte| *byte == b'\n').next());
    line.is_some_and(|version| {
        let digits = !version.is_empty() && version.len() < 10 && version.iter().all(u8::is_ascii_digit);
        digits && version[0] != b'0' && version != b"1"
    })
}

fn get_note<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let length = r.count(NOTE_BYTES_MAX)?;
    std::str::from_utf8(r.take(length)?).map_err(|_| DecodeError::BadText)
}

fn get_list<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = r.count(usize::MAX)?;
    r.take(length)
}

/// Records up to the word 0, with which no record begins.
fn get_records<'a>(r: &mut Reader<'a>) -> Result<Vec<FileRecord<'a>>, BadProofFile> {
    let mut records: Vec<FileRecord<'_>> = Vec::new();
    loop {
        let after = records.len();
        let bad = |why| BadProofFile::Record { after, why };
        let before = records.last().map(|record| record.sequence);
        let word = r.varint().map_err(bad)?;
        if word == 0 {
            return Ok(records);
        }
        let record = FileRecord::get(r, before, word).map_err(bad)?;
        if let Some(before) = before.filter(|before| *before >= record.sequence) {
            return Err(BadProofFile::Unsorted { before, sequence: record.sequence });
        }
        records.push(record);
    }
}

impl fmt::Display for BadProofFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAProof => f.write_str("the file does not begin with the line `leasehold-invoice-proof v1`"),
            Self::NewerFormat => f.write_str("the file has a newer format; use a newer leasehold-verify"),
            Self::Part { what, why } => write!(f, "{what} cannot be read: {why}"),
            Self::Record { after, why } => write!(f, "the record after the first {after} cannot be read: {why}"),
            Self::Unsorted { before, sequence } => write!(f, "record {sequence} comes after record {before}"),
            Self::BadSignature { sequence } => write!(f, "a signature of record {sequence} is wrong"),
            Self::PartOfAHash => {
                f.write_str("the file does not end with a whole hash: it was cut, or bytes were added")
            }
            Self::Proof(why) => write!(f, "the records are not proved: {why}"),
            Self::NotGrown { from } => {
                write!(f, "its hashes do not lead from the journal of {from} records to that of its checkpoint")
            }
            Self::BadRotation { sequence } => {
                write!(f, "record {sequence} rotates the signing key and is not signed by both keys")
            }
            Self::Needed(Needed::Invoice) => f.write_str("the file does not have the invoice that it is about, once"),
            Self::Needed(Needed::Statement) => f.write_str("the file does not have the statement of the month, once"),
            Self::Needed(Needed::Cut) => f.write_str("the file does not have the cut of the month"),
            Self::Needed(Needed::Closed) => {
                f.write_str("the file does not have the record that closed the month, once")
            }
            Self::Unneeded { sequence } => write!(f, "record {sequence} has no place in the proof of this invoice"),
            Self::MoreThanStated { counted } => {
                write!(f, "the file has {counted} records of the month, which are more than the statement counts")
            }
        }
    }
}

impl std::error::Error for BadProofFile {}
