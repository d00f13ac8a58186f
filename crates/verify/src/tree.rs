//! Joining what several threads hashed into one tree.
//!
//! A run of leaves that begins anywhere splits into perfect subtrees, each at a multiple of its own size. A thread
//! hashes its run alone and returns at most two subtrees of each level; the runs are then appended to the frontier in
//! order.

use leasehold_model::Hash;
use leasehold_tlog::{Frontier, FrontierError, leaf_hashes, node_hash, perfect_root};

/// The perfect subtrees over leaves `first..next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    first: u64,
    next: u64,
    /// Levels and roots, from left to right.
    parts: Vec<(u32, Hash)>,
}

/// A run that records are added to.
#[derive(Debug)]
pub(crate) struct GrowingRun {
    run: Run,
    /// Hashes of the records after the run, fewer than a block. They are hashed together, which is faster.
    pending: Vec<Hash>,
}

/// Leaves of the subtrees that are hashed as a whole.
const BLOCK_LEVEL: u32 = 6;
const BLOCK: u64 = 1 << BLOCK_LEVEL;

impl GrowingRun {
    pub(crate) fn new(first: u64) -> Self {
        Self { run: Run { first, next: first, parts: Vec::new() }, pending: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.first == self.next()
    }

    /// The sequence of the next record.
    fn next(&self) -> u64 {
        self.run.next + self.pending.len() as u64
    }

    /// Adds the leaf of a record.
    #[inline]
    pub(crate) fn push(&mut self, record_hash: Hash) {
        self.pending.push(record_hash);
        if self.next().is_multiple_of(BLOCK) {
            self.hash_pending();
        }
    }

    fn hash_pending(&mut self) {
        leaf_hashes(&mut self.pending);
        if self.pending.len() as u64 == BLOCK && self.run.next.is_multiple_of(BLOCK) {
            self.run.push(BLOCK_LEVEL, perfect_root(&mut self.pending));
        } else {
            self.pending.iter().for_each(|leaf| self.run.push(0, *leaf));
        }
        self.pending.clear();
    }

    /// Takes the run; the next one begins where it ends.
    pub(crate) fn finish(&mut self) -> Run {
        self.hash_pending();
        let next = self.run.next;
        std::mem::replace(&mut self.run, Run { first: next, next, parts: Vec::new() })
    }
}

impl Run {
    /// One past the last leaf.
    pub(crate) fn end(&self) -> u64 {
        self.next
    }

    /// Adds a perfect subtree of 2^level leaves, at a multiple of its size.
    fn push(&mut self, mut level: u32, mut root: Hash) {
        self.next += 1 << level;
        // While a subtree of twice the size ends here too and begins inside the run, its left half is the last part.
        while self.next.trailing_zeros() > level && self.next - (2 << level) >= self.first {
            let (_, left) = self.parts.pop().expect("the left half lies inside the run");
            root = node_hash(&left, &root);
            level += 1;
        }
        self.parts.push((level, root));
    }

    /// Appends the run to the tree of all leaves before it.
    pub(crate) fn join(&self, tree: &mut Frontier) -> Result<(), FrontierError> {
        assert_eq!(tree.size(), self.first, "runs are joined in order");
        self.parts.iter().try_for_each(|(level, root)| tree.push_subtree(*level, *root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_tlog::leaf_hash;
    use proptest::prelude::*;

    fn record_hash(number: u64) -> Hash {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_le_bytes());
        hash
    }

    proptest! {
        #[test]
        fn runs_cut_anywhere_join_to_the_same_tree(
            first in 0_u64..200, lengths in prop::collection::vec(prop_oneof![0_u64..70, 0_u64..300], 1..20),
        ) {
            let (mut whole, mut joined) = (Frontier::new(), Frontier::new());
            for n in 0..first {
                let leaf = leaf_hash(&record_hash(n));
                whole.push(leaf);
                joined.push(leaf);
            }
            let mut growing = GrowingRun::new(first);
            for length in lengths {
                for n in whole.size()..whole.size() + length {
                    growing.push(record_hash(n));
                    whole.push(leaf_hash(&record_hash(n)));
                }
                prop_assert_eq!(growing.is_empty(), length == 0);
                let run = growing.finish();
                prop_assert_eq!(run.end(), whole.size());
                run.join(&mut joined).unwrap();
            }
            prop_assert_eq!(joined, whole);
        }
    }
}
