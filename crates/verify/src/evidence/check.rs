//! Whether evidence proves a fork, to someone with a trust file.

use super::{Evidence, RotationRecord};
use crate::trust::Trust;
use leasehold_model::frame::signed_message;
use leasehold_model::{Body, Hash, RawRecord};
use leasehold_tlog::{Checkpoint, CheckpointError, ConsistencyProof, KeyId, Note, NoteError, VerifierKey, verify_raw};
use std::fmt;

/// What the evidence proves: the log signed both, and they cannot belong to one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub origin: String,
    pub smaller: SignedRoot,
    pub larger: SignedRoot,
    /// The root of the larger tree at the smaller size, which is not that of the smaller checkpoint.
    pub other_root: Hash,
    /// The keys that are trusted because a trusted key has signed a rotation to them.
    pub rotated_to: Vec<KeyId>,
}

/// A checkpoint, and the trusted keys that signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRoot {
    pub size: u64,
    pub root: Hash,
    pub keys: Vec<KeyId>,
}

/// Why a file proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoEvidence {
    Malformed(&'static str),
    NewerFormat(u32),
    WrongOrigin {
        expected: String,
        found: String,
    },
    BadRotation(&'static str),
    /// None of the trusted keys has signed the checkpoint of this size.
    NotSigned {
        size: u64,
    },
    BadSignature {
        size: u64,
        key: KeyId,
    },
    /// The checkpoints are in the wrong order.
    Swapped,
    /// The hashes do not lead from the stated root to the root of the larger checkpoint.
    BadProof,
    /// Both can belong to one history.
    Consistent {
        smaller: u64,
        larger: u64,
    },
}

impl NoEvidence {
    /// A code for programs; it does not change from version to version.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::Swapped => "bad_evidence",
            Self::NewerFormat(_) => "newer_format",
            Self::WrongOrigin { .. } => "wrong_origin",
            Self::BadRotation(_) => "bad_rotation",
            Self::NotSigned { .. } => "not_signed",
            Self::BadSignature { .. } => "bad_signature",
            Self::BadProof => "bad_proof",
            Self::Consistent { .. } => "consistent",
        }
    }
}

impl Evidence {
    /// What the evidence proves to someone with this trust file. Its pinned checkpoint and its witnesses are not used.
    ///
    /// # Errors
    /// The first reason why it proves nothing.
    pub fn check(&self, trust: &Trust) -> Result<Conflict, NoEvidence> {
        if self.origin != trust.origin() {
            let (expected, found) = (trust.origin().to_owned(), self.origin.clone());
            return Err(NoEvidence::WrongOrigin { expected, found });
        }
        let mut keys = trust.keys().to_vec();
        let mut rotated_to = Vec::new();
        for rotation in &self.rotations {
            let key = rotation.new_key(&keys, trust.origin())?;
            rotated_to.push(key.id());
            keys.push(key);
        }
        let smaller = signed_root(&self.smaller, &keys, trust.origin())?;
        let larger = signed_root(&self.larger, &keys, trust.origin())?;
        if smaller.size > larger.size {
            return Err(NoEvidence::Swapped);
        }
        let other_root = self.other_root(&smaller, &larger)?;
        // Every journal continues the empty one.
        if other_root == smaller.root || smaller.size == 0 {
            return Err(NoEvidence::Consistent { smaller: smaller.size, larger: larger.size });
        }
        Ok(Conflict { origin: self.origin.clone(), smaller, larger, other_root, rotated_to })
    }

    /// The root that the larger tree has at the smaller size.
    fn other_root(&self, smaller: &SignedRoot, larger: &SignedRoot) -> Result<Hash, NoEvidence> {
        let growth = match (&self.growth, smaller.size == larger.size) {
            (None, true) => return Ok(larger.root),
            (Some(growth), false) => growth,
            (None, false) => return Err(NoEvidence::Malformed("the sizes differ, and the line `root` is missing")),
            (Some(_), true) => return Err(NoEvidence::Malformed("the sizes are equal, and there is a line `root`")),
        };
        let proof = ConsistencyProof { old_size: smaller.size, new_size: larger.size, hashes: growth.hashes.clone() };
        proof.verify(&growth.root, &larger.root).map_err(|_| NoEvidence::BadProof)?;
        Ok(growth.root)
    }
}

fn signed_root(note: &Note, keys: &[VerifierKey], origin: &str) -> Result<SignedRoot, NoEvidence> {
    let size = Checkpoint::from_body(note.text()).map_or(0, |checkpoint| checkpoint.size());
    let checkpoint = Checkpoint::open_note(note, keys, origin).map_err(|error| match error {
        CheckpointError::WrongOrigin { expected, found } => NoEvidence::WrongOrigin { expected, found },
        CheckpointError::Note(NoteError::BadSignature { key_id, .. }) => NoEvidence::BadSignature { size, key: key_id },
        CheckpointError::Note(NoteError::NoKnownSignature) => NoEvidence::NotSigned { size },
        _ => NoEvidence::Malformed("a note is not a checkpoint"),
    })?;
    let signed_by = note.verify(keys).unwrap_or_default();
    Ok(SignedRoot { size, root: *checkpoint.root(), keys: signed_by.iter().map(|key| key.id()).collect() })
}

impl RotationRecord {
    /// The key to which one of the known keys has rotated.
    fn new_key(&self, known: &[VerifierKey], origin: &str) -> Result<VerifierKey, NoEvidence> {
        let bad = NoEvidence::BadRotation;
        let raw = RawRecord { bytes: &self.bytes, signatures: &self.signatures };
        let record = raw.decode().map_err(|_| bad("the record cannot be decoded"))?;
        let Body::KeyRotated(rotated) = &record.body else { return Err(bad("the record is not a key rotation")) };
        if record.signers.as_slice() != [rotated.old_key, rotated.new_key] {
            return Err(bad("it does not name both keys as signers"));
        }
        if !known.iter().any(|key| key.public_key() == rotated.old_key) {
            return Err(bad("its old key is not a trusted one"));
        }
        let message = signed_message(&raw.hash());
        for (index, signer) in record.signers.iter().enumerate() {
            let signature = raw.signature(index).ok_or(bad("a signature is missing"))?;
            verify_raw(signer, &message, &signature).map_err(|_| bad("a signature is invalid"))?;
        }
        VerifierKey::new(origin, &rotated.new_key).map_err(|_| bad("its new key is not a valid key"))
    }
}

impl fmt::Display for NoEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "the file is not valid evidence: {why}"),
            Self::NewerFormat(version) => {
                write!(f, "version {version} is not supported (only version 1 is); use a newer leasehold-verify")
            }
            Self::WrongOrigin { expected, found } => {
                write!(f, "it is about the log {found:?}, but the trust file is for {expected:?}")
            }
            Self::BadRotation(why) => write!(f, "a key rotation in it is invalid: {why}"),
            Self::NotSigned { size } => write!(f, "the checkpoint of size {size} is not signed by any trusted key"),
            Self::BadSignature { size, key } => {
                write!(f, "the checkpoint of size {size} has an invalid signature that claims to be by key {key}")
            }
            Self::Swapped => f.write_str("the first checkpoint is larger than the second"),
            Self::BadProof => {
                f.write_str("its hashes do not lead from the stated root to the root of the larger checkpoint")
            }
            Self::Consistent { smaller, larger } => write!(
                f,
                "the two checkpoints, of {smaller} and {larger} records, do not conflict: both can belong to one history"
            ),
        }
    }
}
impl std::error::Error for NoEvidence {}
