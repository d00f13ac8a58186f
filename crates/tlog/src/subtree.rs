//! Proofs from the roots of subtrees, without going through all leaves.
//!
//! Every hash of a proof is the root over one span of leaves, and every span is a row of perfect subtrees, each beginning
//! at a multiple of its own size. With the roots of such subtrees any proof can be built; [`SubtreeRoots`]
//! keeps those above a certain size, so that only a few leaves have to be read for the rest.

use std::ops::Range;

use crate::frontier::Frontier;
use crate::hash::{Hash, empty_root, node_hash};
use crate::proof::{ConsistencyProof, InclusionProof, ProofError, check_growth, check_position};
use crate::span::{Span, consistency_spans, inclusion_spans};

/// A perfect subtree: 2^level leaves, beginning at a multiple of 2^level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    pub level: u32,
    /// The number of subtrees of the same level to its left.
    pub index: u64,
}

impl Subtree {
    /// The leaves under it. Those of a proof lie within the tree, so that nothing overflows.
    #[must_use]
    pub fn leaves(&self) -> Range<u64> {
        self.index << self.level..(self.index + 1) << self.level
    }
}

/// The roots of all complete subtrees of one level and above, as they are completed from left to right.
#[derive(Clone, Debug)]
pub struct SubtreeRoots {
    level: u32,
    /// Of `level`, of `level + 1`, and so on.
    roots: Vec<Vec<Hash>>,
}

impl SubtreeRoots {
    /// An empty list. `level` is the lowest level to keep.
    #[must_use]
    pub fn new(level: u32) -> Self {
        Self { level, roots: vec![Vec::new()] }
    }

    /// The number of leaves under the roots kept.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        (self.roots[0].len() as u64) << self.level
    }

    /// Appends the next subtree of the lowest level by its root.
    pub fn push(&mut self, root: Hash) {
        let mut completed = root;
        for height in 0.. {
            if self.roots.len() == height {
                self.roots.push(Vec::new());
            }
            let row = &mut self.roots[height];
            let left = if row.len() % 2 == 1 { row.last().copied() } else { None };
            row.push(completed);
            match left {
                None => return,
                Some(left) => completed = node_hash(&left, &completed),
            }
        }
    }

    /// The root of a subtree, if it is kept.
    #[must_use]
    pub fn get(&self, subtree: Subtree) -> Option<Hash> {
        let row = usize::try_from(subtree.level.checked_sub(self.level)?).ok()?;
        self.roots.get(row)?.get(usize::try_from(subtree.index).ok()?).copied()
    }
}

impl InclusionProof {
    /// The proof that the tree has this leaf, and the tree's root, from the roots of subtrees that `root_of` returns.
    ///
    /// The leaf itself is requested as a subtree of level 0. As with [`crate::InclusionBuilder`], the caller compares
    /// the root with its checkpoint.
    ///
    /// # Errors
    /// When the tree has no such leaf, or `root_of` fails.
    pub fn from_subtrees<E: From<ProofError>>(
        leaf_index: u64,
        tree_size: u64,
        mut root_of: impl FnMut(Subtree) -> Result<Hash, E>,
    ) -> Result<(Self, Hash), E> {
        check_position(leaf_index, tree_size)?;
        let spans = inclusion_spans(leaf_index, tree_size).into_iter();
        let hashes = spans.map(|span| span_root(span, &mut root_of)).collect::<Result<_, E>>()?;
        let leaf = root_of(Subtree { level: 0, index: leaf_index })?;
        let proof = Self { leaf_index, tree_size, hashes };
        let root = proof.root_above(&leaf)?;
        Ok((proof, root))
    }
}

impl ConsistencyProof {
    /// The proof that a tree continues an older one, with the old root and the new one, from the roots of subtrees
    /// that `root_of` returns. The caller compares the roots with its checkpoints.
    ///
    /// # Errors
    /// When the old tree is the larger one, or `root_of` fails.
    pub fn from_subtrees<E: From<ProofError>>(
        old_size: u64,
        new_size: u64,
        mut root_of: impl FnMut(Subtree) -> Result<Hash, E>,
    ) -> Result<(Self, Hash, Hash), E> {
        check_growth(old_size, new_size)?;
        if old_size == 0 || old_size == new_size {
            let new_root = span_root(0..new_size, &mut root_of)?;
            let old_root = if old_size == 0 { empty_root() } else { new_root };
            return Ok((Self { old_size, new_size, hashes: Vec::new() }, old_root, new_root));
        }
        let (known, spans) = consistency_spans(old_size, new_size);
        let hashes = spans.into_iter().map(|span| span_root(span, &mut root_of)).collect::<Result<_, E>>()?;
        // If the proof leaves the old tree out, the path begins at its root; otherwise this hash is not used.
        let begin = known.map_or(Ok(empty_root()), |span| span_root(span, &mut root_of))?;
        let proof = Self { old_size, new_size, hashes };
        let (old_root, new_root) = proof.roots_above(&begin)?;
        Ok((proof, old_root, new_root))
    }
}

/// The root over one span of a proof: its subtrees, from the largest to the smallest, follow from its size in binary.
fn span_root<E>(span: Span, root_of: &mut impl FnMut(Subtree) -> Result<Hash, E>) -> Result<Hash, E> {
    let mut row = Frontier::new();
    let mut at = span.start;
    while at < span.end {
        let level = (span.end - at).ilog2();
        debug_assert!(at.is_multiple_of(1 << level), "a span begins at a multiple of what it holds");
        let root = root_of(Subtree { level, index: at >> level })?;
        row.push_subtree(level, root).expect("each subtree is smaller than the one before it");
        at += 1 << level;
    }
    Ok(row.root())
}
