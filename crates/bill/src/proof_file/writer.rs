//! Writing a proof file.

use super::{FIRST_LINE, Growth, HASH_BYTES, Lists, SIGNATURE_BYTES};
use leasehold_model::codec::{Field, Reader, put_varint};
use leasehold_model::frame::RawRecord;
use leasehold_model::{Hash, InvoiceNo};
use leasehold_tlog::{FrontierError, MultiproofBuilder, ProofError, leaf_hash};

/// Writes a proof file while the journal is read: all records of the tree pass by, some of them go into the file.
#[derive(Clone, Debug)]
pub struct ProofWriter {
    bytes: Vec<u8>,
    last: Option<u64>,
    tree: MultiproofBuilder,
    /// The leaf of a left child that is not in the file. Whether it is proved depends on the record after it.
    undecided: Option<Hash>,
}

impl ProofWriter {
    pub fn new(invoice: InvoiceNo, checkpoint: &str, growth: Option<&Growth>) -> Self {
        let mut bytes = FIRST_LINE.to_vec();
        invoice.put(&mut bytes);
        put_varint(checkpoint.len() as u64, &mut bytes);
        bytes.extend_from_slice(checkpoint.as_bytes());
        Growth::put(growth, &mut bytes);
        Self { bytes, last: None, tree: MultiproofBuilder::new(), undecided: None }
    }

    /// How many records have passed by.
    pub fn size(&self) -> u64 {
        self.tree.size() + u64::from(self.undecided.is_some())
    }

    /// The bytes of the file so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The next record of the journal, which goes into the file. `hash` is its hash.
    ///
    /// # Panics
    /// When the record is not the next one.
    pub fn record(&mut self, raw: &RawRecord<'_>, hash: &Hash) {
        let sequence = self.size();
        let (link, bytes) = raw.bytes.split_at(HASH_BYTES);
        assert_eq!(Reader::new(bytes).varint(), Ok(sequence), "records come in order");
        let signatures = raw.signatures.len() / SIGNATURE_BYTES;
        put_varint((bytes.len() << 2 | signatures) as u64, &mut self.bytes);
        self.bytes.extend_from_slice(bytes);
        if self.last.is_none_or(|last| last + 1 != sequence) {
            self.bytes.extend_from_slice(link);
        }
        self.bytes.extend_from_slice(raw.signatures);
        self.last = Some(sequence);
        if let Some(left) = self.undecided.take() {
            self.tree.prove(left);
        }
        self.tree.prove(leaf_hash(hash));
    }

    /// The next record of the journal, which does not go into the file, by its leaf (see [`leaf_hash`]).
    pub fn pass(&mut self, leaf: Hash) {
        if let Some(left) = self.undecided.take() {
            self.tree.pass(left);
            self.tree.pass(leaf);
        } else if self.tree.size().is_multiple_of(2) {
            self.undecided = Some(leaf);
        } else {
            self.tree.pass(leaf);
        }
    }

    /// The next 2^level records of the journal, none of which goes into the file, by the root over them. The records so
    /// far are a multiple of so many.
    ///
    /// # Errors
    /// When that is not so.
    pub fn pass_subtree(&mut self, level: u32, root: Hash) -> Result<(), FrontierError> {
        if level == 0 {
            self.pass(root);
            return Ok(());
        }
        if self.undecided.is_some() {
            return Err(FrontierError::Unaligned { size: self.size(), level });
        }
        self.tree.pass_subtree(level, root)
    }

    /// The file, and the root to which it leads.
    ///
    /// # Errors
    /// When no record went into the file.
    pub fn finish<B: AsRef<[u8]>>(mut self, lists: &Lists<B>) -> Result<(Vec<u8>, Hash), ProofError> {
        if let Some(left) = self.undecided.take() {
            self.tree.pass(left);
        }
        put_varint(0, &mut self.bytes);
        for list in [&lists.common, &lists.tenant, &lists.claimed_nodes] {
            put_varint(list.as_ref().len() as u64, &mut self.bytes);
            self.bytes.extend_from_slice(list.as_ref());
        }
        let (proof, root) = self.tree.finish()?;
        self.bytes.extend_from_slice(proof.hashes.as_flattened());
        Ok((self.bytes, root))
    }
}
