//! The journal over HTTP: records, checkpoints and proofs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Records in order, as `docs/reference/json-view.md` describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordPage {
    /// The records, in order of their sequence numbers.
    pub records: Vec<Value>,
    /// Pass as `after` for the next page: the last sequence that was looked at.
    pub next_after: u64,
    /// The number of records that are durable now.
    pub size: u64,
}

/// The newest checkpoint: a C2SP tlog-checkpoint in a signed note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Name under which the journal signs.
    pub origin: String,
    /// Number of records that the checkpoint covers.
    pub size: u64,
    /// The root of the tree, in base64.
    pub root: String,
    /// The signed note: origin, size, root and signatures.
    pub note: String,
}

/// A record is in the tree that the checkpoint signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InclusionProof {
    /// Sequence number of the record.
    pub sequence: u64,
    /// The record's hash, in hex.
    pub record_hash: String,
    /// Hashes from the leaf to the root, in base64.
    pub path: Vec<String>,
    /// The checkpoint that the proof leads to.
    pub checkpoint: Checkpoint,
    /// The same as a C2SP tlog-proof, for files. It carries the record's own bytes if the caller may see the record.
    pub proof: String,
}

/// The tree of `from` records is the beginning of the tree of `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsistencyProof {
    /// Size of the older tree, in records.
    pub from: u64,
    /// Size of the newer tree, in records.
    pub to: u64,
    /// The root of the tree of `from` records, in base64: compare it with the one seen before.
    pub from_root: String,
    /// The root of the tree of `to` records, in base64.
    pub to_root: String,
    /// Hashes in the order of RFC 6962, in base64.
    pub path: Vec<String>,
    /// The newest checkpoint.
    pub checkpoint: Checkpoint,
    /// The same as the request of a C2SP tlog-witness, for files; where the proof leads to the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Header of an answer with sealed batches: the sequence of its first record.
pub const FIRST_SEQUENCE: &str = "leasehold-first-sequence";
/// Header of an answer with sealed batches: what to pass as `from` next.
pub const NEXT_FROM: &str = "leasehold-next-from";
/// Header of an answer with sealed batches: the size of the newest checkpoint; there is more as long as the next `from`
/// is smaller.
pub const CHECKPOINT_SIZE: &str = "leasehold-checkpoint-size";
