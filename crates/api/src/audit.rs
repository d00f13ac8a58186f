//! The journal over HTTP: records, checkpoints and proofs.

use crate::record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Records in order, as `docs/reference/json-view.md` describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordPage {
    /// The records, in order of their sequence numbers.
    #[schemars(with = "Vec<Record>")]
    pub records: Vec<Value>,
    /// Pass as `cursor` to get the next page. Absent on the last page. A page may have fewer items than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The last sequence number that was scanned. Pass as `after` to get what is recorded later.
    pub next_after: u64,
    /// Number of durable records.
    pub size: u64,
}

/// The newest checkpoint: a C2SP tlog-checkpoint in a signed note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Name of the journal, under which its checkpoints are signed.
    pub origin: String,
    /// Number of records that the checkpoint covers.
    pub size: u64,
    /// Root hash of the Merkle tree, in base64.
    pub root: String,
    /// The signed note: origin, size, root and signatures.
    pub note: String,
}

/// Proof that a record is part of the tree that the checkpoint signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InclusionProof {
    /// Sequence number of the record.
    pub sequence: u64,
    /// Hash of the record, in hexadecimal.
    pub record_hash: String,
    /// Hashes from the leaf to the root, in base64.
    pub path: Vec<String>,
    /// The checkpoint that the proof leads to.
    pub checkpoint: Checkpoint,
    /// The proof as a C2SP tlog-proof file. It contains the bytes of the record if the caller may see the record.
    pub proof: String,
}

/// Proof that the tree of `from` records is the beginning of the tree of `to` records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsistencyProof {
    /// Size of the older tree, in records.
    pub from: u64,
    /// Size of the newer tree, in records.
    pub to: u64,
    /// Root hash of the tree of `from` records, in base64. Compare it with the root hash that was seen before.
    pub from_root: String,
    /// Root hash of the tree of `to` records, in base64.
    pub to_root: String,
    /// Hashes of the proof in the order of RFC 6962, in base64.
    pub path: Vec<String>,
    /// The newest checkpoint.
    pub checkpoint: Checkpoint,
    /// The proof as a C2SP tlog-witness request, for files. Absent unless `to` is the size of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Response header of sealed batches: the sequence number of the first record.
pub const FIRST_SEQUENCE: &str = "leasehold-first-sequence";
/// Response header of sealed batches: the value to pass as `from` next.
pub const NEXT_FROM: &str = "leasehold-next-from";
/// Response header of sealed batches: the size of the newest checkpoint. More batches follow as long as the next `from`
/// is smaller.
pub const CHECKPOINT_SIZE: &str = "leasehold-checkpoint-size";
