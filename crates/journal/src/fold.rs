//! Verifying records one after the other: decoded strictly, linked, hashed into chain and tree.
//!
//! Recovery and the checkpointer both go through here, so that what is signed is what a restart will accept.

use crate::error::Failure;
use crate::keyring::Keys;
use crate::provider::{Head, Position};
use leasehold_model::body::{Body, Converted, Genesis, KeyRotated, Started};
use leasehold_model::frame::signed_message;
use leasehold_model::record::Hash;
use leasehold_model::{DecodeError, FORMAT_VERSION, Instant, RawBatch, RawRecord, Record};
use leasehold_tlog::{Checkpoint, SigningKey, leaf_hash};
use std::fmt;

/// The kinds of records that bring a key, an epoch or a format version into force.
const BRINGS_INTO_FORCE: [u32; 4] = [Genesis::KIND, KeyRotated::KIND, Started::KIND, Converted::KIND];

/// A verified stretch of the journal, from where it began to where it stands.
#[derive(Clone, Debug)]
pub struct Fold {
    origin: String,
    position: Position,
    /// The key that signs for the position, where it is known.
    key: Option<[u8; 32]>,
    stamp: Instant,
    /// The epoch of the last `started` record; 0 before the first.
    epoch: u64,
    /// The format version in which records are written here, where it is known.
    format_version: Option<u32>,
}

/// A record that breaks a rule of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub sequence: u64,
    pub flaw: Flaw,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    Undecodable(DecodeError),
    /// It does not carry the hash of the record before it.
    Link,
    Sequence {
        found: u64,
    },
    StampWentBack,
    /// The first record, and only the first, is a genesis record, of this origin and a known format.
    Genesis(&'static str),
    /// A key rotation names the key in force and another one, and is signed by both.
    Rotation,
    /// A signature is not by the key that the record names.
    Signature,
    /// A `started` record whose epoch is not greater than that of the one before.
    Epoch {
        before: u64,
        found: u64,
    },
    /// A `converted` record where the format version does not change, or to a version that does not exist.
    Conversion,
}

impl Flaw {
    /// Stable, for programs; the words of `leasehold-verify` for the same things.
    pub fn code(&self, sequence: u64) -> &'static str {
        match self {
            Self::Undecodable(_) => "undecodable",
            Self::Link => "broken_link",
            Self::Sequence { found } if *found > sequence => "gap",
            Self::Sequence { .. } => "out_of_order",
            Self::StampWentBack => "stamp_goes_back",
            Self::Genesis(_) => "bad_genesis",
            Self::Rotation => "bad_rotation",
            Self::Signature => "bad_record_signature",
            Self::Epoch { .. } => "epoch_repeated",
            Self::Conversion => "bad_conversion",
        }
    }
}

impl Fold {
    /// Goes on from a position. What signs there may not be known yet.
    pub fn new(origin: &str, position: Position, key: Option<[u8; 32]>) -> Self {
        assert_eq!(position.head.size, position.tree.size(), "chain and tree are of one size");
        Self { origin: origin.to_owned(), position, key, stamp: Instant(0), epoch: 0, format_version: None }
    }

    pub fn position(&self) -> &Position {
        &self.position
    }
    pub fn size(&self) -> u64 {
        self.position.head.size
    }
    /// The key that signs checkpoints of this size.
    pub fn key(&self) -> Option<[u8; 32]> {
        self.key
    }
    /// Tells it the key in force, learnt from a signature.
    pub fn set_key(&mut self, key: [u8; 32]) {
        self.key = Some(key);
    }
    /// Tells it the stamp of the last record before the position.
    pub(crate) fn set_stamp(&mut self, stamp: Instant) {
        self.stamp = stamp;
    }
    /// The stamp of the last record folded.
    pub fn stamp(&self) -> Instant {
        self.stamp
    }

    /// The epoch of the last `started` record folded; 0 if there was none.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }
    /// Sets the epoch of the last start before the position.
    pub(crate) fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }
    /// The format version of the last record, where it is known.
    pub(crate) fn format_version(&self) -> Option<u32> {
        self.format_version
    }
    /// Sets the format version of the records before the position.
    pub(crate) fn set_format_version(&mut self, version: u32) {
        self.format_version = Some(version);
    }

    /// A signed checkpoint of the position, and the key in force, which signed it first. During a rotation the key
    /// before it signs too.
    pub(crate) fn sign(&self, keys: &Keys) -> Result<(String, SigningKey), Failure> {
        // Before the genesis record no key is in force; the oldest will be the one it pins.
        let signing = match self.key {
            Some(public_key) => keys.signing(&public_key),
            None => Some(vec![keys.oldest()]),
        };
        let signing = signing.ok_or_else(|| Failure::mismatch("the key in force is not in the keyring"))?;
        let checkpoint =
            Checkpoint::new(&self.origin, self.size(), self.position.tree.root()).map_err(Failure::mismatch)?;
        Ok((checkpoint.sign_by(&signing), signing[0].clone()))
    }

    /// Takes the next record, or says what is wrong with it and stays where it was.
    pub fn take(&mut self, raw: RawRecord<'_>) -> Result<Hash, Broken> {
        let hash = self.link(raw)?;
        self.position.tree.push(leaf_hash(&hash));
        Ok(hash)
    }

    /// Takes the records of a batch. Of one with a record that breaks a rule, those before it are taken.
    ///
    /// # Panics
    /// When a frame of the batch is damaged: whoever reads a batch looks at its frames first.
    pub fn take_batch(&mut self, batch: RawBatch<'_>) -> Result<(), Broken> {
        let mut hashes = Vec::with_capacity(batch.count() as usize);
        let mut broken = Ok(());
        for raw in batch.records() {
            match self.link(raw.expect("the frames were looked at when the batch was read")) {
                Ok(hash) => hashes.push(hash),
                Err(flaw) => {
                    broken = Err(flaw);
                    break;
                }
            }
        }
        self.position.tree.push_records(&mut hashes);
        broken
    }

    /// Checks the next record and adds it to the chain, but not to the tree.
    #[inline]
    fn link(&mut self, raw: RawRecord<'_>) -> Result<Hash, Broken> {
        let sequence = self.size();
        // Hashed first: the processor decodes while it hashes, since neither depends on the other.
        let hash = raw.hash();
        self.check(raw).map_err(|flaw| Broken { sequence, flaw })?;
        self.position.head = Head { size: sequence + 1, hash };
        Ok(hash)
    }

    #[inline]
    fn check(&mut self, raw: RawRecord<'_>) -> Result<(), Flaw> {
        let outline = raw.validate().map_err(Flaw::Undecodable)?;
        // Before the link: of a record that stands in the wrong place this says more.
        if outline.sequence != self.size() {
            return Err(Flaw::Sequence { found: outline.sequence });
        }
        if raw.prev_hash() != self.position.head.hash {
            return Err(Flaw::Link);
        }
        if outline.stamp < self.stamp {
            return Err(Flaw::StampWentBack);
        }
        // Few records have to be built to be checked: the others bring nothing into force, and are not signed.
        if outline.sequence == 0 || outline.signers > 0 || BRINGS_INTO_FORCE.contains(&outline.kind) {
            let record = raw.decode().map_err(Flaw::Undecodable)?;
            let key = self.key_after(&record)?;
            check_signatures(&record, raw)?;
            self.note_start(&record.body)?;
            self.key = key;
        }
        self.stamp = outline.stamp;
        Ok(())
    }

    /// Follows the epochs and the format version.
    fn note_start(&mut self, body: &Body) -> Result<(), Flaw> {
        if let Body::Genesis(genesis) = body {
            self.format_version = Some(genesis.format_version);
        }
        if let Body::Started(started) = body {
            if started.epoch <= self.epoch {
                return Err(Flaw::Epoch { before: self.epoch, found: started.epoch });
            }
            self.epoch = started.epoch;
        }
        if let Body::Converted(converted) = body {
            let next = self.format_version.is_none_or(|before| before < converted.format_version);
            if !next || converted.format_version != FORMAT_VERSION {
                return Err(Flaw::Conversion);
            }
            self.format_version = Some(converted.format_version);
        }
        Ok(())
    }

    fn key_after(&self, record: &Record) -> Result<Option<[u8; 32]>, Flaw> {
        match &record.body {
            Body::Genesis(_) if record.sequence != 0 => Err(Flaw::Genesis("a second genesis record")),
            Body::Genesis(_) if record.continues => {
                Err(Flaw::Genesis("the genesis record says that it continues another one"))
            }
            Body::Genesis(genesis) if genesis.origin.as_str() != self.origin => {
                Err(Flaw::Genesis("the genesis record is of another origin"))
            }
            Body::Genesis(genesis) if !(1..=FORMAT_VERSION).contains(&genesis.format_version) => {
                Err(Flaw::Genesis("the genesis record names another format version"))
            }
            Body::Genesis(genesis) => Ok(Some(genesis.public_key)),
            _ if record.sequence == 0 => Err(Flaw::Genesis("the first record is not a genesis record")),
            Body::KeyRotated(rotation) => {
                check_rotation(rotation, record, self.key)?;
                Ok(Some(rotation.new_key))
            }
            _ => Ok(self.key),
        }
    }
}

/// The part of the rule that holds before the record is signed.
pub(crate) fn check_rotation(rotation: &KeyRotated, record: &Record, in_force: Option<[u8; 32]>) -> Result<(), Flaw> {
    let by_both = record.signers.as_slice() == [rotation.old_key, rotation.new_key];
    let from_the_one_in_force = in_force.is_none_or(|key| key == rotation.old_key);
    let to_another = rotation.new_key != rotation.old_key;
    if by_both && from_the_one_in_force && to_another { Ok(()) } else { Err(Flaw::Rotation) }
}

/// Few records name signers; of those that do, each signature is checked. Their number is part of decoding.
fn check_signatures(record: &Record, raw: RawRecord<'_>) -> Result<(), Flaw> {
    if record.signers.is_empty() {
        return Ok(());
    }
    let message = signed_message(&raw.hash());
    for (index, key) in record.signers.iter().enumerate() {
        let signature = raw.signature(index).ok_or(Flaw::Signature)?;
        leasehold_tlog::verify_raw(key, &message, &signature).map_err(|_| Flaw::Signature)?;
    }
    Ok(())
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(error) => write!(f, "the record cannot be decoded: {error}"),
            Self::Link => f.write_str("the record does not carry the hash of the one before it"),
            Self::Sequence { found } => write!(f, "the record says it is number {found}"),
            Self::StampWentBack => f.write_str("the record's stamp lies before the last one's"),
            Self::Genesis(why) => f.write_str(why),
            Self::Rotation => f.write_str("the key rotation is not from the key in force to another, signed by both"),
            Self::Signature => f.write_str("a signature of the record is not by the key it names"),
            Self::Epoch { before, found } => {
                write!(f, "the journal was started in epoch {found} after epoch {before}; epochs must grow")
            }
            Self::Conversion => {
                f.write_str("the record converts the journal to a format version that cannot follow here")
            }
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequence = self.sequence;
        match self.flaw {
            Flaw::Sequence { found } if found > sequence => {
                write!(f, "record {sequence} is missing: record {found} stands in its place")
            }
            Flaw::Sequence { found } => write!(f, "record {found} stands where record {sequence} belongs"),
            Flaw::Link if sequence > 0 => {
                let before = sequence - 1;
                write!(f, "record {sequence} does not carry the hash of record {before}: one of the two was altered")
            }
            ref flaw => write!(f, "record {sequence}: {flaw}"),
        }
    }
}
impl std::error::Error for Broken {}
