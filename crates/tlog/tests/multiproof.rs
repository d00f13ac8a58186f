//! Proofs of many leaves, against the definition written down naively, and against proofs of single leaves.

mod naive;

use leasehold_tlog::limits::TREE_SIZE_MAX;
use leasehold_tlog::{
    Hash, InclusionProof, Multiproof, MultiproofBuilder, ProofError, Subtree, SubtreeRoots, leaf_hash,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn leaves(n: usize) -> Vec<Hash> {
    (0..n)
        .map(|i| {
            let mut record = [0x5a; 32];
            record[..8].copy_from_slice(&i.to_le_bytes());
            leaf_hash(&record)
        })
        .collect()
}

/// The definition: a subtree without proved leaves is one hash; otherwise its left half comes before its right one.
fn naive_hashes(start: usize, tree: &[Hash], proved: &BTreeSet<usize>) -> Vec<Hash> {
    if proved.range(start..start + tree.len()).next().is_none() {
        return vec![naive::root(tree)];
    }
    if tree.len() == 1 {
        return vec![];
    }
    let middle = tree.len().next_power_of_two() / 2;
    let (left, right) = tree.split_at(middle);
    [naive_hashes(start, left, proved), naive_hashes(start + middle, right, proved)].concat()
}

fn build(tree: &[Hash], proved: &BTreeSet<usize>) -> (Multiproof, Hash) {
    let mut builder = MultiproofBuilder::new();
    for (index, leaf) in tree.iter().enumerate() {
        if proved.contains(&index) { builder.prove(*leaf) } else { builder.pass(*leaf) }
    }
    builder.finish().expect("a leaf is proved")
}

fn proved_leaves(tree: &[Hash], proved: &BTreeSet<usize>) -> Vec<(u64, Hash)> {
    proved.iter().map(|index| (*index as u64, tree[*index])).collect()
}

/// A tree's size, and some of its leaves.
fn size_and_leaves() -> impl Strategy<Value = (usize, BTreeSet<usize>)> {
    (1_usize..300).prop_flat_map(|size| (Just(size), prop::collection::btree_set(0..size, 1..=size.min(60))))
}

#[test]
fn every_set_of_leaves_of_a_small_tree_is_proved_as_defined() {
    let all = leaves(9);
    for size in 1..=9 {
        let tree = &all[..size];
        for set in 1_usize..1 << size {
            let proved: BTreeSet<usize> = (0..size).filter(|index| set >> index & 1 == 1).collect();
            let (proof, root) = build(tree, &proved);
            assert_eq!(root, naive::root(tree));
            assert_eq!(proof.hashes, naive_hashes(0, tree, &proved), "{proved:?} of {size}");
            assert_eq!(proof.verify(proved_leaves(tree, &proved), &root), Ok(()));
        }
    }
}

/// Leaves 2 and 5 of seven: the pair 0 and 1, then the leaves 3, 4 and 6. The bytes were computed by another program.
#[test]
fn the_order_of_the_hashes_is_fixed() {
    let tree: Vec<Hash> = (0..7).map(|i| leaf_hash(&[i; 32])).collect();
    let (proof, root) = build(&tree, &[2, 5].into());
    let hex = |hash: &Hash| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        proof.hashes.iter().map(hex).collect::<Vec<_>>(),
        [
            "28fb81e496897e0ce886f08602392e9239b65c659041e5202163e58ad898f444",
            "acaa04663a8547a2f70c60cc18f9378796b13c4f9a08f70d6adae662365b30c6",
            "1da033bf8927ed69376d91533748494f7f5e88c20603dede2afc9bfd43d46f17",
            "511c6562982c9bfa05ba4145ca5f2bba85a11a178a4131b5cebde26dd9ffe704",
        ]
    );
    assert_eq!(hex(&root), "7318881c41fce3c1de3640df8e8c110c93f43f686b74204a9d1ad5b8c71c2047");
}

proptest! {
    #[test]
    fn a_proof_is_the_definition_and_holds((size, proved) in size_and_leaves()) {
        let tree = leaves(size);
        let (proof, root) = build(&tree, &proved);
        prop_assert_eq!(proof.tree_size, size as u64);
        prop_assert_eq!(root, naive::root(&tree));
        prop_assert_eq!(&proof.hashes, &naive_hashes(0, &tree, &proved));
        prop_assert_eq!(proof.verify(proved_leaves(&tree, &proved), &root), Ok(()));
    }

    /// With one leaf it has the hashes of the inclusion proof, from left to right instead of upwards.
    #[test]
    fn of_one_leaf_it_has_the_hashes_of_an_inclusion_proof(size in 1_usize..300, at: prop::sample::Index) {
        let tree = leaves(size);
        let index = at.index(size);
        let (proof, root) = build(&tree, &[index].into());
        let path = naive::path(index, &tree);
        let single = InclusionProof { leaf_index: index as u64, tree_size: size as u64, hashes: path.clone() };
        prop_assert_eq!(single.verify(&tree[index], &root), Ok(()));
        prop_assert_eq!(proof.hashes.iter().collect::<BTreeSet<_>>(), path.iter().collect::<BTreeSet<_>>());
    }

    /// Where whole blocks without proved leaves are given by their roots, the proof is the same.
    #[test]
    fn subtrees_may_be_given_by_their_roots((size, proved) in size_and_leaves(), level in 0_u32..6) {
        let tree = leaves(size);
        let mut roots = SubtreeRoots::new(level);
        tree.chunks_exact(1 << level).for_each(|block| roots.push(naive::root(block)));
        let mut builder = MultiproofBuilder::new();
        for (index, block) in tree.chunks(1 << level).enumerate() {
            let start = index << level;
            match roots.get(Subtree { level, index: index as u64 }) {
                Some(root) if proved.range(start..start + block.len()).next().is_none() => {
                    builder.pass_subtree(level, root).expect("it begins at a multiple of its size");
                }
                _ => block.iter().zip(start..).for_each(|(leaf, at)| {
                    if proved.contains(&at) { builder.prove(*leaf) } else { builder.pass(*leaf) }
                }),
            }
        }
        prop_assert_eq!(builder.size(), size as u64);
        prop_assert_eq!(builder.finish().expect("a leaf is proved"), build(&tree, &proved));
    }

    /// No change of a leaf, an index, a hash, the root or the size is accepted.
    #[test]
    fn a_changed_proof_fails(
        (size, proved) in size_and_leaves(), bit in 0_usize..256, at: prop::sample::Index, other in 1_u64..400,
    ) {
        let tree = leaves(size);
        let (proof, root) = build(&tree, &proved);
        let good = proved_leaves(&tree, &proved);
        let flip = |hash: &mut Hash| hash[bit / 8] ^= 1 << (bit % 8);

        let mut changed = good.clone();
        flip(&mut changed[at.index(good.len())].1);
        prop_assert_eq!(proof.verify(changed, &root), Err(ProofError::RootMismatch));
        let mut wrong_root = root;
        flip(&mut wrong_root);
        prop_assert_eq!(proof.verify(good.clone(), &wrong_root), Err(ProofError::RootMismatch));

        let mut longer = proof.clone();
        longer.hashes.insert(at.index(proof.hashes.len() + 1), root);
        prop_assert_eq!(longer.verify(good.clone(), &root), Err(ProofError::TooManyHashes));
        if !proof.hashes.is_empty() {
            let place = at.index(proof.hashes.len());
            let mut shorter = proof.clone();
            shorter.hashes.remove(place);
            prop_assert_eq!(shorter.verify(good.clone(), &root), Err(ProofError::TooFewHashes));
            let mut wrong = proof.clone();
            flip(&mut wrong.hashes[place]);
            prop_assert_eq!(wrong.verify(good.clone(), &root), Err(ProofError::RootMismatch));
        }
        let mut moved = good.clone();
        moved[at.index(good.len())].0 = other;
        if moved != good {
            prop_assert!(proof.verify(moved, &root).is_err());
        }
        let mut twice = good.clone();
        twice.insert(at.index(good.len()), good[at.index(good.len())]);
        let unsorted = matches!(proof.verify(twice, &root), Err(ProofError::Unsorted { .. }));
        prop_assert!(unsorted);
    }

    #[test]
    fn nothing_that_a_stranger_writes_makes_it_panic(
        tree_size: u64, indexes: Vec<u64>, hashes in prop::collection::vec(any::<Hash>(), 0..80), sorted: bool,
    ) {
        let mut indexes = indexes;
        if sorted {
            indexes.sort_unstable();
        }
        let leaves: Vec<_> = indexes.into_iter().map(|index| (index, [7; 32])).collect();
        for tree_size in [tree_size, tree_size % 100, tree_size >> 2, TREE_SIZE_MAX] {
            let refused = Multiproof { tree_size, hashes: hashes.clone() }.verify(leaves.clone(), &[0; 32]);
            prop_assert!(refused.is_err());
        }
    }
}

#[test]
fn leaves_that_are_no_leaves_are_refused() {
    let tree = leaves(5);
    let (proof, root) = build(&tree, &[1, 3].into());
    let check = |indexes: &[u64], why| {
        let leaves = indexes.iter().map(|index| (*index, tree[usize::try_from(*index).unwrap() % 5]));
        assert_eq!(proof.verify(leaves, &root), Err(why), "{indexes:?}");
    };
    check(&[], ProofError::NoLeaves);
    check(&[3, 1], ProofError::Unsorted { before: 3, index: 1 });
    check(&[1, 1, 3], ProofError::Unsorted { before: 1, index: 1 });
    check(&[5], ProofError::IndexOutsideTree { index: 5, size: 5 });
    check(&[1, 3, 9], ProofError::IndexOutsideTree { index: 9, size: 5 });
    let too_large = Multiproof { tree_size: TREE_SIZE_MAX + 1, hashes: vec![] };
    let size = TREE_SIZE_MAX + 1;
    assert_eq!(too_large.verify([(0, tree[0])], &root), Err(ProofError::TreeTooLarge { size }));
    let mut nothing_proved = MultiproofBuilder::new();
    tree.iter().for_each(|leaf| nothing_proved.pass(*leaf));
    assert_eq!(nothing_proved.finish(), Err(ProofError::NoLeaves));
    assert_eq!(MultiproofBuilder::new().finish(), Err(ProofError::NoLeaves));
}

/// A single leaf of the largest tree needs as many hashes as the tree is high, and no more.
#[test]
fn the_largest_tree_needs_few_hashes_and_little_depth() {
    for index in [0, 1 << 61, TREE_SIZE_MAX - 1] {
        for count in [61, 62, 63] {
            let proof = Multiproof { tree_size: TREE_SIZE_MAX, hashes: vec![[1; 32]; count] };
            let expected = match count {
                61 => ProofError::TooFewHashes,
                62 => ProofError::RootMismatch,
                _ => ProofError::TooManyHashes,
            };
            assert_eq!(proof.verify([(index, [2; 32])], &[3; 32]), Err(expected));
        }
    }
}
