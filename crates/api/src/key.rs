//! The signing keys of the journal.

use crate::time::When;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The signing keys of the journal, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyList {
    /// Name of the journal, under which its checkpoints are signed.
    pub origin: String,
    /// The keys, oldest first.
    pub keys: Vec<SigningKey>,
}

/// A signing key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKey {
    /// Key ID, 8 hexadecimal digits, as in the signatures of checkpoints.
    pub id: String,
    /// Whether the key signs now.
    pub status: KeyStatus,
    /// The key as a trust file names it: the origin, the key ID and the public key in base64, separated by `+`.
    pub verifier_key: String,
    /// Public key (Ed25519), in hexadecimal.
    pub public_key: String,
    /// SHA-256 of the public key, in hexadecimal, to compare by voice.
    pub fingerprint: String,
    /// Size of the smallest checkpoint that the key signs as the key in force; null if that part of the journal was moved
    /// away.
    pub from_size: Option<u64>,
    /// Timestamp of the record that put the key in force; null if that part of the journal was moved away or deleted.
    pub since: Option<When>,
}

/// Whether a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    /// The key signs checkpoints, and decides whether they are valid.
    InForce,
    /// The key was replaced and still signs checkpoints together with its successor.
    StillSigning,
    /// The key was replaced and no longer signs; its secret was removed.
    Retired,
}

impl fmt::Display for KeyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InForce => "in force",
            Self::StillSigning => "replaced, still signing",
            Self::Retired => "retired",
        })
    }
}

/// The key was rotated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRotated {
    /// Sequence number of the record; the new key signs larger sizes.
    pub sequence: u64,
    /// ID of the key that was replaced. It still signs, together with the new key.
    pub old_key: String,
    /// ID of the key in force.
    pub new_key: String,
    /// The new key as a trust file names it.
    pub verifier_key: String,
}

/// A rotation was finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRotationFinished {
    /// IDs of the keys that no longer sign and whose secrets were removed; empty if no rotation was in progress.
    pub retired: Vec<String>,
    /// ID of the key in force.
    pub key: String,
}
