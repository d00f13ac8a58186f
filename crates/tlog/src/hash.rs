//! The three hashes of an RFC 6962 tree (section 2.1), over SHA-256.
//!
//! A leaf and an inner node are hashed under different prefixes, so that neither can pass for the other.
//! Messages here are 33 or 65 bytes, always: the padding is known beforehand, so the blocks are laid out
//! by hand and given straight to the compression function. Measured with SHA-NI against `Sha256::digest`:
//! 66 ns instead of 72 for a leaf, 113 ns instead of 136 for a node.

use sha2::block_api::compress256;

/// A SHA-256 hash: of a record, a leaf, or a subtree.
pub type Hash = [u8; 32];

const LEAF_PREFIX: u8 = 0x00;
const NODE_PREFIX: u8 = 0x01;
/// The bit that ends a message, before the zeros and the length (FIPS 180-4, 5.1.1).
const END_OF_MESSAGE: u8 = 0x80;

/// FIPS 180-4, 5.3.3.
const INITIAL_STATE: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

type Block = [u8; 64];

/// A leaf's message without the record hash.
const LEAF_BLOCK: Block = {
    let mut block = [0; 64];
    block[0] = LEAF_PREFIX;
    block[33] = END_OF_MESSAGE;
    [block[62], block[63]] = (33 * 8_u16).to_be_bytes();
    block
};

/// A node's message without the two hashes.
const NODE_BLOCKS: [Block; 2] = {
    let mut blocks = [[0; 64]; 2];
    blocks[0][0] = NODE_PREFIX;
    blocks[1][1] = END_OF_MESSAGE;
    [blocks[1][62], blocks[1][63]] = (65 * 8_u16).to_be_bytes();
    blocks
};

fn put_leaf(block: &mut Block, record_hash: &Hash) {
    block[1..33].copy_from_slice(record_hash);
}

fn put_node(blocks: &mut [Block; 2], left: &Hash, right: &Hash) {
    blocks[0][1..33].copy_from_slice(left);
    blocks[0][33..].copy_from_slice(&right[..31]);
    blocks[1][0] = right[31];
}

/// The leaf for one record: SHA-256(0x00 ‖ record hash).
#[inline]
#[must_use]
pub fn leaf_hash(record_hash: &Hash) -> Hash {
    let mut block = LEAF_BLOCK;
    put_leaf(&mut block, record_hash);
    digest_of_padded(&[block])
}

/// The node above two subtrees: SHA-256(0x01 ‖ left ‖ right).
#[inline]
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut blocks = NODE_BLOCKS;
    put_node(&mut blocks, left, right);
    digest_of_padded(&blocks)
}

/// Messages that are laid out before the first of them is compressed. The processor waits when it reads a block right
/// after writing it in smaller pieces, and cannot begin the next hash meanwhile: hashing many at once takes a fifth
/// less time.
const AT_ONCE: usize = 16;

/// Replaces the hashes of records by their leaves.
pub fn leaf_hashes(hashes: &mut [Hash]) {
    let mut blocks = [LEAF_BLOCK; AT_ONCE];
    for group in hashes.chunks_mut(AT_ONCE) {
        blocks.iter_mut().zip(group.iter()).for_each(|(block, hash)| put_leaf(block, hash));
        blocks.iter().zip(group).for_each(|(block, hash)| *hash = digest_of_padded(std::slice::from_ref(block)));
    }
}

/// The root of a perfect tree over these leaves, which are overwritten.
///
/// # Panics
/// When the number of leaves is not a power of two.
#[must_use]
pub fn perfect_root(leaves: &mut [Hash]) -> Hash {
    assert!(leaves.len().is_power_of_two(), "a perfect tree of {} leaves", leaves.len());
    let mut blocks = [NODE_BLOCKS; AT_ONCE];
    let mut row = leaves;
    while row.len() > 1 {
        let parents = row.len() / 2;
        for first in (0..parents).step_by(AT_ONCE) {
            let group = first..parents.min(first + AT_ONCE);
            for (blocks, at) in blocks.iter_mut().zip(group.clone()) {
                put_node(blocks, &row[2 * at], &row[2 * at + 1]);
            }
            blocks.iter().zip(group).for_each(|(blocks, at)| row[at] = digest_of_padded(blocks));
        }
        row = &mut row[..parents];
    }
    row[0]
}

/// The root of a tree with no leaves: SHA-256 of nothing.
#[must_use]
pub fn empty_root() -> Hash {
    let mut block = [0; 64];
    block[0] = END_OF_MESSAGE;
    digest_of_padded(&[block])
}

#[inline]
fn digest_of_padded(blocks: &[[u8; 64]]) -> Hash {
    let mut state = INITIAL_STATE;
    compress256(&mut state, blocks);
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    proptest! {
        #[test]
        fn hand_made_padding_equals_the_ordinary_digest(left: Hash, right: Hash) {
            let leaf: Hash = Sha256::new().chain_update([0x00]).chain_update(left).finalize().into();
            prop_assert_eq!(leaf_hash(&left), leaf);
            let node: Hash = Sha256::new().chain_update([0x01]).chain_update(left).chain_update(right).finalize().into();
            prop_assert_eq!(node_hash(&left, &right), node);
        }
    }

    proptest! {
        #[test]
        fn many_at_once_hash_as_one_by_one(level in 0..7_u32, seed: Hash) {
            let mut hashes: Vec<Hash> = (0..1_u8 << level).map(|i| { let mut hash = seed; hash[7] ^= i; hash }).collect();
            let mut tree = crate::Frontier::new();
            hashes.iter().for_each(|hash| tree.push(leaf_hash(hash)));
            leaf_hashes(&mut hashes);
            prop_assert_eq!(perfect_root(&mut hashes), tree.root());
        }
    }

    #[test]
    fn empty_root_is_the_hash_of_nothing() {
        assert_eq!(empty_root().as_slice(), Sha256::digest([]).as_slice());
    }
}
