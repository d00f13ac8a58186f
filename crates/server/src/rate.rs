//! Rate limit per token: a bucket of operations that fills at a steady rate.
//!
//! A bucket is one number, the instant at which it will be full again. Full buckets need not be kept, so memory grows
//! only with the tokens that were busy a moment ago, and is limited even then.

use crate::config::Rate;
use leasehold_model::TokenNo;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of locks, so that concurrent requests rarely wait for the same one.
const SHARDS: usize = 64;
/// Buckets per shard. Beyond that the fullest bucket is dropped, which gives its token a full one.
const BUCKETS_PER_SHARD_MAX: usize = 4096;

/// Time to wait before trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter(pub Duration);

/// When each bucket will be full, in nanoseconds since the limiter was created.
type Buckets = HashMap<u32, u64, BuildHasherDefault<std::hash::DefaultHasher>>;

#[derive(Debug)]
pub struct Limiter {
    began: Instant,
    /// Nanoseconds in which one operation is refilled; zero means no limit.
    cost_ns: AtomicU64,
    /// Nanoseconds in which an empty bucket is filled.
    full_ns: AtomicU64,
    shards: Box<[Mutex<Buckets>]>,
    refused: AtomicU64,
}

impl Limiter {
    pub fn new(rate: &Rate) -> Self {
        let limiter = Self {
            began: Instant::now(),
            cost_ns: AtomicU64::new(0),
            full_ns: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            refused: AtomicU64::new(0),
        };
        limiter.set(rate);
        limiter
    }

    /// Changes the rate. Every token begins with a full bucket again.
    pub fn set(&self, rate: &Rate) {
        let per_second = u64::from(rate.operations_per_second);
        let burst = if rate.burst == 0 { per_second * 2 } else { u64::from(rate.burst) };
        let cost_ns = 1_000_000_000u64.checked_div(per_second).map_or(0, |ns| ns.max(1));
        self.cost_ns.store(cost_ns, Ordering::Relaxed);
        self.full_ns.store(cost_ns.saturating_mul(burst), Ordering::Relaxed);
        self.shards.iter().for_each(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).clear());
    }

    /// Takes `operations` from the bucket of the token, or returns the time until they are available.
    ///
    /// More operations than a bucket holds are allowed if the bucket is full; the token then also waits for the
    /// difference.
    pub fn take(&self, token: TokenNo, operations: u32) -> Result<(), RetryAfter> {
        if self.cost_ns.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.take_at(token, operations, Instant::now())
    }

    pub(crate) fn take_at(&self, token: TokenNo, operations: u32, now: Instant) -> Result<(), RetryAfter> {
        let Some(shard) = self.shards.get(token.0 as usize % SHARDS) else { return Ok(()) };
        let now = u64::try_from(now.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX);
        let full_ns = self.full_ns.load(Ordering::Relaxed);
        let wanted = self.cost_ns.load(Ordering::Relaxed).saturating_mul(u64::from(operations));
        let mut buckets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.get(&token.0).copied().unwrap_or(0).max(now);
        // How much would be missing after this; at most a whole bucket is required.
        let missing_after = (full_at - now).saturating_add(wanted.min(full_ns));
        if missing_after > full_ns {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(RetryAfter(Duration::from_nanos(missing_after - full_ns)));
        }
        if buckets.len() >= BUCKETS_PER_SHARD_MAX && !buckets.contains_key(&token.0) {
            make_room(&mut buckets, now);
        }
        buckets.insert(token.0, full_at.saturating_add(wanted));
        Ok(())
    }

    /// Number of requests that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Number of buckets in memory.
    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().expect("no thread panicked").len()).sum()
    }
}

/// Drops all full buckets, or the fullest one if there are none.
#[expect(clippy::iter_over_hash_type, reason = "which of several equal buckets is dropped does not matter")]
fn make_room(buckets: &mut Buckets, now: u64) {
    buckets.retain(|_, full_at| *full_at > now);
    if buckets.len() >= BUCKETS_PER_SHARD_MAX {
        let mut fullest = None;
        for (token, full_at) in &*buckets {
            if fullest.is_none_or(|(_, earliest)| *full_at < earliest) {
                fullest = Some((*token, *full_at));
            }
        }
        if let Some((token, _)) = fullest {
            buckets.remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TokenNo = TokenNo(7);

    fn limiter(operations_per_second: u32, burst: u32) -> Limiter {
        Limiter::new(&Rate { operations_per_second, burst })
    }

    #[test]
    fn a_token_may_burst_and_is_then_limited_to_its_rate() {
        let limiter = limiter(10, 20);
        let start = limiter.began;
        assert_eq!(limiter.take_at(T, 20, start), Ok(()));
        assert_eq!(limiter.take_at(T, 1, start), Err(RetryAfter(Duration::from_millis(100))));
        assert_eq!(limiter.take_at(T, 5, start), Err(RetryAfter(Duration::from_millis(500))));
        // Refused operations took nothing.
        let later = start + Duration::from_millis(500);
        assert_eq!(limiter.take_at(T, 5, later), Ok(()));
        assert_eq!(limiter.take_at(T, 1, later), Err(RetryAfter(Duration::from_millis(100))));
        // Other tokens have buckets of their own.
        assert_eq!(limiter.take_at(TokenNo(8), 20, later), Ok(()));
        assert_eq!(limiter.take_at(T, 20, later + Duration::from_secs(3600)), Ok(()));
    }

    #[test]
    fn a_batch_larger_than_the_burst_needs_a_full_bucket_and_is_counted_in_full() {
        let limiter = limiter(10, 20);
        let start = limiter.began;
        assert_eq!(limiter.take_at(T, 1, start), Ok(()));
        assert_eq!(limiter.take_at(T, 100, start), Err(RetryAfter(Duration::from_millis(100))));
        let full = start + Duration::from_millis(100);
        assert_eq!(limiter.take_at(T, 100, full), Ok(()));
        assert_eq!(limiter.take_at(T, 1, full), Err(RetryAfter(Duration::from_millis(8100))));
    }

    #[test]
    fn no_rate_is_no_limit_and_no_burst_is_two_seconds() {
        let free = limiter(0, 0);
        assert_eq!(free.take(T, u32::MAX), Ok(()));
        assert_eq!(free.take(T, u32::MAX), Ok(()));
        let two_seconds = limiter(10, 0);
        assert_eq!(two_seconds.take_at(T, 20, two_seconds.began), Ok(()));
        assert!(two_seconds.take_at(T, 1, two_seconds.began).is_err());
    }

    #[test]
    fn the_rate_can_be_changed() {
        let limiter = limiter(10, 20);
        let start = limiter.began;
        assert_eq!(limiter.take_at(T, 20, start), Ok(()));
        limiter.set(&Rate { operations_per_second: 1, burst: 3 });
        assert_eq!(limiter.take_at(T, 3, start), Ok(()));
        assert_eq!(limiter.take_at(T, 1, start), Err(RetryAfter(Duration::from_secs(1))));
        limiter.set(&Rate { operations_per_second: 0, burst: 0 });
        assert_eq!(limiter.take(T, u32::MAX), Ok(()));
    }

    #[test]
    fn memory_has_a_limit() {
        let limiter = limiter(1, 1);
        let tokens = u32::try_from(SHARDS * BUCKETS_PER_SHARD_MAX).expect("small") + 10_000;
        let start = limiter.began;
        (0..tokens).for_each(|token| assert_eq!(limiter.take_at(TokenNo(token), 1, start), Ok(())));
        assert!(limiter.remembered() <= SHARDS * BUCKETS_PER_SHARD_MAX);
        // Busy tokens stay limited; their buckets are dropped once they are full.
        assert!(limiter.take_at(TokenNo(tokens - 1), 1, start).is_err());
        let rested = start + Duration::from_secs(10);
        (0..64).for_each(|token| assert_eq!(limiter.take_at(TokenNo(tokens + token), 1, rested), Ok(())));
        assert_eq!(limiter.remembered(), 64);
    }
}
