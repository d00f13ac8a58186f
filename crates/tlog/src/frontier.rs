//! The right edge of the tree: all that is needed to append leaves and to know the root.
//!
//! A tree of n leaves splits into perfect subtrees, one for each set bit of n, largest first. Their roots
//! are the frontier: at most 62 hashes, however long the journal grows.

use std::fmt;

use crate::hash::{Hash, empty_root, leaf_hashes, node_hash, perfect_root};
use crate::limits::TREE_SIZE_MAX;

/// Leaves of the subtrees that are hashed as a whole.
const BLOCK_LEVEL: u32 = 6;
const BLOCK: usize = 1 << BLOCK_LEVEL;

/// An RFC 6962 tree that remembers only the roots of its perfect subtrees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// One root per set bit of `size`, largest subtree first.
    parts: Vec<Hash>,
}

/// Why a frontier could not be restored or extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontierError {
    /// A frontier has one part per set bit of its size.
    WrongPartCount { size: u64, expected: u32, found: usize },
    /// The tree is, or would become, larger than [`TREE_SIZE_MAX`].
    TooLarge { size: u64, added: u64 },
    /// A perfect subtree of 2^level leaves can only start at a multiple of 2^level.
    Unaligned { size: u64, level: u32 },
}

impl Frontier {
    /// The tree with no leaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores a frontier from what [`Frontier::size`] and [`Frontier::parts`] gave.
    ///
    /// # Errors
    /// When the number of parts does not fit the size, or the size is over the limit.
    pub fn from_parts(size: u64, parts: Vec<Hash>) -> Result<Self, FrontierError> {
        if size > TREE_SIZE_MAX {
            return Err(FrontierError::TooLarge { size, added: 0 });
        }
        let expected = size.count_ones();
        if parts.len() != expected as usize {
            return Err(FrontierError::WrongPartCount { size, expected, found: parts.len() });
        }
        Ok(Self { size, parts })
    }

    /// Appends one leaf, as [`crate::leaf_hash`] made it.
    ///
    /// The limit is not checked here: pushing 2^62 leaves one at a time would take centuries.
    #[inline]
    pub fn push(&mut self, leaf: Hash) {
        self.absorb(0, leaf);
    }

    /// Appends the leaves of records, given by the hashes of the records, which are overwritten. Hashing many leaves
    /// together is faster than one after the other.
    pub fn push_records(&mut self, record_hashes: &mut [Hash]) {
        leaf_hashes(record_hashes);
        let to_boundary = self.size.next_multiple_of(BLOCK as u64) - self.size;
        let to_boundary = usize::try_from(to_boundary).expect("less than a block");
        let (before, aligned) = record_hashes.split_at_mut(record_hashes.len().min(to_boundary));
        before.iter().for_each(|leaf| self.push(*leaf));
        let mut blocks = aligned.chunks_exact_mut(BLOCK);
        for block in &mut blocks {
            self.absorb(BLOCK_LEVEL, perfect_root(block));
        }
        blocks.into_remainder().iter().for_each(|leaf| self.push(*leaf));
    }

    /// Appends a perfect subtree of 2^level leaves by its root, so that halves hashed by several threads can be joined.
    ///
    /// # Errors
    /// When the tree's size is not a multiple of 2^level, or the tree would grow over the limit.
    pub fn push_subtree(&mut self, level: u32, root: Hash) -> Result<(), FrontierError> {
        let leaves = 1_u64.checked_shl(level).unwrap_or(u64::MAX);
        if self.size.checked_add(leaves).is_none_or(|size| size > TREE_SIZE_MAX) {
            return Err(FrontierError::TooLarge { size: self.size, added: leaves });
        }
        if !self.size.is_multiple_of(leaves) {
            return Err(FrontierError::Unaligned { size: self.size, level });
        }
        self.absorb(level, root);
        Ok(())
    }

    /// Appends a whole other tree, part by part.
    ///
    /// # Errors
    /// As [`Frontier::push_subtree`]; nothing is appended then. A left side whose size is a multiple of
    /// the right side's largest subtree always fits.
    pub fn append(&mut self, right: &Frontier) -> Result<(), FrontierError> {
        let mut joined = self.clone();
        let mut remaining = right.size;
        for part in &right.parts {
            // There is one part per set bit, so the highest remaining bit is this part's level.
            let level = remaining.ilog2();
            joined.push_subtree(level, *part)?;
            remaining ^= 1 << level;
        }
        *self = joined;
        Ok(())
    }

    /// How many leaves the tree has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the perfect subtrees, largest first: one for each set bit of the size.
    #[must_use]
    pub fn parts(&self) -> &[Hash] {
        &self.parts
    }

    /// The Merkle tree hash of all leaves so far.
    #[must_use]
    pub fn root(&self) -> Hash {
        match self.parts.split_last() {
            None => empty_root(),
            Some((smallest, larger)) => join_leftwards(larger, *smallest),
        }
    }

    /// Adds a subtree of `level` and merges it with every subtree it completes, as a binary counter carries.
    #[inline]
    fn absorb(&mut self, level: u32, root: Hash) {
        let carries = (self.size >> level).trailing_ones() as usize;
        let kept = self.parts.len() - carries;
        let merged = join_leftwards(&self.parts[kept..], root);
        self.parts.truncate(kept);
        self.parts.push(merged);
        self.size += 1 << level;
        debug_assert_eq!(self.parts.len(), self.size.count_ones() as usize);
    }
}

/// Hashes `right` under each of the subtrees to its left, the nearest (the last) first.
#[inline]
fn join_leftwards(lefts: &[Hash], right: Hash) -> Hash {
    lefts.iter().rev().fold(right, |right, left| node_hash(left, &right))
}

impl fmt::Display for FrontierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongPartCount { size, expected, found } => {
                write!(f, "a tree of {size} leaves has {expected} frontier hashes, found {found}")
            }
            Self::TooLarge { size, added } => {
                write!(f, "a tree of {size} leaves plus {added} is over the limit of {TREE_SIZE_MAX}")
            }
            Self::Unaligned { size, level } => {
                write!(f, "a subtree of level {level} cannot follow {size} leaves")
            }
        }
    }
}

impl std::error::Error for FrontierError {}
