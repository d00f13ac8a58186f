//! Random idempotency keys, and jitter that keeps many clients from calling at the same time.

use std::time::Duration;

/// 128 random bits as 32 hexadecimal digits.
pub(crate) fn key() -> String {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    format!("{:032x}", u128::from_le_bytes(bytes))
}

/// A uniformly distributed duration from `low` to `high`.
pub(crate) fn between(low: Duration, high: Duration) -> Duration {
    let width = high.saturating_sub(low).as_nanos();
    let mut bytes = [0; 8];
    fill(&mut bytes);
    // The result is at most `width`. 64 random bits are uniform enough for jitter.
    let draw = (width * u128::from(u64::from_le_bytes(bytes))) >> 64;
    low + Duration::from_nanos(u64::try_from(draw).unwrap_or(u64::MAX))
}

fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system provides random bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_jitter_stays_in_its_range() {
        let keys: std::collections::BTreeSet<String> = (0..100).map(|_| key()).collect();
        assert_eq!(keys.len(), 100);
        assert!(keys.iter().all(|key| key.len() == 32));
        let (low, high) = (Duration::from_millis(600), Duration::from_millis(800));
        let drawn: Vec<Duration> = (0..1000).map(|_| between(low, high)).collect();
        assert!(drawn.iter().all(|at| (low..=high).contains(at)));
        assert!(
            drawn.iter().any(|at| *at < low + (high - low) / 4) && drawn.iter().any(|at| *at > high - (high - low) / 4)
        );
        assert_eq!(between(high, high), high);
    }
}
