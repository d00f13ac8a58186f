//! Making proofs in one pass over the leaves of the journal, with O(log n) memory.
//!
//! A builder takes the sizes and every leaf of the (new) tree in order, and returns the proof with the roots it belongs
//! to. The caller compares those with its checkpoint: a builder does not check its leaves.

use crate::hash::{Hash, empty_root};
use crate::proof::{ConsistencyProof, InclusionProof, ProofError, check_growth, check_position};
use crate::span::{SpanRoots, consistency_spans, inclusion_spans};

/// Builds the proof that one leaf is in a tree.
#[derive(Clone, Debug)]
pub struct InclusionBuilder {
    leaf_index: u64,
    tree_size: u64,
    /// The siblings, and last the leaf itself.
    roots: SpanRoots,
}

impl InclusionBuilder {
    /// # Errors
    /// When the tree has no such leaf.
    pub fn new(leaf_index: u64, tree_size: u64) -> Result<Self, ProofError> {
        check_position(leaf_index, tree_size)?;
        let mut spans = inclusion_spans(leaf_index, tree_size);
        spans.push(leaf_index..leaf_index + 1);
        Ok(Self { leaf_index, tree_size, roots: SpanRoots::new(spans) })
    }

    /// Takes the next leaf, from 0 to the size.
    pub fn push(&mut self, leaf: Hash) {
        self.roots.push(leaf);
    }

    /// The proof, and the root of the tree.
    ///
    /// # Errors
    /// When not exactly as many leaves came as the tree has.
    pub fn finish(self) -> Result<(InclusionProof, Hash), ProofError> {
        check_leaves(&self.roots, self.tree_size)?;
        let mut hashes = self.roots.into_roots();
        let leaf = hashes.pop().unwrap_or_else(empty_root); // `new` put the leaf's span last.
        let proof = InclusionProof { leaf_index: self.leaf_index, tree_size: self.tree_size, hashes };
        let root = proof.root_above(&leaf)?;
        Ok((proof, root))
    }
}

/// Builds the proof that a tree continues an older one.
#[derive(Clone, Debug)]
pub struct ConsistencyBuilder {
    old_size: u64,
    new_size: u64,
    /// The old tree, where the proof leaves it out, comes last.
    roots: SpanRoots,
    old_tree_is_a_span: bool,
}

impl ConsistencyBuilder {
    /// # Errors
    /// When the old tree is the larger one.
    pub fn new(old_size: u64, new_size: u64) -> Result<Self, ProofError> {
        check_growth(old_size, new_size)?;
        let (known, mut spans) = if old_size == 0 {
            // The proof is empty; the only run is the new tree itself, for its root.
            (Some(0..new_size), Vec::new())
        } else {
            consistency_spans(old_size, new_size)
        };
        let old_tree_is_a_span = known.is_some();
        spans.extend(known);
        Ok(Self { old_size, new_size, roots: SpanRoots::new(spans), old_tree_is_a_span })
    }

    /// Takes the next leaf of the new tree, from 0 to its size.
    pub fn push(&mut self, leaf: Hash) {
        self.roots.push(leaf);
    }

    /// The proof, the old root and the new root.
    ///
    /// # Errors
    /// When not exactly as many leaves came as the new tree has.
    pub fn finish(self) -> Result<(ConsistencyProof, Hash, Hash), ProofError> {
        check_leaves(&self.roots, self.new_size)?;
        let (old_size, new_size) = (self.old_size, self.new_size);
        let mut hashes = self.roots.into_roots();
        let outside = if self.old_tree_is_a_span { hashes.pop() } else { None };
        let known = if new_size == 0 { empty_root() } else { outside.unwrap_or_else(empty_root) };
        let proof = ConsistencyProof { old_size, new_size, hashes };
        let (old_root, new_root) = match (old_size, old_size == new_size) {
            (_, true) => (known, known),
            (0, false) => (empty_root(), known),
            (_, false) => proof.roots_above(&known)?,
        };
        Ok((proof, old_root, new_root))
    }
}

fn check_leaves(roots: &SpanRoots, expected: u64) -> Result<(), ProofError> {
    let found = roots.leaves();
    if found == expected { Ok(()) } else { Err(ProofError::WrongLeafCount { expected, found }) }
}
