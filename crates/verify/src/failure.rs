//! The first problem that was found in a journal: what it is, where it is, and a sentence about it.

use leasehold_bill::Wrong;
use leasehold_model::{Damage, DecodeError};
use leasehold_tlog::KeyId;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The first problem that was found. Prints as one sentence.
#[derive(Debug)]
pub struct Failure {
    /// The record concerned, if it is known.
    pub sequence: Option<u64>,
    pub segment: Option<u32>,
    /// Byte in the segment's file where the record, or the batch around it, begins.
    pub offset: Option<u64>,
    pub file: Option<PathBuf>,
    pub why: Why,
    /// The largest size at which a signed checkpoint matched the records; 0 if none did.
    pub agreed_up_to: u64,
}

/// Where a signed checkpoint that the records are compared with was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    Anchor,
    /// The tree file of this segment.
    Tree(u32),
    /// The one pinned in the trust file.
    Pinned,
}

/// Kinds of problems. [`Why::code`] is stable; the sentences are not.
#[derive(Debug)]
pub enum Why {
    /// The files cannot be read: nothing is known about the journal.
    Unreadable(io::Error),
    NotAFile,
    NoJournal,
    NoAnchor,
    BadAnchor(&'static str),
    NewerFormat(u32),
    WrongOrigin {
        expected: String,
        found: Option<String>,
    },
    MissingSegment(u32),
    EmptySegment,
    BadSegmentHeader(&'static str),
    MissingTreeFile,
    BadTreeFile(&'static str),
    Damaged(Damage),
    Undecodable(DecodeError),
    Gap {
        found: u64,
    },
    OutOfOrder {
        found: u64,
    },
    AlteredRecord,
    BrokenLink,
    StampGoesBack,
    StrippedSignature,
    StraySignature,
    BadRecordSignature,
    BadGenesis(&'static str),
    BadRotation(&'static str),
    BadConversion(&'static str),
    /// The epoch of a start is not greater than that of the start before it.
    EpochRepeated {
        before: u64,
        found: u64,
    },
    UnknownKey {
        key: KeyId,
    },
    BadSignature {
        document: Document,
        key: KeyId,
    },
    /// Not signed by the key in force; or, before the first record, not by any trusted key.
    NotSigned {
        document: Document,
        key: Option<KeyId>,
    },
    BadCheckpoint {
        document: Document,
        why: String,
    },
    BadCosignature {
        witness: String,
    },
    /// Fewer witnesses have cosigned the anchor's checkpoint than the trust file requires.
    MissingCosignatures {
        required: usize,
        found: usize,
        missing: Vec<String>,
    },
    RootMismatch {
        document: Document,
        size: u64,
    },
    HeadMismatch {
        document: Document,
    },
    AnchorAhead {
        anchor: u64,
        records: u64,
    },
    AnchorTooOld {
        anchor: u64,
        first: u64,
    },
    TreeAhead {
        tree: u64,
        records: u64,
    },
    PinnedMismatch {
        size: u64,
    },
    PinnedAhead {
        pinned: u64,
        records: u64,
    },
    PinnedOutOfReach {
        pinned: u64,
        first: u64,
    },
    /// A statement about the records of a month that the records do not bear out.
    BadStatement(Wrong),
}

impl Why {
    /// A code for programs; it does not change from version to version.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::NotAFile => "not_a_file",
            Self::NoJournal => "no_journal",
            Self::NoAnchor => "no_anchor",
            Self::BadAnchor(_) => "bad_anchor",
            Self::NewerFormat(_) => "newer_format",
            Self::WrongOrigin { .. } => "wrong_origin",
            Self::MissingSegment(_) => "missing_segment",
            Self::EmptySegment => "empty_segment",
            Self::BadSegmentHeader(_) => "bad_segment_header",
            Self::MissingTreeFile => "missing_tree_file",
            Self::BadTreeFile(_) => "bad_tree_file",
            Self::Damaged(Damage::BadChecksum) => "bad_checksum",
            Self::Damaged(Damage::BadFrame) => "bad_frame",
            Self::Damaged(Damage::Truncated) => "cut_batch",
            Self::Damaged(_) => "not_a_batch",
            Self::Undecodable(_) => "undecodable",
            Self::Gap { .. } => "gap",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::AlteredRecord => "altered_record",
            Self::BrokenLink => "broken_link",
            Self::StampGoesBack => "stamp_goes_back",
            Self::StrippedSignature => "stripped_signature",
            Self::StraySignature => "stray_signature",
            Self::BadRecordSignature => "bad_record_signature",
            Self::BadGenesis(_) => "bad_genesis",
            Self::BadRotation(_) => "bad_rotation",
            Self::BadConversion(_) => "bad_conversion",
            Self::EpochRepeated { .. } => "epoch_repeated",
            Self::UnknownKey { .. } => "unknown_key",
            Self::BadSignature { .. } => "bad_signature",
            Self::NotSigned { .. } => "not_signed",
            Self::BadCheckpoint { .. } => "bad_checkpoint",
            Self::BadCosignature { .. } => "bad_cosignature",
            Self::MissingCosignatures { .. } => "missing_cosignatures",
            Self::RootMismatch { .. } => "root_mismatch",
            Self::HeadMismatch { .. } => "head_mismatch",
            Self::AnchorAhead { .. } => "anchor_ahead",
            Self::AnchorTooOld { .. } => "anchor_too_old",
            Self::TreeAhead { .. } => "tree_ahead",
            Self::PinnedMismatch { .. } => "pinned_mismatch",
            Self::PinnedAhead { .. } => "pinned_ahead",
            Self::PinnedOutOfReach { .. } => "pinned_out_of_reach",
            Self::BadStatement(_) => "bad_statement",
        }
    }
}

impl Failure {
    pub(crate) fn new(why: Why) -> Self {
        Self { sequence: None, segment: None, offset: None, file: None, why, agreed_up_to: 0 }
    }
    pub(crate) fn in_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }
    pub(crate) fn at_sequence(mut self, sequence: u64) -> Self {
        self.sequence = Some(sequence);
        self
    }

    pub fn code(&self) -> &'static str {
        self.why.code()
    }

    /// Whether the files could not be read, as opposed to a journal that is not intact.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.why, Why::Unreadable(_))
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor => f.write_str("the anchor"),
            Self::Tree(segment) => write!(f, "the tree file of segment {segment}"),
            Self::Pinned => f.write_str("the trust file"),
        }
    }
}

/// The record concerned, by its number if that is known.
struct Named(Option<u64>);
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(sequence) => write!(f, "record {sequence}"),
            None => f.write_str("a record"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = Named(self.sequence);
        let next = Named(self.sequence.map(|s| s.saturating_add(1)));
        match &self.why {
            Why::AlteredRecord => write!(f, "{record} was altered: its hash differs from the link in {next}"),
            Why::BrokenLink => {
                write!(f, "the link in {record} differs from the hash of the record before it: the link was altered")
            }
            Why::Gap { found } => write!(f, "{record} is missing: record {found} was found instead"),
            Why::OutOfOrder { found } => write!(f, "record {found} was found where {record} was expected"),
            Why::StampGoesBack => write!(f, "{record} has an earlier timestamp than the record before it"),
            Why::Undecodable(error) => write!(f, "{record} cannot be decoded: {error}"),
            Why::StrippedSignature => write!(f, "{record} names signers, but a signature is missing"),
            Why::StraySignature => write!(f, "{record} has a signature for which it names no signer"),
            Why::BadRecordSignature => write!(f, "{record} has a signature that does not match the key it names"),
            Why::BadGenesis(why) => write!(f, "{record}: {why}"),
            Why::BadRotation(why) => write!(f, "{record} changes the signing key, but is invalid: {why}"),
            Why::BadConversion(why) => write!(f, "{record}: {why}"),
            Why::BadStatement(wrong) => write!(f, "{record} is wrong about the statements of a month: {wrong}"),
            Why::EpochRepeated { before, found } => {
                write!(f, "{record} starts epoch {found} after epoch {before}: epochs must grow")
            }
            Why::Damaged(damage) => match self.sequence {
                Some(sequence) => write!(f, "record {sequence} or the batch that contains it is damaged: {damage}"),
                None => write!(f, "the journal is damaged: {damage}"),
            },
            why => why.fmt(f),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::NoJournal => f.write_str(
                "no journal found; pass the data directory, which contains `journal` and `anchor`",
            ),
            Self::NoAnchor => f.write_str(
                "the anchor is missing: without it, removed records at the end cannot be detected; restore the file `anchor`",
            ),
            Self::BadAnchor(why) => write!(f, "invalid anchor: {why}"),
            Self::NewerFormat(version) => {
                write!(f, "format version {version} is not supported (only versions 1 and 2 are); use a newer leasehold-verify")
            }
            Self::WrongOrigin { expected, found: Some(found) } => {
                write!(f, "this is the journal of {found:?}, but the trust file is for {expected:?}")
            }
            Self::WrongOrigin { expected, found: None } => {
                write!(f, "this is not the journal of {expected:?}, the origin in the trust file")
            }
            Self::MissingSegment(number) => {
                write!(f, "segment {number} is missing; if it was archived, pass its directory with --archive")
            }
            Self::EmptySegment => f.write_str("the segment contains no records, but a later segment does"),
            Self::BadSegmentHeader(why) => write!(f, "the segment's header is damaged: {why}"),
            Self::MissingTreeFile => f.write_str(
                "earlier segments are not here, and the tree file of the first segment found is missing; restore it, or pass the directory of the earlier segments with --archive",
            ),
            Self::BadTreeFile(why) => write!(f, "invalid tree file: {why}"),
            Self::UnknownKey { key } => write!(
                f,
                "the journal begins with key {key}, which is not in the trust file; before you add it, ask the operator for the key in another way and compare"
            ),
            Self::BadSignature { document, key } => {
                write!(f, "the checkpoint in {document} has an invalid signature that claims to be by key {key}")
            }
            Self::NotSigned { document, key: Some(key) } => {
                write!(f, "the checkpoint in {document} is not signed by key {key}, which was in force at its size")
            }
            Self::NotSigned { document, key: None } => {
                write!(f, "the checkpoint in {document} is not signed by any key in the trust file")
            }
            Self::BadCheckpoint { document, why } => write!(f, "the checkpoint in {document} is invalid: {why}"),
            Self::BadCosignature { witness } => {
                write!(f, "the newest checkpoint has an invalid cosignature that claims to be by {witness}")
            }
            Self::MissingCosignatures { required, found, missing } => write!(
                f,
                "the trust file requires cosignatures of {required} witnesses on the newest checkpoint, and it has {found}; missing: {}",
                missing.join(", ")
            ),
            Self::RootMismatch { document, size } => write!(
                f,
                "the root of the first {size} records differs from the signed root in {document}: a record was altered, and the hashes after it were recomputed"
            ),
            Self::HeadMismatch { document } => {
                write!(f, "the hash of the last record that {document} covers differs from the one stated there")
            }
            Self::AnchorAhead { anchor, records } => write!(
                f,
                "records were removed from the end: the anchor covers {anchor} records, but only {records} were found"
            ),
            Self::AnchorTooOld { anchor, first } => write!(
                f,
                "the anchor covers {anchor} records, but the first record found is number {first}: an old anchor was restored, or earlier segments are missing (pass their directory with --archive)"
            ),
            Self::TreeAhead { tree, records } => write!(
                f,
                "records were removed from the end: a tree file covers {tree} records, but only {records} were found"
            ),
            Self::PinnedMismatch { size } => write!(
                f,
                "the journal was rewritten or forked: its first {size} records differ from those of the checkpoint in the trust file"
            ),
            Self::PinnedAhead { pinned, records } => write!(
                f,
                "records were removed from the end: the checkpoint in the trust file covers {pinned} records, but only {records} were found"
            ),
            Self::PinnedOutOfReach { pinned, first } => write!(
                f,
                "the checkpoint in the trust file covers {pinned} records, but the first record found is number {first}; pass the directory of the earlier segments with --archive; if they were deleted for good, this checkpoint can no longer be compared: use the trust file of a later verification"
            ),
            // These are about one record, which the sentence of `Failure` names.
            about_a_record => f.write_str(about_a_record.code()),
        }
    }
}

impl std::error::Error for Failure {}
