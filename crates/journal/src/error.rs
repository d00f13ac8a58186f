//! What can go wrong, each with what a person needs to act.

use crate::fold::Broken;
use leasehold_model::frame::MissingKey;
use leasehold_tlog::KeyId;
use std::sync::Arc;
use std::{fmt, io};

/// The failure that stopped the journal. Every later append answers with the same one.
#[derive(Clone, Debug)]
pub struct Failure(Arc<io::Error>);

impl Failure {
    pub(crate) fn new(doing: &str, error: &io::Error) -> Self {
        let message = format!("{doing}: {error}");
        Self(Arc::new(io::Error::new(error.kind(), message)))
    }
    pub(crate) fn mismatch(what: impl fmt::Display) -> Self {
        let message = format!("what was read back is not what was appended: {what}");
        Self(Arc::new(io::Error::new(io::ErrorKind::InvalidData, message)))
    }
    pub(crate) fn displaced() -> Self {
        Self(Arc::new(io::Error::other(
            "the data directory or its lock was moved, removed or replaced while the journal was open; \
             put it back before the next start",
        )))
    }
    pub(crate) fn closed() -> Self {
        Self(Arc::new(io::Error::other("the journal was closed")))
    }
    pub fn kind(&self) -> io::ErrorKind {
        self.0.kind()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for Failure {}

/// Why a batch was not appended.
#[derive(Clone, Debug)]
pub enum AppendError {
    /// There is no room until [`crate::Journal::prepare`] makes some. Nothing was written.
    Full,
    /// The batch is larger than a segment can hold. Nothing was written.
    TooLarge { bytes: u64, bytes_max: u64 },
    /// A record names a signer whose key is not in the keyring. Nothing was written.
    MissingKey(MissingKey),
    /// The record would not stand when read back. Nothing was written.
    Refused { sequence: u64, why: &'static str },
    /// A write or sync failed, now or earlier: whether this batch is durable is not known, and the process must stop.
    Failed(Failure),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "the journal has no room: the disk is full, or no segment was prepared"),
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "a batch of {bytes} bytes does not fit a segment, which holds {bytes_max}")
            }
            Self::MissingKey(missing) => missing.fmt(f),
            Self::Refused { sequence, why } => write!(f, "record {sequence} is refused: {why}"),
            Self::Failed(failure) => write!(f, "the journal has stopped: {failure}"),
        }
    }
}
impl std::error::Error for AppendError {}

/// Why nothing could be allocated ahead. It may be tried again.
#[derive(Debug)]
pub enum PrepareError {
    /// The disk, or a quota on it, is full.
    Full(io::Error),
    Io(io::Error),
    /// The journal has stopped or was closed.
    Failed(Failure),
}

impl fmt::Display for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(error) => {
                write!(f, "no room for the next segment: {error}; free some space, or move old segments away")
            }
            Self::Io(error) => write!(f, "the next segment could not be allocated: {error}"),
            Self::Failed(failure) => write!(f, "the journal has stopped: {failure}"),
        }
    }
}
impl std::error::Error for PrepareError {}

/// Why records could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The segment was moved away or deleted.
    Archived {
        segment: u32,
    },
    /// What was durable is not what it was.
    Corrupt {
        segment: u32,
        offset: u64,
        sequence: u64,
        why: String,
    },
    /// A record does not follow from the one before.
    BrokenChain {
        sequence: u64,
    },
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archived { segment } => {
                write!(
                    f,
                    "segment {segment:08} was moved away or deleted; if it was moved, bring it back to read its records"
                )
            }
            Self::Corrupt { segment, offset, sequence, why } => {
                write!(f, "segment {segment:08} is damaged at offset {offset} (record {sequence}): {why}")
            }
            Self::BrokenChain { sequence } => {
                write!(f, "record {sequence} does not carry the hash of the record before it")
            }
            Self::Io(error) => write!(f, "the journal cannot be read: {error}"),
        }
    }
}
impl std::error::Error for ReadError {}
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a snapshot could not be kept or looked for.
#[derive(Debug)]
pub enum SnapshotError {
    /// Snapshots are kept of checkpointed positions only: only those can be proved.
    NotCheckpointed {
        size: u64,
    },
    /// The first record, whose hash is part of a snapshot, cannot be read.
    Read(ReadError),
    Io(io::Error),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCheckpointed { size } => {
                write!(f, "a snapshot of size {size} is ahead of the newest checkpoint")
            }
            Self::Read(error) => write!(f, "snapshots: the first record cannot be read: {error}"),
            Self::Io(error) => write!(f, "snapshots: {error}"),
        }
    }
}
impl std::error::Error for SnapshotError {}
impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why the keyring could not be loaded, saved or extended.
#[derive(Debug)]
pub enum KeyringError {
    /// The origin cannot name a key (see C2SP signed-note).
    BadOrigin(leasehold_tlog::KeyError),
    /// The file is not a keyring.
    Malformed,
    /// Others may read the file.
    TooOpen {
        mode: u32,
    },
    Io(io::Error),
}

impl fmt::Display for KeyringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadOrigin(error) => write!(f, "the origin cannot name a key: {error}"),
            Self::Malformed => write!(f, "the key file is not a keyring of this version"),
            Self::TooOpen { mode } => write!(
                f,
                "the key file has mode {mode:03o}, so others may read it; run chmod 600 on it, and consider it known"
            ),
            Self::Io(error) => write!(f, "the key file: {error}"),
        }
    }
}
impl std::error::Error for KeyringError {}
impl From<io::Error> for KeyringError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a folder was not opened as a journal. Nothing in it was changed, unless it says so.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    InUse,
    /// There is no journal here yet.
    NoJournal,
    /// There is one already, so none is created.
    JournalExists,
    BadOptions(&'static str),
    /// There are records but no anchor.
    MissingAnchor,
    /// Neither slot of the anchor can be used.
    BadAnchor {
        why: String,
    },
    /// The anchor signs for more records than there are: the end was cut off, or an old copy was put back.
    AnchorAhead {
        anchor: u64,
        journal: u64,
    },
    /// The records up to the anchor's size are not those it signs for.
    AnchorMismatch {
        size: u64,
        what: &'static str,
    },
    /// Damage that is not the torn end of the last batch.
    Corrupt {
        segment: u32,
        offset: u64,
        sequence: u64,
        why: String,
    },
    /// What follows the anchor from this offset on was not written by this daemon, or that cannot be shown.
    UnprovedTail {
        segment: u32,
        offset: u64,
        /// Whole records, and bytes.
        records: u64,
        bytes: u64,
        why: Unproved,
    },
    /// The anchor's epoch cannot be counted on.
    EpochsExhausted,
    NewerFormat {
        path: String,
        version: u32,
    },
    ForeignFile {
        path: String,
    },
    WrongOrigin {
        path: String,
        expected: String,
    },
    /// A segment is neither here nor covered by a tree file and a snapshot.
    MissingSegment {
        segment: u32,
    },
    MissingKey {
        key: KeyId,
    },
    /// The journal here is not a collector's copy.
    NotACopy,
    /// A collector's copy that was changed by somebody else.
    BadCopy {
        why: String,
    },
    Io {
        doing: String,
        error: io::Error,
    },
}

/// Why records after the anchor do not count (SEMANTICS 11, "Local authenticity").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproved {
    /// The last stop was clean, so there should be none.
    CleanStop,
    /// Their MAC is not by this directory's secret, which did authenticate the anchor.
    WrongMac,
    /// The directory is of format version 1, whose records carry no MAC.
    Version1,
    /// The anchor is not by the secret at hand either: the secret was lost or replaced.
    SecretLost,
}

impl Unproved {
    fn reason(self) -> &'static str {
        match self {
            Self::CleanStop => "the last stop was clean, so nothing may follow the anchor",
            Self::WrongMac => "its MAC is not by local.secret",
            Self::Version1 => "the directory is of format version 1, which has no MACs",
            Self::SecretLost => "local.secret is not the one that this directory was written with",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::CleanStop | Self::WrongMac => {
                "someone else wrote it: keep a copy, find out who, and start with --cut-unproved-tail to discard it"
            }
            Self::Version1 | Self::SecretLost => {
                "if the daemon was stopped by a crash, start with --accept-unproved-tail to accept it; \
                 --cut-unproved-tail discards it; both are sealed in the journal"
            }
        }
    }
}

impl OpenError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io { doing, error }
    }

    pub(crate) fn broken(segment: u32, offset: u64, broken: &Broken) -> Self {
        Self::Corrupt { segment, offset, sequence: broken.sequence, why: broken.flaw.to_string() }
    }

    /// Whether what is here contradicts what was written or signed for, rather than being absent or unreadable.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::MissingAnchor
            | Self::BadAnchor { .. }
            | Self::AnchorAhead { .. }
            | Self::AnchorMismatch { .. }
            | Self::Corrupt { .. }
            | Self::UnprovedTail { .. }
            | Self::EpochsExhausted
            | Self::WrongOrigin { .. }
            | Self::BadCopy { .. } => true,
            Self::InUse
            | Self::NoJournal
            | Self::JournalExists
            | Self::BadOptions(_)
            | Self::NewerFormat { .. }
            | Self::ForeignFile { .. }
            | Self::MissingSegment { .. }
            | Self::MissingKey { .. }
            | Self::NotACopy
            | Self::Io { .. } => false,
        }
    }

    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse => "journal_in_use",
            Self::NoJournal => "journal_not_found",
            Self::JournalExists => "journal_exists",
            Self::BadOptions(_) => "journal_bad_options",
            Self::MissingAnchor => "journal_anchor_missing",
            Self::BadAnchor { .. } => "journal_anchor_damaged",
            Self::AnchorAhead { .. } => "journal_cut_off",
            Self::AnchorMismatch { .. } => "journal_anchor_mismatch",
            Self::Corrupt { .. } => "journal_corrupt",
            Self::UnprovedTail { .. } => "journal_tail_unproved",
            Self::EpochsExhausted => "journal_anchor_damaged",
            Self::NewerFormat { .. } => "journal_newer_format",
            Self::ForeignFile { .. } => "journal_foreign_file",
            Self::WrongOrigin { .. } => "journal_wrong_origin",
            Self::MissingSegment { .. } => "journal_segment_missing",
            Self::MissingKey { .. } => "journal_key_missing",
            Self::NotACopy => "not_a_copy",
            Self::BadCopy { .. } => "copy_damaged",
            Self::Io { .. } => "journal_io",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => write!(f, "another process has the journal open; stop it first"),
            Self::NoJournal => write!(f, "there is no journal here; create one, or check the path"),
            Self::JournalExists => write!(f, "there is a journal here already; open it, or choose another folder"),
            Self::BadOptions(why) => f.write_str(why),
            Self::MissingAnchor => write!(
                f,
                "there are records but no anchor, so nothing says how many there should be; restore the anchor from where the segments came from"
            ),
            Self::BadAnchor { why } => write!(
                f,
                "neither slot of the anchor can be used ({why}); restore the anchor from a copy of this folder"
            ),
            Self::AnchorAhead { anchor, journal } => write!(
                f,
                "the anchor signs for {anchor} records and only {journal} are here: the end is missing; restore the newer segments"
            ),
            Self::AnchorMismatch { size, what } => write!(
                f,
                "the first {size} records do not have the {what} that the anchor signs for: segments or anchor were changed or exchanged; run leasehold-verify, and restore from a copy"
            ),
            Self::Corrupt { segment, offset, sequence, why } => write!(
                f,
                "journal/{segment:08}.seg is damaged at offset {offset} (record {sequence}): {why}; this is not the torn end of a crash; restore the segment from a copy"
            ),
            Self::UnprovedTail { segment, offset, records, bytes, why } => write!(
                f,
                "journal/{segment:08}.seg contains {bytes} bytes ({records} records) after the anchor, from offset \
                 {offset} on, that cannot be authenticated: {}; {}",
                why.reason(),
                why.advice()
            ),
            Self::EpochsExhausted => {
                write!(f, "the anchor contains the last possible epoch; restore the anchor from a copy")
            }
            Self::NewerFormat { path, version } => write!(
                f,
                "{path} has format version {version}, which is newer than this program; use the program that wrote it"
            ),
            Self::ForeignFile { path } => write!(f, "{path} does not belong here; move it away"),
            Self::WrongOrigin { path, expected } => {
                write!(f, "{path} belongs to another origin than {expected}; check the configured origin and folder")
            }
            Self::MissingSegment { segment } => write!(
                f,
                "journal/{segment:08}.seg is missing, and no tree file and usable snapshot replace it; bring it back, or add its directory to journal.archive"
            ),
            Self::MissingKey { key } => {
                write!(f, "key {key} signs for the journal and is not in the keyring; restore the key file")
            }
            Self::NotACopy => write!(f, "there is a journal here that no collector made; name an empty folder"),
            Self::BadCopy { why } => write!(
                f,
                "the copy is not as it was left: {why}; run leasehold-verify on it, and begin a new one in another folder"
            ),
            Self::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}
impl std::error::Error for OpenError {}

/// Why what was fetched from an origin does not fit the copy of its journal. All but the last say that the origin, or
/// somebody on the way, does not tell what it told before.
#[derive(Debug)]
pub enum Misfit {
    Record(Broken),
    /// The genesis record pins a key that is not trusted.
    UnknownKey {
        key: KeyId,
    },
    /// The key in force is not a usable one.
    BadKey,
    /// The checkpoint is of another journal.
    WrongOrigin {
        found: String,
    },
    /// The key in force has not signed the checkpoint.
    NotSigned {
        size: u64,
        key: KeyId,
    },
    /// The checkpoint bears a false signature in the name of the key.
    BadSignature {
        size: u64,
        key: KeyId,
    },
    BadCheckpoint {
        size: u64,
        why: String,
    },
    /// The records do not lead to the root that was signed. The first `proved` ones agree with an earlier checkpoint.
    Root {
        size: u64,
        proved: u64,
    },
    /// The copy could not be written.
    Failed(Failure),
}

impl Misfit {
    /// Stable, for programs; the words of `leasehold-verify` for the same things.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Record(broken) => broken.flaw.code(broken.sequence),
            Self::UnknownKey { .. } => "unknown_key",
            Self::BadKey => "bad_genesis",
            Self::WrongOrigin { .. } => "wrong_origin",
            Self::NotSigned { .. } => "not_signed",
            Self::BadSignature { .. } => "bad_signature",
            Self::BadCheckpoint { .. } => "bad_checkpoint",
            Self::Root { .. } => "root_mismatch",
            Self::Failed(_) => "copy_failed",
        }
    }

    /// The record it is about, where one can be named.
    pub fn sequence(&self) -> Option<u64> {
        match self {
            Self::Record(broken) => Some(broken.sequence),
            Self::UnknownKey { .. } | Self::BadKey => Some(0),
            _ => None,
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(broken) => broken.fmt(f),
            Self::UnknownKey { key } => write!(
                f,
                "the journal begins with key {key}, which the trust file does not hold; ask the operator for it over another channel and compare, before you add it"
            ),
            Self::BadKey => write!(f, "record 0: the key that it pins is not a usable key"),
            Self::WrongOrigin { found } => write!(f, "the checkpoint is of the journal of {found:?}"),
            Self::NotSigned { size, key } => {
                write!(f, "the checkpoint of {size} records is not signed by key {key}, the one in force there")
            }
            Self::BadSignature { size, key } => {
                write!(f, "the checkpoint of {size} records bears a false signature in the name of key {key}")
            }
            Self::BadCheckpoint { size, why } => write!(f, "the checkpoint of {size} records is not in order: {why}"),
            Self::Root { size, proved } if size == proved => {
                write!(f, "the {size} records that were collected are not those that the checkpoint signs for")
            }
            Self::Root { size, proved: 0 } => {
                write!(f, "the first {size} records do not lead to the root that the checkpoint signs for them")
            }
            Self::Root { size, proved } => {
                write!(f, "records {proved} to {} do not lead to the root that the checkpoint signs for them", size - 1)
            }
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}
impl std::error::Error for Misfit {}
