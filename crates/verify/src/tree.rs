//! Joining what several threads hashed into one tree.
//!
//! A run of leaves that begins anywhere splits into perfect subtrees, each at a multiple of its own size. A thread
//! hashes its run alone and hands in at most two subtrees of each level; whoever joins the runs in order pushes
//! them into the frontier.

use leasehold_model::Hash;
use leasehold_tlog::{Frontier, FrontierError, node_hash};

/// The perfect subtrees over leaves `first..next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    first: u64,
    next: u64,
    /// Levels and roots, from left to right.
    parts: Vec<(u32, Hash)>,
}

impl Run {
    pub(crate) fn new(first: u64) -> Self {
        Self { first, next: first, parts: Vec::new() }
    }

    /// One past the last leaf.
    pub(crate) fn end(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    #[inline]
    pub(crate) fn push(&mut self, leaf: Hash) {
        self.next += 1;
        let (mut level, mut root) = (0, leaf);
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_cut_anywhere_join_to_the_same_tree(lengths in prop::collection::vec(0_u64..70, 1..20)) {
            let (mut whole, mut joined) = (Frontier::new(), Frontier::new());
            for length in lengths {
                let mut run = Run::new(joined.size());
                for i in 0..length {
                    let mut leaf = [0; 32];
                    leaf[..8].copy_from_slice(&(joined.size() + i).to_le_bytes());
                    run.push(leaf);
                    whole.push(leaf);
                }
                run.join(&mut joined).unwrap();
            }
            prop_assert_eq!(joined, whole);
        }
    }
}
