//! Roots and proofs against two independent trees: the definition in the RFC, and the crate `ct-merkle`.

mod naive;

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use leasehold_tlog::limits::TREE_SIZE_MAX;
use leasehold_tlog::{
    ConsistencyBuilder, ConsistencyProof, Frontier, FrontierError, Hash, InclusionBuilder, InclusionProof, ProofError,
    Subtree, SubtreeRoots, empty_root, leaf_hash, node_hash,
};
use proptest::prelude::*;
use sha2::Sha256;

/// `n` different record hashes.
fn records(n: usize) -> Vec<Hash> {
    (0..n)
        .map(|i| {
            let mut record = [0xa5; 32];
            record[..8].copy_from_slice(&i.to_le_bytes());
            record
        })
        .collect()
}

fn leaves(n: usize) -> Vec<Hash> {
    records(n).iter().map(leaf_hash).collect()
}

fn frontier_of(leaves: &[Hash]) -> Frontier {
    let mut frontier = Frontier::new();
    leaves.iter().for_each(|leaf| frontier.push(*leaf));
    frontier
}

fn other_tree(n: usize) -> MemoryBackedTree<Sha256, Hash> {
    let mut tree = MemoryBackedTree::new();
    records(n).into_iter().for_each(|record| tree.push(record));
    tree
}

fn prove_inclusion(index: usize, leaves: &[Hash]) -> (InclusionProof, Hash) {
    let mut builder = InclusionBuilder::new(index as u64, leaves.len() as u64).unwrap();
    leaves.iter().for_each(|leaf| builder.push(*leaf));
    builder.finish().unwrap()
}

fn prove_consistency(old_size: usize, leaves: &[Hash]) -> (ConsistencyProof, Hash, Hash) {
    let mut builder = ConsistencyBuilder::new(old_size as u64, leaves.len() as u64).unwrap();
    leaves.iter().for_each(|leaf| builder.push(*leaf));
    builder.finish().unwrap()
}

fn inclusion(leaf_index: u64, tree_size: u64, hashes: &[Hash]) -> InclusionProof {
    InclusionProof { leaf_index, tree_size, hashes: hashes.to_vec() }
}

fn consistency(old_size: u64, new_size: u64, hashes: &[Hash]) -> ConsistencyProof {
    ConsistencyProof { old_size, new_size, hashes: hashes.to_vec() }
}

/// A tree of which the roots from `level` upwards are remembered and only some leaves are read.
struct Sparse<'a> {
    leaves: &'a [Hash],
    roots: SubtreeRoots,
    level: u32,
    /// The blocks of 2^level leaves that were read.
    read: std::collections::BTreeSet<u64>,
}

impl<'a> Sparse<'a> {
    fn new(leaves: &'a [Hash], level: u32) -> Self {
        let mut roots = SubtreeRoots::new(level);
        leaves.chunks_exact(1 << level).for_each(|block| roots.push(naive::root(block)));
        assert_eq!(roots.leaves(), leaves.len() as u64 >> level << level);
        Self { leaves, roots, level, read: std::collections::BTreeSet::new() }
    }

    fn root_of(&mut self, subtree: Subtree) -> Result<Hash, ProofError> {
        if let Some(root) = self.roots.get(subtree) {
            return Ok(root);
        }
        let under = subtree.leaves();
        assert!(subtree.level < self.level, "{subtree:?} should be remembered");
        self.read.insert(under.start >> self.level);
        let under = usize::try_from(under.start).unwrap()..usize::try_from(under.end).unwrap();
        Ok(naive::root(&self.leaves[under]))
    }
}

/// A size, and a number from 0 up to and with it.
fn size_and_part() -> impl Strategy<Value = (usize, usize)> {
    (1_usize..300).prop_flat_map(|size| (Just(size), 0..=size))
}

#[test]
fn every_small_tree_has_the_root_and_the_proofs_of_the_definition() {
    let all = leaves(40);
    for size in 0..=40 {
        let tree = &all[..size];
        let root = naive::root(tree);
        assert_eq!(frontier_of(tree).root(), root, "root at {size}");
        for index in 0..size {
            let (proof, proved_root) = prove_inclusion(index, tree);
            assert_eq!(proof.hashes, naive::path(index, tree), "path of {index} in {size}");
            assert_eq!(proved_root, root);
            assert_eq!(proof.verify(&tree[index], &root), Ok(()));
        }
        for old_size in 0..=size {
            let (proof, old_root, new_root) = prove_consistency(old_size, tree);
            if old_size > 0 {
                assert_eq!(proof.hashes, naive::consistency(old_size, tree), "from {old_size} to {size}");
            }
            assert_eq!((old_root, new_root), (naive::root(&tree[..old_size]), root), "from {old_size} to {size}");
            assert_eq!(proof.verify(&old_root, &new_root), Ok(()));
        }
    }
}

proptest! {
    #[test]
    fn roots_agree_with_both_other_trees(size in 0_usize..2000) {
        let root = frontier_of(&leaves(size)).root();
        prop_assert_eq!(root, naive::root(&leaves(size)));
        let other = other_tree(size).root();
        prop_assert_eq!(root.as_slice(), other.as_bytes().as_slice());
    }

    #[test]
    fn proofs_agree_with_both_other_trees((size, part) in size_and_part()) {
        let (tree, other) = (leaves(size), other_tree(size));

        let index = part.min(size - 1);
        let (proof, root) = prove_inclusion(index, &tree);
        prop_assert_eq!(&proof.hashes, &naive::path(index, &tree));
        prop_assert_eq!(proof.hashes.concat(), other.prove_inclusion(index).as_bytes().to_vec());
        prop_assert_eq!(proof.verify(&tree[index], &root), Ok(()));

        let old_size = part.max(1);
        let (proof, old_root, new_root) = prove_consistency(old_size, &tree);
        prop_assert_eq!(&proof.hashes, &naive::consistency(old_size, &tree));
        prop_assert_eq!(proof.hashes.concat(), other.prove_consistency(size - old_size).as_bytes().to_vec());
        prop_assert_eq!(proof.verify(&old_root, &new_root), Ok(()));
    }

    /// The same proofs, from remembered roots and at most two blocks of leaves.
    #[test]
    fn proofs_from_subtrees_are_the_builders_proofs((size, part) in size_and_part(), level in 0_u32..7) {
        let tree = leaves(size);

        let mut sparse = Sparse::new(&tree, level);
        let index = part.min(size - 1);
        let made = InclusionProof::from_subtrees(index as u64, size as u64, |subtree| sparse.root_of(subtree));
        prop_assert_eq!(made, Ok(prove_inclusion(index, &tree)));
        prop_assert!(sparse.read.len() <= 2, "{:?}", sparse.read);

        let mut sparse = Sparse::new(&tree, level);
        let made = ConsistencyProof::from_subtrees(part as u64, size as u64, |subtree| sparse.root_of(subtree));
        prop_assert_eq!(made, Ok(prove_consistency(part, &tree)));
        prop_assert!(sparse.read.len() <= 2, "{:?}", sparse.read);
    }

    #[test]
    fn records_that_are_pushed_together_are_pushed_one_by_one(sizes in prop::collection::vec(0_usize..200, 0..8)) {
        let all = records(sizes.iter().sum());
        let (mut together, mut first) = (Frontier::new(), 0);
        for size in sizes {
            together.push_records(&mut all[first..first + size].to_vec());
            first += size;
        }
        prop_assert_eq!(together, frontier_of(&leaves(all.len())));
    }

    #[test]
    fn a_frontier_survives_its_parts((size, part) in size_and_part()) {
        let tree = leaves(size);
        let early = frontier_of(&tree[..part]);
        let mut restored = Frontier::from_parts(early.size(), early.parts().to_vec()).unwrap();
        prop_assert_eq!(&restored, &early);
        tree[part..].iter().for_each(|leaf| restored.push(*leaf));
        prop_assert_eq!(restored.root(), naive::root(&tree));
    }

    #[test]
    fn halves_hashed_apart_join_where_the_left_size_allows(level in 0_u32..7, blocks in 0_usize..5, right in 0_usize..64) {
        let left_size = blocks << level;
        let tree = leaves(left_size + right);
        let (left, right) = tree.split_at(left_size);
        let mut joined = frontier_of(left);
        let before = joined.clone();
        let fits = right.is_empty() || left_size.is_multiple_of(1 << right.len().ilog2());
        prop_assert_eq!(joined.append(&frontier_of(right)).is_ok(), fits);
        prop_assert_eq!(joined, if fits { frontier_of(&tree) } else { before });
    }

    #[test]
    fn a_changed_inclusion_proof_fails(
        (size, part) in size_and_part(), other in size_and_part(), bit in 0_usize..256, at: prop::sample::Index,
    ) {
        let tree = leaves(size);
        let index = part.min(size - 1);
        let leaf = tree[index];
        let (proof, root) = prove_inclusion(index, &tree);
        prop_assert_eq!(proof.verify(&leaf, &root), Ok(()));

        let (at_index, of_size) = (index as u64, size as u64);
        prop_assert!(proof.verify(&flipped(leaf, bit), &root).is_err());
        prop_assert!(proof.verify(&leaf, &flipped(root, bit)).is_err());
        for hashes in changed(&proof.hashes, bit, at) {
            prop_assert!(inclusion(at_index, of_size, &hashes).verify(&leaf, &root).is_err());
        }
        let elsewhere = (other.1 % size) as u64;
        if elsewhere != at_index {
            prop_assert!(inclusion(elsewhere, of_size, &proof.hashes).verify(&leaf, &root).is_err());
        }
        // A size alone is not bound by the proof, only the way through the tree is (see the docs of `proof`).
        let resized = inclusion(at_index, other.0 as u64, &proof.hashes);
        let same_way = index < other.0 && naive::turns(index, other.0) == naive::turns(index, size);
        prop_assert_eq!(resized.verify(&leaf, &root).is_ok(), same_way);
    }

    #[test]
    fn a_changed_consistency_proof_fails(
        (size, part) in size_and_part(), bit in 0_usize..256, at: prop::sample::Index,
    ) {
        let tree = leaves(size);
        let (proof, old_root, new_root) = prove_consistency(part, &tree);
        prop_assert_eq!(proof.verify(&old_root, &new_root), Ok(()));

        prop_assert!(proof.verify(&flipped(old_root, bit), &new_root).is_err());
        if part > 0 {
            prop_assert!(proof.verify(&old_root, &flipped(new_root, bit)).is_err());
        }
        let (old_size, new_size) = (part as u64, size as u64);
        for hashes in changed(&proof.hashes, bit, at) {
            prop_assert!(consistency(old_size, new_size, &hashes).verify(&old_root, &new_root).is_err());
        }
        let other_old_size = at.index(size + 1) as u64;
        if part > 0 && other_old_size != old_size {
            prop_assert!(consistency(other_old_size, new_size, &proof.hashes).verify(&old_root, &new_root).is_err());
        }
        if old_size < new_size {
            prop_assert!(consistency(new_size, old_size, &proof.hashes).verify(&new_root, &old_root).is_err());
        }
    }

    /// A log that rewrote one early record cannot be proved to continue its old self.
    #[test]
    fn a_rewritten_history_is_not_consistent((size, part) in size_and_part(), at: prop::sample::Index) {
        prop_assume!(part > 0);
        let tree = leaves(size);
        let mut rewritten = tree.clone();
        rewritten[at.index(part)] = leaf_hash(&[0; 32]);
        let old_root = naive::root(&tree[..part]);
        let (proof, _, new_root) = prove_consistency(part, &rewritten);
        prop_assert!(proof.verify(&old_root, &new_root).is_err());
    }

    /// Nothing a stranger hands in makes verification panic or hold.
    #[test]
    fn arbitrary_proofs_do_not_panic(a: u64, b: u64, hashes in prop::collection::vec(any::<Hash>(), 0..70), x: Hash, y: Hash) {
        prop_assert!(inclusion(a, b, &hashes).verify(&x, &y).is_err());
        prop_assert!(consistency(a, b, &hashes).verify(&x, &y).is_err());
        let _ = InclusionBuilder::new(a, b);
        let _ = ConsistencyBuilder::new(a, b);
    }
}

/// Every way to spoil a list of hashes by a little.
fn changed(hashes: &[Hash], bit: usize, at: prop::sample::Index) -> Vec<Vec<Hash>> {
    let extra = [0x77; 32];
    let mut all = vec![[hashes, &[extra]].concat(), [&[extra], hashes].concat()];
    if hashes.is_empty() {
        return all;
    }
    let at = at.index(hashes.len());
    let mut one = hashes.to_vec();
    one[at] = flipped(one[at], bit);
    all.push(one);
    let mut one = hashes.to_vec();
    one.remove(at);
    all.push(one);
    let mut one = hashes.to_vec();
    one.insert(at, hashes[at]);
    all.push(one);
    if at > 0 {
        let mut one = hashes.to_vec();
        one.swap(at - 1, at);
        all.push(one);
    }
    all
}

fn flipped(mut hash: Hash, bit: usize) -> Hash {
    hash[bit / 8] ^= 1 << (bit % 8);
    hash
}

#[test]
fn a_frontier_refuses_what_does_not_fit() {
    let part = [1; 32];
    assert_eq!(
        Frontier::from_parts(5, vec![part]),
        Err(FrontierError::WrongPartCount { size: 5, expected: 2, found: 1 })
    );
    assert!(matches!(Frontier::from_parts(u64::MAX, vec![part; 64]), Err(FrontierError::TooLarge { .. })));
    let mut three = frontier_of(&leaves(3));
    assert_eq!(three.push_subtree(1, part), Err(FrontierError::Unaligned { size: 3, level: 1 }));
    assert!(matches!(three.push_subtree(64, part), Err(FrontierError::TooLarge { .. })));
    assert!(matches!(three.push_subtree(u32::MAX, part), Err(FrontierError::TooLarge { .. })));
    assert_eq!(three, frontier_of(&leaves(3)), "a refusal changes nothing");

    let mut full = Frontier::from_parts(TREE_SIZE_MAX, vec![part]).unwrap();
    assert!(matches!(full.push_subtree(0, part), Err(FrontierError::TooLarge { .. })));
    full.push(part);
    assert_eq!(full.root(), node_hash(&part, &part));
}

#[test]
fn the_edges_of_proofs() {
    let (one, other) = ([1; 32], [2; 32]);
    assert_eq!(inclusion(0, 0, &[]).verify(&one, &one), Err(ProofError::IndexOutsideTree { index: 0, size: 0 }));
    assert_eq!(inclusion(0, 1, &[]).verify(&one, &one), Ok(()));
    assert_eq!(inclusion(0, 1, &[]).verify(&one, &other), Err(ProofError::RootMismatch));
    assert_eq!(inclusion(0, 1, &[one]).verify(&one, &one), Err(ProofError::TooManyHashes));
    assert_eq!(inclusion(0, 2, &[]).verify(&one, &one), Err(ProofError::TooFewHashes));
    assert_eq!(inclusion(0, u64::MAX, &[]).verify(&one, &one), Err(ProofError::TreeTooLarge { size: u64::MAX }));

    assert_eq!(consistency(0, 0, &[]).verify(&empty_root(), &empty_root()), Ok(()));
    assert_eq!(consistency(0, 0, &[]).verify(&empty_root(), &one), Err(ProofError::NewRootMismatch));
    assert_eq!(consistency(0, 7, &[]).verify(&empty_root(), &one), Ok(()));
    assert_eq!(consistency(0, 7, &[]).verify(&one, &one), Err(ProofError::OldRootMismatch));
    assert_eq!(consistency(0, 7, &[one]).verify(&empty_root(), &one), Err(ProofError::TooManyHashes));
    assert_eq!(consistency(7, 7, &[]).verify(&one, &one), Ok(()));
    assert_eq!(consistency(7, 7, &[]).verify(&one, &other), Err(ProofError::NewRootMismatch));
    assert_eq!(consistency(7, 7, &[one]).verify(&one, &one), Err(ProofError::TooManyHashes));
    assert_eq!(consistency(3, 7, &[]).verify(&one, &one), Err(ProofError::TooFewHashes));
    assert_eq!(consistency(8, 7, &[]).verify(&one, &one), Err(ProofError::TreeShrank { old_size: 8, new_size: 7 }));
}

#[test]
fn proofs_from_subtrees_have_the_same_edges() {
    let never = |subtree: Subtree| -> Result<Hash, ProofError> { panic!("{subtree:?} is not needed") };
    let outside = ProofError::IndexOutsideTree { index: 5, size: 5 };
    assert_eq!(InclusionProof::from_subtrees(5, 5, never), Err(outside));
    let shrank = ProofError::TreeShrank { old_size: 6, new_size: 5 };
    assert_eq!(ConsistencyProof::from_subtrees(6, 5, never), Err(shrank));
    let nothing = (consistency(0, 0, &[]), empty_root(), empty_root());
    assert_eq!(ConsistencyProof::from_subtrees(0, 0, never), Ok(nothing));
    // What goes wrong below comes out above.
    let fails = |_: Subtree| Err(ProofError::TooFewHashes);
    assert_eq!(InclusionProof::from_subtrees(0, 5, fails), Err(ProofError::TooFewHashes));
    assert_eq!(ConsistencyProof::from_subtrees(3, 5, fails), Err(ProofError::TooFewHashes));
}

#[test]
fn builders_count_their_leaves() {
    for given in [0, 4, 6] {
        let mut included = InclusionBuilder::new(2, 5).unwrap();
        let mut consistent = ConsistencyBuilder::new(3, 5).unwrap();
        for leaf in leaves(given) {
            included.push(leaf);
            consistent.push(leaf);
        }
        let refusal = ProofError::WrongLeafCount { expected: 5, found: given as u64 };
        assert_eq!(included.finish(), Err(refusal));
        assert_eq!(consistent.finish(), Err(refusal));
    }
}
