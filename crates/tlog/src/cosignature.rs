//! Cosignatures (<https://c2sp.org/tlog-cosignature>, Ed25519 "cosignature/v1"): a witness confirms a checkpoint.
//!
//! A cosignature states that, at its time, the checkpoint was the largest head of the log that the witness had seen,
//! and consistent with all earlier ones. With a quorum of witnesses, a log cannot show two histories to two readers.
//! The time is the one that the witness states; it is a parameter here, as all time is.

use std::fmt;
use std::str::FromStr;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::key::{KeyError, KeyId, NamedKey, SignatureType, SigningKey};
use crate::limits::COSIGNATURE_SECONDS_MAX;
use crate::note::{Note, NoteSignature};

/// A witness's public key (type 0x04). Its text is a vkey: `name+id+base64(0x04 ‖ public key)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessKey(NamedKey);

/// A witness's secret key. Each witness needs its own: the signed message does not name the witness.
#[derive(Clone, Debug)]
pub struct WitnessSigningKey(SigningKey);

/// Why a cosignature cannot be created or trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CosignatureError {
    /// The time is after 2^63 - 1 seconds.
    TimeOutOfRange { seconds: u64 },
    /// A witness signs checkpoints and nothing else.
    NotACheckpoint(CheckpointError),
    /// The note carries no cosignature by this witness.
    Missing { name: String },
    /// A cosignature that claims to be by this witness is invalid.
    Bad { name: String },
}

impl WitnessSigningKey {
    /// # Errors
    /// When the name is not a key name.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self, KeyError> {
        SigningKey::from_seed(name, seed).map(Self)
    }

    /// The public half, as a verifier keeps it.
    #[must_use]
    pub fn verifier(&self) -> WitnessKey {
        WitnessKey(self.0.named(SignatureType::CosignatureV1))
    }

    /// The line to add to the checkpoint's note. The caller must have checked that the checkpoint is consistent with
    /// the last one it cosigned.
    ///
    /// # Errors
    /// When the time is out of range.
    pub fn cosign(&self, checkpoint: &Checkpoint, seconds: u64) -> Result<NoteSignature, CosignatureError> {
        if seconds > COSIGNATURE_SECONDS_MAX {
            return Err(CosignatureError::TimeOutOfRange { seconds });
        }
        let signature = self.0.sign_raw(&signed_message(seconds, &checkpoint.body()));
        let blob = [seconds.to_be_bytes().as_slice(), &signature].concat();
        Ok(NoteSignature::by(&self.0.named(SignatureType::CosignatureV1), blob))
    }
}

impl WitnessKey {
    /// # Errors
    /// When the name or the public key is not usable.
    pub fn new(name: &str, public_key: &[u8; 32]) -> Result<Self, KeyError> {
        NamedKey::new(name, public_key, SignatureType::CosignatureV1).map(Self)
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

    /// The second at which this witness cosigned the checkpoint in the note, the latest if it did so more than once.
    ///
    /// The log's own signature is not checked here: [`Checkpoint::open`] does that.
    ///
    /// # Errors
    /// When the note is no checkpoint, this witness did not cosign it, or a cosignature in its name is false.
    pub fn verify(&self, note: &Note) -> Result<u64, CosignatureError> {
        Checkpoint::from_body(note.text()).map_err(CosignatureError::NotACheckpoint)?;
        let mut latest = None;
        for line in note.signatures().iter().filter(|line| self.0.is_named_by(line)) {
            let seconds = self.verify_line(line, note.text());
            latest = latest.max(Some(seconds.ok_or_else(|| CosignatureError::Bad { name: self.name().to_owned() })?));
        }
        latest.ok_or_else(|| CosignatureError::Missing { name: self.name().to_owned() })
    }

    fn verify_line(&self, line: &NoteSignature, body: &str) -> Option<u64> {
        let (seconds, signature) = line.signature().split_first_chunk()?;
        let seconds = u64::from_be_bytes(*seconds);
        if seconds > COSIGNATURE_SECONDS_MAX {
            return None;
        }
        self.0.verify(&signed_message(seconds, body), signature).ok()?;
        Some(seconds)
    }
}

/// The header line separates these signatures from those over notes, should a key ever be used for both.
fn signed_message(seconds: u64, body: &str) -> Vec<u8> {
    format!("cosignature/v1\ntime {seconds}\n{body}").into_bytes()
}

impl FromStr for WitnessKey {
    type Err = KeyError;

    fn from_str(vkey: &str) -> Result<Self, KeyError> {
        NamedKey::parse(vkey, SignatureType::CosignatureV1).map(Self)
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CosignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeOutOfRange { seconds } => {
                write!(f, "{seconds} seconds is after the last second a cosignature has")
            }
            Self::NotACheckpoint(error) => write!(f, "not a checkpoint: {error}"),
            Self::Missing { name } => write!(f, "the checkpoint is not cosigned by {name}"),
            Self::Bad { name } => write!(f, "the cosignature in the name of {name} is false"),
        }
    }
}

impl std::error::Error for CosignatureError {}
