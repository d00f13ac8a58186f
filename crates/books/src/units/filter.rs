//! Tells most keys that are not in a run without reading it: a Bloom filter whose bits for a key are all in one cache
//! line.

use leasehold_model::body::UsageKey;
use leasehold_model::codec::{DecodeError, Reader};

/// Words of 64 bits in a block.
const BLOCK_WORDS: usize = 8;
const BLOCK_BITS: u64 = 512;
/// Bits for each key: about one key in a hundred that is not in the run passes.
const BITS_PER_KEY: u64 = 10;
/// Bits that are set for a key. Nine bits of its digest choose one of 512, so there are enough of them for seven.
const PROBES: u32 = 7;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    blocks: Vec<[u64; BLOCK_WORDS]>,
}

impl Filter {
    /// For so many keys.
    pub(super) fn for_keys(keys: u64) -> Self {
        let blocks = (keys * BITS_PER_KEY).div_ceil(BLOCK_BITS).max(1);
        Self { blocks: vec![[0; BLOCK_WORDS]; usize::try_from(blocks).expect("far below 2^64")] }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the product is below the number of blocks")]
    fn block(&self, key: UsageKey) -> usize {
        ((u128::from(key[0]) * self.blocks.len() as u128) >> 64) as usize
    }

    fn bits(key: UsageKey) -> impl Iterator<Item = (usize, u64)> {
        (0..PROBES).map(move |probe| {
            let bit = (key[1] >> (9 * probe)) & (BLOCK_BITS - 1);
            (usize::try_from(bit / 64).expect("below eight"), 1 << (bit % 64))
        })
    }

    pub(super) fn add(&mut self, key: UsageKey) {
        let block = self.block(key);
        Self::bits(key).for_each(|(word, bit)| self.blocks[block][word] |= bit);
    }

    /// Whether the key may be in the run. If not, it is not.
    pub(super) fn may_contain(&self, key: UsageKey) -> bool {
        let Some(block) = self.blocks.get(self.block(key)) else { return false };
        Self::bits(key).all(|(word, bit)| block[word] & bit != 0)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let mut blocks = Vec::with_capacity(bytes.len() / (8 * BLOCK_WORDS));
        for _ in 0..bytes.len() / (8 * BLOCK_WORDS) {
            let mut block = [0; BLOCK_WORDS];
            for word in &mut block {
                *word = u64::from_le_bytes(r.take(8)?.try_into().expect("eight bytes were taken"));
            }
            blocks.push(block);
        }
        r.finish()?;
        Ok(Self { blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any mixing function will do: the keys are digests.
    fn key(number: u64) -> UsageKey {
        let mix = |mut word: u64| {
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ word >> 31
        };
        [mix(number + 1), mix(number + 0x9e37_79b9_7f4a_7c15)]
    }

    #[test]
    fn it_knows_what_it_has_and_hardly_anything_else() {
        let mut filter = Filter::for_keys(20_000);
        (0..20_000).for_each(|number| filter.add(key(number)));
        let again = Filter::from_bytes(&filter.to_bytes()).expect("whole blocks");
        assert_eq!(again, filter);
        assert!((0..20_000).all(|number| filter.may_contain(key(number))));
        let wrong = (20_000..120_000).filter(|number| filter.may_contain(key(*number))).count();
        assert!((100..2_500).contains(&wrong), "{wrong} of 100,000 pass");
        assert!(Filter::from_bytes(&[0; 65]).is_err());
    }
}
