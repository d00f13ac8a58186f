//! One proof that many leaves are in one tree.
//!
//! It has one hash for each largest subtree that holds none of the proved leaves, from left to right. Which subtrees
//! those are follows from the indexes and the size of the tree alone, so that a proof has exactly one form: there are
//! no hashes to leave out or to add. Checking it takes one hash for each leaf and each hash of the proof.

use std::iter::Peekable;

use crate::hash::{Hash, node_hash};
use crate::limits::TREE_SIZE_MAX;
use crate::proof::{ProofError, check_position};
use crate::span::{Span, split};

/// The roots of the subtrees between the proved leaves, from left to right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiproof {
    pub tree_size: u64,
    pub hashes: Vec<Hash>,
}

impl Multiproof {
    /// Holds when all leaves (index, hash as of [`crate::leaf_hash`]) are in the tree with this root.
    ///
    /// # Errors
    /// When the leaves are not in ascending order, when there is none, or when the proof does not hold.
    pub fn verify(&self, leaves: impl IntoIterator<Item = (u64, Hash)>, root: &Hash) -> Result<(), ProofError> {
        let leaves = leaves.into_iter().map(Ok);
        let found = multiproof_root(self.tree_size, leaves, self.hashes.iter().copied())?;
        if found == *root { Ok(()) } else { Err(ProofError::RootMismatch) }
    }
}

/// The root to which leaves and the hashes of a multiproof lead. Both are read once and not kept, so that a long proof
/// needs no more memory than a short one; a leaf that cannot be made ends the check with its own error.
///
/// # Errors
/// As [`Multiproof::verify`], and those of `leaves`.
pub fn multiproof_root<E: From<ProofError>>(
    tree_size: u64,
    leaves: impl IntoIterator<Item = Result<(u64, Hash), E>>,
    hashes: impl IntoIterator<Item = Hash>,
) -> Result<Hash, E> {
    if tree_size > TREE_SIZE_MAX {
        return Err(ProofError::TreeTooLarge { size: tree_size }.into());
    }
    let mut ascent = Ascent { leaves: leaves.into_iter(), next: None, hashes: hashes.into_iter().peekable() };
    ascent.advance(None)?;
    let (first, _) = ascent.next.ok_or(ProofError::NoLeaves)?;
    check_position(first, tree_size)?;
    let root = ascent.root_over(0..tree_size)?;
    if let Some((index, _)) = ascent.next {
        return Err(ProofError::IndexOutsideTree { index, size: tree_size }.into());
    }
    if ascent.hashes.peek().is_some() {
        return Err(ProofError::TooManyHashes.into());
    }
    Ok(root)
}

/// The leaves and hashes that are left, from left to right.
struct Ascent<L, H: Iterator> {
    leaves: L,
    next: Option<(u64, Hash)>,
    hashes: Peekable<H>,
}

impl<E: From<ProofError>, L: Iterator<Item = Result<(u64, Hash), E>>, H: Iterator<Item = Hash>> Ascent<L, H> {
    /// Takes the next leaf, whose index must be above that of the one before.
    fn advance(&mut self, before: Option<u64>) -> Result<(), E> {
        self.next = self.leaves.next().transpose()?;
        match (before, self.next) {
            (Some(before), Some((index, _))) if index <= before => Err(ProofError::Unsorted { before, index }.into()),
            _ => Ok(()),
        }
    }

    /// The root over a span. A span is entered only if it holds a proved leaf, so that the number of steps is bounded by
    /// leaves and hashes; and no deeper than a tree is high.
    fn root_over(&mut self, span: Span) -> Result<Hash, E> {
        let Some((index, leaf)) = self.next.filter(|(index, _)| *index < span.end) else {
            return Ok(self.hashes.next().ok_or(ProofError::TooFewHashes)?);
        };
        debug_assert!(index >= span.start, "leaves come in order");
        if span.end - span.start == 1 {
            self.advance(Some(index))?;
            return Ok(leaf);
        }
        let middle = split(&span);
        let left = self.root_over(span.start..middle)?;
        let right = self.root_over(middle..span.end)?;
        Ok(node_hash(&left, &right))
    }
}

/// Builds a multiproof in one pass over the tree from left to right, with memory for the proof and the tree's edge.
///
/// Which leaves are proved need not be known beforehand. Where none is proved, whole subtrees may be given by their
/// roots.
#[derive(Clone, Debug, Default)]
pub struct MultiproofBuilder {
    size: u64,
    /// The perfect subtrees of the tree so far, largest first, as in [`crate::Frontier`].
    edge: Vec<Part>,
    hashes: Vec<Hash>,
    proves: bool,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    root: Hash,
    /// Its root is in the proof, or it holds a proved leaf.
    settled: bool,
}

impl MultiproofBuilder {
    /// The proof over the empty tree, to which leaves are added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many leaves the tree has so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf that is proved.
    pub fn prove(&mut self, leaf: Hash) {
        self.proves = true;
        // Each part of the edge ends up beside a subtree that holds this leaf.
        for part in self.edge.iter_mut().filter(|part| !part.settled) {
            self.hashes.push(part.root);
            part.settled = true;
        }
        self.absorb(0, Part { root: leaf, settled: true });
    }

    /// Appends a leaf that is not proved.
    pub fn pass(&mut self, leaf: Hash) {
        self.absorb(0, Part { root: leaf, settled: false });
    }

    /// Appends a perfect subtree of 2^level leaves by its root; none of them is proved.
    ///
    /// # Errors
    /// When the tree's size is not a multiple of 2^level, or the tree would grow over the limit.
    pub fn pass_subtree(&mut self, level: u32, root: Hash) -> Result<(), crate::FrontierError> {
        let leaves = 1_u64.checked_shl(level).unwrap_or(u64::MAX);
        if self.size.checked_add(leaves).is_none_or(|size| size > TREE_SIZE_MAX) {
            return Err(crate::FrontierError::TooLarge { size: self.size, added: leaves });
        }
        if !self.size.is_multiple_of(leaves) {
            return Err(crate::FrontierError::Unaligned { size: self.size, level });
        }
        self.absorb(level, Part { root, settled: false });
        Ok(())
    }

    /// The proof, and the root of the tree. The caller compares the root with its checkpoint.
    ///
    /// # Errors
    /// When no leaf is proved.
    pub fn finish(mut self) -> Result<(Multiproof, Hash), ProofError> {
        let last = self.edge.pop().filter(|_| self.proves).ok_or(ProofError::NoLeaves)?;
        let whole = join(&self.edge, last, &mut self.hashes);
        Ok((Multiproof { tree_size: self.size, hashes: self.hashes }, whole.root))
    }

    /// Adds a subtree and merges it with every subtree it completes, as a binary counter carries.
    fn absorb(&mut self, level: u32, part: Part) {
        let carries = (self.size >> level).trailing_ones() as usize;
        let kept = self.edge.len() - carries;
        let merged = join(&self.edge[kept..], part, &mut self.hashes);
        self.edge.truncate(kept);
        self.edge.push(merged);
        self.size += 1 << level;
    }
}

/// Hashes `right` under each of the subtrees to its left, the nearest (the last) first. A subtree without proved leaves
/// goes into the proof when it meets one that has some.
fn join(lefts: &[Part], right: Part, hashes: &mut Vec<Hash>) -> Part {
    lefts.iter().rev().fold(right, |right, left| {
        debug_assert!(left.settled || !right.settled, "a proved leaf settles all that is to its left");
        if left.settled && !right.settled {
            hashes.push(right.root);
        }
        Part { root: node_hash(&left.root, &right.root), settled: left.settled }
    })
}
