//! That the journal has only grown since an earlier size: for readers who know a checkpoint of that size.

use leasehold_model::Hash;
use leasehold_model::codec::{DecodeError, Reader, put_varint};
use leasehold_tlog::limits::PROOF_HASHES_MAX;
use leasehold_tlog::{ConsistencyProof, ProofError};

/// The root of the journal at an earlier size, and the hashes that lead from it to the root of the checkpoint (RFC 6962,
/// section 2.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// At least 1.
    pub from: u64,
    pub root: Hash,
    pub hashes: Vec<Hash>,
}

impl Growth {
    /// The size, which is 0 where there is nothing; then the root, and the hashes with their number.
    pub(super) fn put(growth: Option<&Self>, out: &mut Vec<u8>) {
        let Some(Self { from, root, hashes }) = growth else { return put_varint(0, out) };
        put_varint(*from, out);
        out.extend_from_slice(root);
        put_varint(hashes.len() as u64, out);
        out.extend_from_slice(hashes.as_flattened());
    }

    pub(super) fn get(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let from = r.varint()?;
        if from == 0 {
            return Ok(None);
        }
        let root = *r.array_ref()?;
        let count = r.count(PROOF_HASHES_MAX)?;
        let hashes = (0..count).map(|_| r.array_ref().copied()).collect::<Result<_, _>>()?;
        Ok(Some(Self { from, root, hashes }))
    }

    /// Whether the journal at the earlier size is the beginning of the one with this size and root.
    pub(super) fn verify(&self, size: u64, root: &Hash) -> Result<(), ProofError> {
        let proof = ConsistencyProof { old_size: self.from, new_size: size, hashes: self.hashes.clone() };
        proof.verify(&self.root, root)
    }
}
