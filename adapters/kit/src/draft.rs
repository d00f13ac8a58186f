//! A usage record before it is known whether it is new, known or a correction.

use leasehold_client::api::NewUsageRecord;
use sha2::{Digest, Sha256};

#[derive(Clone, Debug)]
pub struct Draft {
    /// The ID of its first version. It follows from what the record is about, and never from when it was read.
    pub key: String,
    /// Everything but the ID and what it supersedes.
    pub record: NewUsageRecord,
}

impl Draft {
    /// A fingerprint of the content, to notice that it changed.
    pub(crate) fn digest(&self) -> String {
        let text = serde_json::to_vec(&self.record).expect("a wire type has string keys only");
        Sha256::digest(&text)[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The ID of a version: later ones have their number at the end.
    pub(crate) fn id(&self, version: u32) -> String {
        if version == 1 { self.key.clone() } else { format!("{}/{version}", self.key) }
    }

    /// The record as this version of its chain, superseding the one before.
    pub(crate) fn version(&self, version: u32) -> NewUsageRecord {
        let supersedes = (version > 1).then(|| self.id(version - 1));
        NewUsageRecord { id: Some(self.id(version)), supersedes, ..self.record.clone() }
    }
}
