//! Named Ed25519 keys: what signs a checkpoint or a record, and what an auditor trusts.
//!
//! signed-note identifies a key by its name and a short id made of name, signature type and public key. The id
//! only selects the key to try; trust comes from the public key, which the reader must have received before.
//! Verification is strict (no small-order points, no second encoding of a signature).

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::Signer as _;
use sha2::{Digest as _, Sha256};

use crate::atoms::{decode_base64, encode_base64};
use crate::limits::NAME_BYTES_MAX;
use crate::note::NoteSignature;

/// The first four bytes of SHA-256(name ‖ newline ‖ signature type ‖ public key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 4]);

/// The signature types of signed-note that are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureType {
    Ed25519 = 0x01,
    CosignatureV1 = 0x04,
}

/// Why a key or a key's text is not usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// A name is not empty, has no whitespace, control character or plus, and fits the limit.
    BadName,
    /// Not of the form `name+id+base64`.
    Malformed,
    /// A key of another signature type than the one asked for.
    WrongType { expected: u8, found: u8 },
    /// The id does not belong to this name and key.
    WrongId { expected: KeyId },
    /// The bytes are no Ed25519 public key, or a weak one.
    BadPublicKey,
}

/// A signature does not belong to this message and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSignature;

/// A secret key with the name it signs under. `Debug` shows the name and the id, never the secret.
#[derive(Clone)]
pub struct SigningKey {
    name: String,
    secret: ed25519_dalek::SigningKey,
}

impl SigningKey {
    /// # Errors
    /// When the name is not a key name.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self, KeyError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), secret: ed25519_dalek::SigningKey::from_bytes(seed) })
    }

    /// The secret itself, for the caller that stores it. Whoever has it signs as this key.
    #[must_use]
    pub fn secret_seed(&self) -> [u8; 32] {
        self.secret.to_bytes()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        self.secret.verifying_key().to_bytes()
    }

    /// The public half, as a verifier keeps it.
    #[must_use]
    pub fn verifier(&self) -> VerifierKey {
        VerifierKey(self.named(SignatureType::Ed25519))
    }

    /// Signs bytes as they are. The caller must make sure that they cannot be mistaken for a note.
    #[must_use]
    pub fn sign_raw(&self, message: &[u8]) -> [u8; 64] {
        self.secret.sign(message).to_bytes()
    }

    /// The signature line for a note of this text.
    #[must_use]
    pub fn sign_note_text(&self, text: &str) -> NoteSignature {
        let key = self.named(SignatureType::Ed25519);
        NoteSignature::by(&key, self.sign_raw(text.as_bytes()).to_vec())
    }

    pub(crate) fn named(&self, signature_type: SignatureType) -> NamedKey {
        NamedKey::from_parts(&self.name, self.secret.verifying_key(), signature_type)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("name", &self.name)
            .field("id", &self.verifier().id())
            .finish_non_exhaustive()
    }
}

/// A public key that signs notes (type 0x01). Its text is a vkey: `name+id+base64(0x01 ‖ public key)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey(NamedKey);

impl VerifierKey {
    /// # Errors
    /// When the name or the public key is not usable.
    pub fn new(name: &str, public_key: &[u8; 32]) -> Result<Self, KeyError> {
        NamedKey::new(name, public_key, SignatureType::Ed25519).map(Self)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    #[must_use]
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        self.0.public.to_bytes()
    }

    /// Checks a signature by [`SigningKey::sign_raw`].
    ///
    /// # Errors
    /// When it does not belong to this message and key.
    pub fn verify_raw(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), BadSignature> {
        self.0.verify(message, signature)
    }

    pub(crate) fn named(&self) -> &NamedKey {
        &self.0
    }
}

impl FromStr for VerifierKey {
    type Err = KeyError;

    fn from_str(vkey: &str) -> Result<Self, KeyError> {
        NamedKey::parse(vkey, SignatureType::Ed25519).map(Self)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks a signature over bytes by a public key that has no name, such as one named inside a record.
///
/// # Errors
/// When the key is unusable or the signature does not belong to this message and key.
pub fn verify_raw(public_key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Result<(), BadSignature> {
    let key = ed25519_dalek::VerifyingKey::from_bytes(public_key).map_err(|_| BadSignature)?;
    verify_strictly(&key, message, signature)
}

fn verify_strictly(
    key: &ed25519_dalek::VerifyingKey,
    message: &[u8],
    signature: &[u8; 64],
) -> Result<(), BadSignature> {
    let signature = ed25519_dalek::Signature::from_bytes(signature);
    key.verify_strict(message, &signature).map_err(|_| BadSignature)
}

/// A public key of one signature type under a name; the common part of the two verifier keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedKey {
    pub(crate) name: String,
    pub(crate) id: KeyId,
    pub(crate) public: ed25519_dalek::VerifyingKey,
    signature_type: SignatureType,
}

impl NamedKey {
    pub(crate) fn new(name: &str, public_key: &[u8; 32], signature_type: SignatureType) -> Result<Self, KeyError> {
        check_name(name)?;
        let public = ed25519_dalek::VerifyingKey::from_bytes(public_key).map_err(|_| KeyError::BadPublicKey)?;
        if public.is_weak() {
            return Err(KeyError::BadPublicKey);
        }
        Ok(Self::from_parts(name, public, signature_type))
    }

    fn from_parts(name: &str, public: ed25519_dalek::VerifyingKey, signature_type: SignatureType) -> Self {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(name)
            .chain_update([b'\n', signature_type as u8])
            .chain_update(public.as_bytes())
            .finalize()
            .into();
        let id = KeyId([digest[0], digest[1], digest[2], digest[3]]);
        Self { name: name.to_owned(), id, public, signature_type }
    }

    pub(crate) fn parse(vkey: &str, signature_type: SignatureType) -> Result<Self, KeyError> {
        let (name, rest) = vkey.split_once('+').ok_or(KeyError::Malformed)?;
        let (id, encoded) = rest.split_once('+').ok_or(KeyError::Malformed)?;
        let encoded = decode_base64(encoded).ok_or(KeyError::Malformed)?;
        let (&found, public_key) = encoded.split_first().ok_or(KeyError::Malformed)?;
        if found != signature_type as u8 {
            return Err(KeyError::WrongType { expected: signature_type as u8, found });
        }
        let public_key = public_key.try_into().map_err(|_| KeyError::BadPublicKey)?;
        let key = Self::new(name, public_key, signature_type)?;
        if key.id.to_string() != id {
            return Err(KeyError::WrongId { expected: key.id });
        }
        Ok(key)
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let signature = signature.try_into().map_err(|_| BadSignature)?;
        verify_strictly(&self.public, message, signature)
    }

    /// Name and id together identify the claimed signer of a line.
    pub(crate) fn is_named_by(&self, signature: &NoteSignature) -> bool {
        self.name == signature.name() && self.id == signature.key_id()
    }
}

impl fmt::Display for NamedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut encoded = vec![self.signature_type as u8];
        encoded.extend(self.public.as_bytes());
        write!(f, "{}+{}+{}", self.name, self.id, encode_base64(&encoded))
    }
}

/// signed-note: not empty, no Unicode space, no plus. Notes cannot contain control characters either.
pub(crate) fn check_name(name: &str) -> Result<(), KeyError> {
    let forbidden = |c: char| c.is_whitespace() || c == '+' || c < ' ';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(forbidden) {
        return Err(KeyError::BadName);
    }
    Ok(())
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => write!(
                f,
                "a key name must be 1 to {NAME_BYTES_MAX} bytes without whitespace, control characters or '+'"
            ),
            Self::Malformed => f.write_str("a verifier key has the form name+id+base64"),
            Self::WrongType { expected, found } => {
                write!(f, "expected a key of signature type {expected:#04x}, found {found:#04x}")
            }
            Self::WrongId { expected } => write!(f, "the key's id should be {expected}"),
            Self::BadPublicKey => f.write_str("not a usable Ed25519 public key"),
        }
    }
}

impl std::error::Error for KeyError {}

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the signature does not belong to this message and key")
    }
}

impl std::error::Error for BadSignature {}
