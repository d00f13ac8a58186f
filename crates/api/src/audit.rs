//! The journal over HTTP: records, checkpoints and proofs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Records in order, as `docs/reference/json-view.md` describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordPage {
    pub records: Vec<Value>,
    /// Pass as `after` for the next page: the last sequence that was looked at.
    pub next_after: u64,
    /// The number of records that are durable now.
    pub size: u64,
}

/// The newest checkpoint: a C2SP tlog-checkpoint in a signed note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    pub origin: String,
    pub size: u64,
    /// The root of the tree, in base64.
    pub root: String,
    pub note: String,
}

/// A record is in the tree that the checkpoint signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InclusionProof {
    pub sequence: u64,
    /// The record's hash, in hex.
    pub record_hash: String,
    /// Hashes from the leaf to the root, in base64.
    pub path: Vec<String>,
    pub checkpoint: Checkpoint,
    /// The same as a C2SP tlog-proof, for files.
    pub proof: String,
}

/// The tree of `from` records is the beginning of the tree of `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsistencyProof {
    pub from: u64,
    pub to: u64,
    /// Hashes in the order of RFC 6962, in base64.
    pub path: Vec<String>,
    pub checkpoint: Checkpoint,
}
