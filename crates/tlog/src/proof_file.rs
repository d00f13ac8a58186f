//! Proofs as files an auditor keeps: the hashes, and the checkpoint they lead to.
//!
//! That a record is in the log is <https://c2sp.org/tlog-proof>:
//!
//! ```text
//! c2sp.org/tlog-proof@v1
//! extra <base64, optional, not authenticated>
//! index 73894
//! <one base64 hash per line, from the leaf upwards>
//!
//! <the checkpoint note>
//! ```
//!
//! That the log only grew is the request of <https://c2sp.org/tlog-witness>, so the same file serves a witness:
//!
//! ```text
//! old 20852014
//! <one base64 hash per line>
//!
//! <the checkpoint note>
//! ```
//!
//! Neither file states the size of the tree: it is taken from the checkpoint, which is signed.

use std::fmt;

use crate::atoms::{decode_base64, decode_hash, encode_base64, parse_decimal};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::hash::Hash;
use crate::key::VerifierKey;
use crate::limits::{PROOF_EXTRA_BYTES_MAX, PROOF_FILE_BYTES_MAX, PROOF_HASHES_MAX};
use crate::note::{Note, NoteError};
use crate::proof::{ConsistencyProof, InclusionProof, ProofError};

const INCLUSION_HEADER: &str = "c2sp.org/tlog-proof@v1";

/// A proof that one record is in the log, complete but for the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionFile {
    extra: Option<Vec<u8>>,
    index: u64,
    hashes: Vec<Hash>,
    note: Note,
}

/// A proof that the log of an older checkpoint only grew, complete but for that checkpoint and the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyFile {
    old_size: u64,
    hashes: Vec<Hash>,
    note: Note,
}

/// Why a proof file cannot be created, parsed or trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofFileError {
    TooLong {
        bytes: usize,
    },
    BadHeader,
    BadExtra,
    /// The line `index N`.
    BadIndex,
    /// The line `old N`.
    BadOldSize,
    /// A hash line (counted from 1) is not 32 bytes in base64.
    BadHash {
        line: usize,
    },
    TooManyHashes,
    /// No blank line before the checkpoint.
    NoCheckpoint,
    Note(NoteError),
    Checkpoint(CheckpointError),
    /// The file starts from another size than the older checkpoint has.
    WrongOldSize {
        expected: u64,
        found: u64,
    },
    Proof(ProofError),
}

impl InclusionFile {
    /// # Errors
    /// When there are too many hashes, or the extra data is empty or too long.
    pub fn new(proof: &InclusionProof, note: Note, extra: Option<Vec<u8>>) -> Result<Self, ProofFileError> {
        check_hash_count(&proof.hashes)?;
        check_extra(extra.as_deref())?;
        Ok(Self { extra, index: proof.leaf_index, hashes: proof.hashes.clone(), note })
    }

    /// Data beside the proof. It is not signed.
    #[must_use]
    pub fn unauthenticated_extra(&self) -> Option<&[u8]> {
        self.extra.as_deref()
    }

    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The checkpoint's note, with the cosignatures it may carry.
    #[must_use]
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// Parses a file without checking its proof or signatures.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn parse(file: &str) -> Result<Self, ProofFileError> {
        let (head, note) = split_file(file)?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(INCLUSION_HEADER) {
            return Err(ProofFileError::BadHeader);
        }
        let extra = match lines.next_if(|line| line.starts_with("extra ")) {
            None => None,
            Some(line) => Some(decode_base64(&line["extra ".len()..]).ok_or(ProofFileError::BadExtra)?),
        };
        check_extra(extra.as_deref())?;
        let index = parse_field("index ", lines.next()).ok_or(ProofFileError::BadIndex)?;
        let hashes = parse_hashes(lines)?;
        Ok(Self { extra, index, hashes, note })
    }

    /// The checkpoint that this file proves to contain `leaf` (see [`crate::leaf_hash`]).
    ///
    /// # Errors
    /// When the checkpoint cannot be trusted, or the proof does not lead to its root.
    pub fn verify(&self, leaf: &Hash, keys: &[VerifierKey], origin: &str) -> Result<Checkpoint, ProofFileError> {
        let checkpoint = Checkpoint::open_note(&self.note, keys, origin)?;
        let proof =
            InclusionProof { leaf_index: self.index, tree_size: checkpoint.size(), hashes: self.hashes.clone() };
        proof.verify(leaf, checkpoint.root())?;
        Ok(checkpoint)
    }
}

impl fmt::Display for InclusionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{INCLUSION_HEADER}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", encode_base64(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        write_hashes_and_note(f, &self.hashes, &self.note)
    }
}

impl ConsistencyFile {
    /// # Errors
    /// When there are too many hashes.
    pub fn new(proof: &ConsistencyProof, note: Note) -> Result<Self, ProofFileError> {
        check_hash_count(&proof.hashes)?;
        Ok(Self { old_size: proof.old_size, hashes: proof.hashes.clone(), note })
    }

    #[must_use]
    pub fn old_size(&self) -> u64 {
        self.old_size
    }

    /// The newer checkpoint's note, with the cosignatures it may carry.
    #[must_use]
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// Parses a file without checking its proof or signatures.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn parse(file: &str) -> Result<Self, ProofFileError> {
        let (head, note) = split_file(file)?;
        let mut lines = head.split('\n');
        let old_size = parse_field("old ", lines.next()).ok_or(ProofFileError::BadOldSize)?;
        let hashes = parse_hashes(lines)?;
        Ok(Self { old_size, hashes, note })
    }

    /// The newer checkpoint, once it is proved to continue the log of `old`, which the reader trusts already.
    ///
    /// # Errors
    /// When the newer checkpoint cannot be trusted, belongs to another log, or does not continue the old one.
    pub fn verify(&self, old: &Checkpoint, keys: &[VerifierKey]) -> Result<Checkpoint, ProofFileError> {
        let new = Checkpoint::open_note(&self.note, keys, old.origin())?;
        if self.old_size != old.size() {
            return Err(ProofFileError::WrongOldSize { expected: old.size(), found: self.old_size });
        }
        let proof = ConsistencyProof { old_size: self.old_size, new_size: new.size(), hashes: self.hashes.clone() };
        proof.verify(old.root(), new.root())?;
        Ok(new)
    }
}

impl fmt::Display for ConsistencyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old_size)?;
        write_hashes_and_note(f, &self.hashes, &self.note)
    }
}

/// The first blank line ends the proof; the note after it has another one, before its signatures.
fn split_file(file: &str) -> Result<(&str, Note), ProofFileError> {
    if file.len() > PROOF_FILE_BYTES_MAX {
        return Err(ProofFileError::TooLong { bytes: file.len() });
    }
    let (head, note) = file.split_once("\n\n").ok_or(ProofFileError::NoCheckpoint)?;
    Ok((head, Note::parse(note)?))
}

fn parse_field(name: &str, line: Option<&str>) -> Option<u64> {
    parse_decimal(line?.strip_prefix(name)?)
}

fn parse_hashes<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Hash>, ProofFileError> {
    let mut hashes = Vec::new();
    for (text, line) in lines.zip(1..) {
        if line > PROOF_HASHES_MAX {
            return Err(ProofFileError::TooManyHashes);
        }
        hashes.push(decode_hash(text).ok_or(ProofFileError::BadHash { line })?);
    }
    Ok(hashes)
}

fn write_hashes_and_note(f: &mut fmt::Formatter<'_>, hashes: &[Hash], note: &Note) -> fmt::Result {
    for hash in hashes {
        writeln!(f, "{}", encode_base64(hash))?;
    }
    write!(f, "\n{note}")
}

fn check_hash_count(hashes: &[Hash]) -> Result<(), ProofFileError> {
    if hashes.len() > PROOF_HASHES_MAX { Err(ProofFileError::TooManyHashes) } else { Ok(()) }
}

/// "If no extra data is present, this line is omitted": there is no empty extra.
fn check_extra(extra: Option<&[u8]>) -> Result<(), ProofFileError> {
    match extra {
        Some(bytes) if bytes.is_empty() || bytes.len() > PROOF_EXTRA_BYTES_MAX => Err(ProofFileError::BadExtra),
        _ => Ok(()),
    }
}

impl From<NoteError> for ProofFileError {
    fn from(error: NoteError) -> Self {
        Self::Note(error)
    }
}

impl From<CheckpointError> for ProofFileError {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(error)
    }
}

impl From<ProofError> for ProofFileError {
    fn from(error: ProofError) -> Self {
        Self::Proof(error)
    }
}

impl fmt::Display for ProofFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes } => write!(f, "the proof has {bytes} bytes, the limit is {PROOF_FILE_BYTES_MAX}"),
            Self::BadHeader => write!(f, "a proof file begins with the line {INCLUSION_HEADER}"),
            Self::BadExtra => write!(f, "extra data must be 1 to {PROOF_EXTRA_BYTES_MAX} bytes in base64"),
            Self::BadIndex => f.write_str("the proof has no line \"index N\" where it belongs"),
            Self::BadOldSize => f.write_str("the proof does not begin with a line \"old N\""),
            Self::BadHash { line } => {
                write!(f, "hash line {line} of the proof is not 32 bytes in base64")
            }
            Self::TooManyHashes => write!(f, "a proof has at most {PROOF_HASHES_MAX} hashes"),
            Self::NoCheckpoint => f.write_str("the proof has no blank line with a checkpoint after it"),
            Self::Note(error) => error.fmt(f),
            Self::Checkpoint(error) => error.fmt(f),
            Self::WrongOldSize { expected, found } => {
                write!(f, "the proof starts from size {found}, the older checkpoint has size {expected}")
            }
            Self::Proof(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProofFileError {}
