//! A histogram of latencies. Buckets are 1/32 of a power of two wide: bounded memory, an error of at most 3 %.

/// Buckets for each power of two.
const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.ilog2();

#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: vec![0; STEPS * 64], count: 0, max: 0 }
    }
}

/// Each number below 32 has its own bucket; for larger numbers the five bits after the leading one choose it.
fn bucket(ns: u64) -> usize {
    if ns < STEPS as u64 {
        return usize::try_from(ns).expect("a small number");
    }
    let shift = ns.ilog2() - STEP_BITS;
    let step = usize::try_from(ns >> shift).expect("six bits") - STEPS;
    STEPS * (shift as usize + 1) + step
}

/// The largest number in a bucket.
fn ceiling(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let (shift, step) = (bucket / STEPS - 1, bucket % STEPS);
    let next = (STEPS + step + 1) as u128;
    u64::try_from((next << shift) - 1).unwrap_or(u64::MAX)
}

impl Latencies {
    pub(crate) fn add(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.max = self.max.max(ns);
    }
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The quantile in thousandths; zero if there are no latencies.
    pub(crate) fn permille(&self, permille: u64) -> u64 {
        let rank = (self.count * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return ceiling(at).min(self.max);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_its_bucket() {
        for ns in (0..5000).chain([1 << 40, u64::MAX - 1, u64::MAX]) {
            assert!(ns <= ceiling(bucket(ns)), "{ns}");
            assert!(bucket(ns) == 0 || ns > ceiling(bucket(ns) - 1), "{ns}");
        }
    }

    #[test]
    fn percentiles_are_near() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.permille(500), 0);
        (1..=1000).for_each(|n| latencies.add(n * 1000));
        assert!((500_000..516_000).contains(&latencies.permille(500)), "{}", latencies.permille(500));
        assert_eq!(latencies.permille(1000), 1_000_000);
        assert_eq!(latencies.count(), 1000);
    }
}
