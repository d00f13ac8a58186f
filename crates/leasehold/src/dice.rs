//! A small deterministic generator (splitmix64): the same seed draws the same work.

#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Less than `n`, which is not zero.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let scaled = (u128::from(self.next()) * u128::from(n)) >> 64;
        u64::try_from(scaled).expect("less than n")
    }
    /// At least `from`, less than `to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below((to - from).max(1))
    }
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// A seed nobody chose.
pub(crate) fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    // Short enough to be typed again.
    u64::from_le_bytes(bytes) % 1_000_000_000
}
