//! What the demo and the drill make up follows from a seed.

pub(crate) use leasehold_sim::Dice;

/// A seed nobody chose.
pub(crate) fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    // Short enough to be typed again.
    u64::from_le_bytes(bytes) % 1_000_000_000
}
