//! Random numbers from a seed.

pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }
    pub(crate) fn draw(&mut self) -> u64 {
        self.0.u64(..)
    }
    /// A number below `n`; `n` must not be zero.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.u64(..n)
    }
    /// At least `from` and less than `to`; `from` if the range is empty.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below((to - from).max(1))
    }
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// A random seed, short enough to type.
pub(crate) fn fresh_seed() -> u64 {
    fastrand::u64(..1_000_000_000)
}
