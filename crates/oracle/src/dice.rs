//! The random number generator of the simulator and the tests.

/// splitmix64: small, fast, and the same on every platform.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; `n` must not be zero.
    pub fn below(&mut self, n: u64) -> u64 {
        u64::try_from((u128::from(self.draw()) * u128::from(n)) >> 64).expect("below a u64")
    }

    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).expect("below a usize")
    }

    pub fn small(&mut self, n: u32) -> u32 {
        u32::try_from(self.below(u64::from(n))).expect("below a u32")
    }

    /// At least `from` and less than `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below((to - from).max(1))
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// A second generator that does not affect the sequence of this one.
    pub fn split(&mut self) -> Self {
        Self(self.draw())
    }
}
