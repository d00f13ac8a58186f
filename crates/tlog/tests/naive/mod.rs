//! The definitions of RFC 6962, section 2.1, written down as they stand there: slow, recursive, and sharing
//! no code with the crate.

#![allow(dead_code, reason = "each test file uses the part it needs")]

use leasehold_tlog::Hash;
use sha2::{Digest, Sha256};

/// MTH of one leaf's data, of any length.
pub(crate) fn leaf_of(data: &[u8]) -> Hash {
    Sha256::new().chain_update([0x00]).chain_update(data).finalize().into()
}

/// MTH, over leaf hashes.
pub(crate) fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            Sha256::new().chain_update([0x01]).chain_update(root(left)).chain_update(root(right)).finalize().into()
        }
    }
}

/// PATH(m, D[n]).
pub(crate) fn path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return vec![];
    }
    let middle = split(leaves.len());
    let (left, right) = leaves.split_at(middle);
    if index < middle {
        [path(index, left), vec![root(right)]].concat()
    } else {
        [path(index - middle, right), vec![root(left)]].concat()
    }
}

/// PROOF(m, D[n]), for 0 < m < n.
pub(crate) fn consistency(old_size: usize, leaves: &[Hash]) -> Vec<Hash> {
    subproof(old_size, leaves, true)
}

fn subproof(old_size: usize, leaves: &[Hash], old_root_is_known: bool) -> Vec<Hash> {
    if old_size == leaves.len() {
        return if old_root_is_known { vec![] } else { vec![root(leaves)] };
    }
    let middle = split(leaves.len());
    let (left, right) = leaves.split_at(middle);
    if old_size <= middle {
        [subproof(old_size, left, old_root_is_known), vec![root(right)]].concat()
    } else {
        [subproof(old_size - middle, right, false), vec![root(left)]].concat()
    }
}

/// The way down to a leaf: at each node, whether it goes right. Two trees in which a leaf's way is the same
/// cannot be told apart by an inclusion proof.
pub(crate) fn turns(index: usize, size: usize) -> Vec<bool> {
    if size <= 1 {
        return vec![];
    }
    let middle = split(size);
    if index < middle {
        [vec![false], turns(index, middle)].concat()
    } else {
        [vec![true], turns(index - middle, size - middle)].concat()
    }
}

/// The largest power of two smaller than `n`.
fn split(n: usize) -> usize {
    let mut k = 1;
    while k * 2 < n {
        k *= 2;
    }
    k
}
