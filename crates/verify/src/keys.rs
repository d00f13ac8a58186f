//! The key in force over time: given by the trust file, changed by rotation records, and used to check every signed
//! checkpoint (journal-format.md, "Keys over time").

use crate::failure::{Document, Why};
use crate::trust::Trust;
use leasehold_tlog::{Checkpoint, CheckpointError, KeyId, Note, NoteError, VerifierKey};

/// A change of the signing key that both keys signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The rotation record; checkpoints of a larger size are signed by `new_key`.
    pub sequence: u64,
    pub old_key: KeyId,
    pub new_key: KeyId,
}

/// The key in force at the size reached so far.
pub(crate) struct KeyHistory<'a> {
    trust: &'a Trust,
    in_force: Option<VerifierKey>,
    /// Every key that was in force, in order.
    pub(crate) seen: Vec<KeyId>,
    pub(crate) rotations: Vec<Rotation>,
}

impl<'a> KeyHistory<'a> {
    pub(crate) fn new(trust: &'a Trust) -> Self {
        Self { trust, in_force: None, seen: Vec::new(), rotations: Vec::new() }
    }

    pub(crate) fn in_force(&self) -> Option<&VerifierKey> {
        self.in_force.as_ref()
    }

    fn enforce(&mut self, key: VerifierKey) {
        if !self.seen.contains(&key.id()) {
            self.seen.push(key.id());
        }
        self.in_force = Some(key);
    }

    /// The genesis record names the first key, which must also be in the trust file.
    pub(crate) fn begin(&mut self, public_key: &[u8; 32]) -> Result<(), Why> {
        let key = VerifierKey::new(self.trust.origin(), public_key)
            .map_err(|_| Why::BadGenesis("the key of the genesis record is not a valid key"))?;
        if !self.trust.keys().contains(&key) {
            return Err(Why::UnknownKey { key: key.id() });
        }
        self.enforce(key);
        Ok(())
    }

    /// For a journal whose first segments are missing: the trusted key that signed the tree file is in force. During a
    /// rotation the key before it signs too, after it: that the old key is trusted is then not enough, because the record
    /// by which it names its successor is not here.
    pub(crate) fn begin_signed(&mut self, note: &Note, document: Document) -> Result<(), Why> {
        self.open(note, document)?;
        let of_the_log = note.signatures().iter().find(|signature| signature.name() == self.trust.origin());
        let first = of_the_log.expect("a verified note is signed under the origin's name").key_id();
        let key = self.trust.keys().iter().find(|key| key.id() == first).ok_or(Why::UnknownKey { key: first })?;
        self.enforce(key.clone());
        Ok(())
    }

    pub(crate) fn rotate(&mut self, sequence: u64, old_key: &[u8; 32], new_key: &[u8; 32]) -> Result<(), Why> {
        if new_key == old_key {
            return Err(Why::BadRotation("the new key equals the old key"));
        }
        let in_force = self.in_force.as_ref().filter(|key| key.public_key() == *old_key);
        let old_key = in_force.ok_or(Why::BadRotation("the old key is not the one in force"))?.id();
        let key = VerifierKey::new(self.trust.origin(), new_key)
            .map_err(|_| Why::BadRotation("the new key is not a valid key"))?;
        self.rotations.push(Rotation { sequence, old_key, new_key: key.id() });
        self.enforce(key);
        Ok(())
    }

    /// The keys that may sign a checkpoint of the size reached so far. Before the first record no key is in force, and
    /// any key of the trust file may.
    pub(crate) fn may_sign(&self) -> &[VerifierKey] {
        self.in_force.as_ref().map_or(self.trust.keys(), std::slice::from_ref)
    }

    /// Accepts a checkpoint of the size reached so far if the key in force signed it.
    pub(crate) fn open(&self, note: &Note, document: Document) -> Result<Checkpoint, Why> {
        let in_force = self.in_force.as_ref().map(VerifierKey::id);
        Checkpoint::open_note(note, self.may_sign(), self.trust.origin())
            .map_err(|error| why_not(error, document, in_force))
    }
}

fn why_not(error: CheckpointError, document: Document, in_force: Option<KeyId>) -> Why {
    match error {
        CheckpointError::Note(NoteError::BadSignature { key_id, .. }) => Why::BadSignature { document, key: key_id },
        CheckpointError::Note(NoteError::NoKnownSignature) => Why::NotSigned { document, key: in_force },
        CheckpointError::WrongOrigin { expected, found } => Why::WrongOrigin { expected, found: Some(found) },
        error => Why::BadCheckpoint { document, why: error.to_string() },
    }
}
