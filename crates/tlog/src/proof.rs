//! Checking that a record is in a tree, and that a tree is a continuation of an older one.
//!
//! The algorithms are those of RFC 9162, 2.1.3.2 and 2.1.4.2, over the same trees as RFC 6962. A proof's sizes
//! prove nothing by themselves: an inclusion proof can hold for a neighbouring size under the same root. Take
//! sizes and roots from one signed checkpoint, as [`crate::InclusionFile`] and [`crate::ConsistencyFile`] do.

use std::fmt;

use crate::hash::{Hash, empty_root, node_hash};
use crate::limits::TREE_SIZE_MAX;

/// The siblings on the way from one leaf to the root, from the leaf upwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof {
    pub leaf_index: u64,
    pub tree_size: u64,
    pub hashes: Vec<Hash>,
}

/// The hashes that connect the root of an old tree with the root of a new one that begins with the same leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyProof {
    pub old_size: u64,
    pub new_size: u64,
    pub hashes: Vec<Hash>,
}

/// Why a proof does not hold, or cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofError {
    TreeTooLarge {
        size: u64,
    },
    IndexOutsideTree {
        index: u64,
        size: u64,
    },
    /// The "old" tree is larger than the new one: a log never shrinks.
    TreeShrank {
        old_size: u64,
        new_size: u64,
    },
    TooFewHashes,
    TooManyHashes,
    /// The leaf and the proof lead to another root.
    RootMismatch,
    /// The proof does not lead to the old root: the old tree is not a beginning of this one.
    OldRootMismatch,
    /// The proof does not lead to the new root.
    NewRootMismatch,
    /// A builder was given more or fewer leaves than its tree has.
    WrongLeafCount {
        expected: u64,
        found: u64,
    },
    /// A multiproof proves at least one leaf.
    NoLeaves,
    /// The leaves of a multiproof come in ascending order, each once.
    Unsorted {
        before: u64,
        index: u64,
    },
}

impl InclusionProof {
    /// Holds when `leaf` (see [`crate::leaf_hash`]) is at `leaf_index` of the tree with this root.
    ///
    /// # Errors
    /// Names the part of the proof that does not hold.
    pub fn verify(&self, leaf: &Hash, root: &Hash) -> Result<(), ProofError> {
        if self.root_above(leaf)? == *root { Ok(()) } else { Err(ProofError::RootMismatch) }
    }

    /// The root to which the leaf and the proof lead.
    pub(crate) fn root_above(&self, leaf: &Hash) -> Result<Hash, ProofError> {
        check_position(self.leaf_index, self.tree_size)?;
        let mut climb = Climb::new(self.leaf_index, self.tree_size - 1);
        let mut subtree = *leaf;
        for sibling in &self.hashes {
            subtree = match climb.step()? {
                Side::Left => node_hash(sibling, &subtree),
                Side::Right => node_hash(&subtree, sibling),
            };
        }
        climb.finish()?;
        Ok(subtree)
    }
}

impl ConsistencyProof {
    /// Holds when the tree with `new_root` begins with all leaves of the tree with `old_root`, in order.
    ///
    /// An empty old tree, or two trees of one size, need no hashes and must have none.
    ///
    /// # Errors
    /// Names the part of the proof that does not hold.
    pub fn verify(&self, old_root: &Hash, new_root: &Hash) -> Result<(), ProofError> {
        check_growth(self.old_size, self.new_size)?;
        if self.old_size == 0 && *old_root != empty_root() {
            return Err(ProofError::OldRootMismatch);
        }
        if self.old_size == 0 && self.new_size > 0 {
            // Every tree continues the empty one; there is nothing to lead to the new root from.
            return if self.hashes.is_empty() { Ok(()) } else { Err(ProofError::TooManyHashes) };
        }
        if self.old_size == self.new_size {
            return match (self.hashes.is_empty(), old_root == new_root) {
                (false, _) => Err(ProofError::TooManyHashes),
                (true, false) => Err(ProofError::NewRootMismatch),
                (true, true) => Ok(()),
            };
        }
        let (old, new) = self.roots_above(old_root)?;
        if old != *old_root {
            return Err(ProofError::OldRootMismatch);
        }
        if new != *new_root {
            return Err(ProofError::NewRootMismatch);
        }
        Ok(())
    }

    /// The old and the new root to which the proof leads, for 0 < old size < new size.
    ///
    /// `old_root` is where it starts when the old tree is perfect, for then the proof leaves it out.
    pub(crate) fn roots_above(&self, old_root: &Hash) -> Result<(Hash, Hash), ProofError> {
        let (start, rest) = if self.old_size.is_power_of_two() {
            (old_root, self.hashes.as_slice())
        } else {
            self.hashes.split_first().ok_or(ProofError::TooFewHashes)?
        };
        // The old tree's last perfect subtree is a node of both trees: the climb begins there.
        let whole = (self.old_size - 1).trailing_ones();
        let mut climb = Climb::new((self.old_size - 1) >> whole, (self.new_size - 1) >> whole);
        let (mut old, mut new) = (*start, *start);
        for sibling in rest {
            match climb.step()? {
                Side::Left => {
                    old = node_hash(sibling, &old);
                    new = node_hash(sibling, &new);
                }
                Side::Right => new = node_hash(&new, sibling),
            }
        }
        climb.finish()?;
        Ok((old, new))
    }
}

/// The side of the next sibling on the path to the root.
enum Side {
    Left,
    Right,
}

/// The path from a node to the root: `fn` and `sn` of RFC 9162.
struct Climb {
    node: u64,
    last: u64,
}

impl Climb {
    fn new(node: u64, last: u64) -> Self {
        Self { node, last }
    }

    fn step(&mut self) -> Result<Side, ProofError> {
        if self.last == 0 {
            return Err(ProofError::TooManyHashes);
        }
        let is_right_child = self.node & 1 == 1;
        let side = if is_right_child || self.node == self.last {
            if !is_right_child {
                // The last node of a level without a partner rises as it is, up to where it is a right child.
                let rise = self.node.trailing_zeros();
                self.raise(rise);
            }
            Side::Left
        } else {
            Side::Right
        };
        self.raise(1);
        Ok(side)
    }

    fn raise(&mut self, levels: u32) {
        self.node >>= levels;
        self.last >>= levels;
    }

    fn finish(&self) -> Result<(), ProofError> {
        if self.last == 0 { Ok(()) } else { Err(ProofError::TooFewHashes) }
    }
}

/// There is a leaf `index` in a tree of `size`.
pub(crate) fn check_position(index: u64, size: u64) -> Result<(), ProofError> {
    if size > TREE_SIZE_MAX {
        return Err(ProofError::TreeTooLarge { size });
    }
    if index >= size {
        return Err(ProofError::IndexOutsideTree { index, size });
    }
    Ok(())
}

/// A tree of `old_size` can have grown to `new_size`.
pub(crate) fn check_growth(old_size: u64, new_size: u64) -> Result<(), ProofError> {
    if new_size > TREE_SIZE_MAX {
        return Err(ProofError::TreeTooLarge { size: new_size });
    }
    if old_size > new_size {
        return Err(ProofError::TreeShrank { old_size, new_size });
    }
    Ok(())
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TreeTooLarge { size } => write!(f, "a tree of {size} leaves is over the limit of {TREE_SIZE_MAX}"),
            Self::IndexOutsideTree { index, size } => {
                write!(f, "there is no leaf {index} in a tree of {size}")
            }
            Self::TreeShrank { old_size, new_size } => {
                write!(f, "the tree shrank from {old_size} to {new_size} leaves")
            }
            Self::TooFewHashes => f.write_str("the proof has too few hashes for its sizes"),
            Self::TooManyHashes => f.write_str("the proof has too many hashes for its sizes"),
            Self::RootMismatch => f.write_str("the leaf and the proof lead to another root"),
            Self::OldRootMismatch => f.write_str("the proof does not lead to the old root"),
            Self::NewRootMismatch => f.write_str("the proof does not lead to the new root"),
            Self::WrongLeafCount { expected, found } => {
                write!(f, "the tree has {expected} leaves, but {found} were given")
            }
            Self::NoLeaves => f.write_str("the proof is about no leaf at all"),
            Self::Unsorted { before, index } => write!(f, "leaf {index} comes after leaf {before}"),
        }
    }
}

impl std::error::Error for ProofError {}
