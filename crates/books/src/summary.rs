//! A Bloom filter of the owners in a chunk, kept in memory.

use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::{ProjectNo, TenantNo, UserNo};

const WORDS: usize = 64;
const BITS: u64 = WORDS as u64 * 64;

/// A set of owners with false positives. With a thousand keys about one in five other keys is a false positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owners(Box<[u64; WORDS]>);

impl Default for Owners {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

/// The two bits of a key, as word and bit indexes.
fn bits(sort: u64, number: u32) -> [(usize, u64); 2] {
    let mut mixed = (u64::from(number) << 2 | sort).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    [mixed, mixed >> 32].map(|bit| (usize::try_from(bit % BITS / 64).expect("below 64"), 1 << (bit % 64)))
}

const TENANT: u64 = 0;
const PROJECT: u64 = 1;
const USER: u64 = 2;

impl Owners {
    fn put(&mut self, sort: u64, number: u32) {
        for (word, bit) in bits(sort, number) {
            self.0[word] |= bit;
        }
    }

    fn may_have(&self, sort: u64, number: u32) -> bool {
        bits(sort, number).iter().all(|(word, bit)| self.0[*word] & bit != 0)
    }

    pub(crate) fn add(&mut self, tenant: TenantNo, project: ProjectNo, user: Option<UserNo>) {
        self.put(TENANT, tenant.0);
        self.put(PROJECT, project.0);
        user.into_iter().for_each(|user| self.put(USER, user.0));
    }

    /// False only if the key was not added.
    pub(crate) fn may_be(&self, tenant: Option<TenantNo>, project: Option<ProjectNo>, user: Option<UserNo>) -> bool {
        tenant.is_none_or(|tenant| self.may_have(TENANT, tenant.0))
            && project.is_none_or(|project| self.may_have(PROJECT, project.0))
            && user.is_none_or(|user| self.may_have(USER, user.0))
    }
}

impl Field for Owners {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut owners = Self::default();
        for word in owners.0.iter_mut() {
            *word = u64::from_le_bytes(r.array()?);
        }
        Ok(owners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_never_denied_and_most_of_the_rest_is() {
        let mut owners = Owners::default();
        (0..300).for_each(|no| owners.add(TenantNo(no), ProjectNo(no * 7), Some(UserNo(no * 3))));
        for no in 0..300 {
            assert!(owners.may_be(Some(TenantNo(no)), Some(ProjectNo(no * 7)), Some(UserNo(no * 3))));
        }
        let taken = (300..1300).filter(|no| owners.may_be(Some(TenantNo(*no)), None, None)).count();
        assert!(taken < 250, "{taken} of 1000 strangers");
    }
}
