//! Why the answer is no: the first thing that is wrong, where it lies, and a sentence about it.

use leasehold_model::{Damage, DecodeError};
use leasehold_tlog::KeyId;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The first thing that is wrong. Prints as one sentence.
#[derive(Debug)]
pub struct Failure {
    /// The record it is about, where one can be named.
    pub sequence: Option<u64>,
    pub segment: Option<u32>,
    /// Byte in the segment's file where the record, or the batch around it, begins.
    pub offset: Option<u64>,
    pub file: Option<PathBuf>,
    pub why: Why,
    /// The size up to which a signed checkpoint did agree with the records; 0 if none did.
    pub agreed_up_to: u64,
}

/// A signed checkpoint that the records are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    Anchor,
    /// The tree file of this segment.
    Tree(u32),
    /// The one pinned in the trust file.
    Pinned,
}

/// What is wrong. [`Why::code`] is stable; the sentences are not.
#[derive(Debug)]
pub enum Why {
    /// The files cannot be read: nothing is known of the journal.
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
    /// Not signed by the key in force, or not by a trusted key where that is all there is to go by.
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
}

impl Why {
    /// A word for programs; it does not change from version to version.
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
            Self::RootMismatch { .. } => "root_mismatch",
            Self::HeadMismatch { .. } => "head_mismatch",
            Self::AnchorAhead { .. } => "anchor_ahead",
            Self::AnchorTooOld { .. } => "anchor_too_old",
            Self::TreeAhead { .. } => "tree_ahead",
            Self::PinnedMismatch { .. } => "pinned_mismatch",
            Self::PinnedAhead { .. } => "pinned_ahead",
            Self::PinnedOutOfReach { .. } => "pinned_out_of_reach",
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

    /// Whether nothing was found out, as opposed to something bad.
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

/// Names the record, where there is one to name.
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
            Why::AlteredRecord => write!(f, "{record} was altered: its hash is not the one that {next} carries"),
            Why::BrokenLink => {
                write!(f, "{record} does not carry the hash of the record before it: its link was altered")
            }
            Why::Gap { found } => write!(f, "{record} is missing: record {found} stands in its place"),
            Why::OutOfOrder { found } => write!(f, "record {found} stands where {record} belongs"),
            Why::StampGoesBack => write!(f, "{record} is stamped before the record before it"),
            Why::Undecodable(error) => write!(f, "{record} cannot be decoded: {error}"),
            Why::StrippedSignature => write!(f, "{record} names keys that signed it, and a signature is not there"),
            Why::StraySignature => write!(f, "{record} carries a signature by nobody it names"),
            Why::BadRecordSignature => write!(f, "{record} carries a signature that is not by the key it names"),
            Why::BadGenesis(why) => write!(f, "{record}: {why}"),
            Why::BadRotation(why) => write!(f, "{record}, a change of the signing key, does not count: {why}"),
            Why::BadConversion(why) => write!(f, "{record}: {why}"),
            Why::EpochRepeated { before, found } => {
                write!(f, "{record} starts epoch {found} after epoch {before}: epochs must grow")
            }
            Why::Damaged(damage) => match self.sequence {
                Some(sequence) => write!(f, "record {sequence} or the batch around it is damaged: {damage}"),
                None => write!(f, "the journal is damaged: {damage}"),
            },
            why => why.fmt(f),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::NotAFile => f.write_str("something that is not a file lies in its place"),
            Self::NoJournal => f.write_str(
                "there is no journal here; name the data folder, the one that holds `journal` and `anchor`",
            ),
            Self::NoAnchor => f.write_str(
                "the anchor is missing: without it nothing shows how far the journal reached; bring back the file `anchor`",
            ),
            Self::BadAnchor(why) => write!(f, "the anchor cannot be used: {why}"),
            Self::NewerFormat(version) => {
                write!(f, "it is of format version {version}, and this program knows versions 1 and 2; use a newer leasehold-verify")
            }
            Self::WrongOrigin { expected, found: Some(found) } => {
                write!(f, "this is the journal of {found:?}; the trust file is about {expected:?}")
            }
            Self::WrongOrigin { expected, found: None } => {
                write!(f, "this is not a journal of {expected:?}, the origin in the trust file")
            }
            Self::MissingSegment(number) => {
                write!(f, "segment {number} is missing; if it was moved away, name its folder with --archive")
            }
            Self::EmptySegment => f.write_str("the segment holds no record, and a later one was begun"),
            Self::BadSegmentHeader(why) => write!(f, "the segment's header is damaged: {why}"),
            Self::MissingTreeFile => f.write_str(
                "earlier segments were moved away and the tree file of the first one here is missing; bring it back, or name the folder of the earlier segments with --archive",
            ),
            Self::BadTreeFile(why) => write!(f, "the tree file cannot be used: {why}"),
            Self::UnknownKey { key } => write!(
                f,
                "the journal begins with key {key}, which the trust file does not hold; ask the operator for it over another channel and compare, before you add it"
            ),
            Self::BadSignature { document, key } => {
                write!(f, "the checkpoint in {document} bears a false signature in the name of key {key}")
            }
            Self::NotSigned { document, key: Some(key) } => {
                write!(f, "the checkpoint in {document} is not signed by key {key}, the one in force at its size")
            }
            Self::NotSigned { document, key: None } => {
                write!(f, "the checkpoint in {document} is not signed by any key in the trust file")
            }
            Self::BadCheckpoint { document, why } => write!(f, "the checkpoint in {document} is not in order: {why}"),
            Self::BadCosignature { witness } => {
                write!(f, "the anchor's checkpoint bears a false cosignature in the name of {witness}")
            }
            Self::RootMismatch { document, size } => write!(
                f,
                "the first {size} records do not lead to the root that was signed for them in {document}: some record was altered and those after it hashed anew"
            ),
            Self::HeadMismatch { document } => {
                write!(f, "the hash of the last record that {document} covers is not the one written there")
            }
            Self::AnchorAhead { anchor, records } => write!(
                f,
                "the journal was cut: {anchor} records were signed for in the anchor, and only {records} are here"
            ),
            Self::AnchorTooOld { anchor, first } => write!(
                f,
                "the anchor, of size {anchor}, is older than the first record here, number {first}: it was put back, or name the folder of the earlier segments with --archive"
            ),
            Self::TreeAhead { tree, records } => write!(
                f,
                "the journal was cut: a tree file was signed for {tree} records, and only {records} are here"
            ),
            Self::PinnedMismatch { size } => write!(
                f,
                "the journal was rewritten or forked: its first {size} records are not those of the checkpoint in the trust file"
            ),
            Self::PinnedAhead { pinned, records } => write!(
                f,
                "the journal was cut: the trust file holds a checkpoint of {pinned} records, and only {records} are here"
            ),
            Self::PinnedOutOfReach { pinned, first } => write!(
                f,
                "the checkpoint in the trust file, of size {pinned}, lies before the first record here, number {first}; name the folder of the earlier segments with --archive"
            ),
            // These are about one record, and the sentence names it: see `Failure`.
            about_a_record => f.write_str(about_a_record.code()),
        }
    }
}

impl std::error::Error for Failure {}
