//! Statistics of a running cell, as atomic counters that other threads can read.

use leasehold_model::body::{Denied, Granted};
use leasehold_model::{Body, DenyCause, Record};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Upper bounds of latencies of disks and queues in nanoseconds, from 10 µs to 10 s.
pub const LATENCY_BOUNDS_NS: &[u64] = &[
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
];
/// Upper bounds for the number of records in a batch.
const BATCH_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536];

/// A histogram. Several threads can add to it at once.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One count for each bound, and one for values above all bounds.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// `bounds` must be sorted.
    pub fn new(bounds: &'static [u64]) -> Self {
        assert!(bounds.is_sorted(), "bounds are sorted");
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub fn add(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn add_time(&self, took: Duration) {
        self.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Each bound with the number of values at or below it and above the bound before. `None` is for values above all
    /// bounds.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
    }
}

/// Statistics of the threads.
#[derive(Debug)]
pub struct Stats {
    pub batches: AtomicU64,
    pub records: AtomicU64,
    pub checkpoints: AtomicU64,
    pub snapshots: AtomicU64,
    pub snapshot_failures: AtomicU64,
    pub allocation_failures: AtomicU64,
    /// Jumps of the wall clock.
    pub clock_jumps_forward: AtomicU64,
    pub clock_jumps_back: AtomicU64,
    /// When the newest checkpoint last covered every record, in nanoseconds since 1970. Zero before the first
    /// checkpoint.
    pub checkpoint_covered_at_ns: AtomicU64,
    /// Number of records in each batch.
    pub batch_records: Histogram,
    /// Nanoseconds for sealing, writing and syncing a batch.
    pub append_ns: Histogram,
    /// The part of these nanoseconds in which the disk synced the batch.
    pub sync_ns: Histogram,
    /// Nanoseconds for making a durable batch visible to readers and replying.
    pub publish_ns: Histogram,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            batches: AtomicU64::default(),
            records: AtomicU64::default(),
            checkpoints: AtomicU64::default(),
            snapshots: AtomicU64::default(),
            snapshot_failures: AtomicU64::default(),
            allocation_failures: AtomicU64::default(),
            clock_jumps_forward: AtomicU64::default(),
            clock_jumps_back: AtomicU64::default(),
            checkpoint_covered_at_ns: AtomicU64::default(),
            batch_records: Histogram::new(BATCH_BOUNDS),
            append_ns: Histogram::new(LATENCY_BOUNDS_NS),
            sync_ns: Histogram::new(LATENCY_BOUNDS_NS),
            publish_ns: Histogram::new(LATENCY_BOUNDS_NS),
        }
    }
}

impl Stats {
    /// Counts a batch that became durable. Appending it began at `began`.
    pub(crate) fn appended(&self, records: u32, began: Instant, sync: Option<Duration>) {
        self.append_ns.add_time(began.elapsed());
        sync.into_iter().for_each(|sync| self.sync_ns.add_time(sync));
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(u64::from(records), Ordering::Relaxed);
        if records > 0 {
            self.batch_records.add(u64::from(records));
        }
    }
}

/// All codes of record kinds are below this.
const CODES: usize = 256;

/// The number of records that became visible to readers since startup, by kind.
#[derive(Debug)]
pub struct Published {
    kinds: [AtomicU64; CODES],
    pub leases_granted: AtomicU64,
    pub denied_by_quota: AtomicU64,
    pub denied_by_burst: AtomicU64,
    pub denied_by_capacity: AtomicU64,
    pub denied_by_ceiling: AtomicU64,
    pub denied_by_prepaid: AtomicU64,
}

impl Default for Published {
    fn default() -> Self {
        Self {
            kinds: std::array::from_fn(|_| AtomicU64::new(0)),
            leases_granted: AtomicU64::default(),
            denied_by_quota: AtomicU64::default(),
            denied_by_burst: AtomicU64::default(),
            denied_by_capacity: AtomicU64::default(),
            denied_by_ceiling: AtomicU64::default(),
            denied_by_prepaid: AtomicU64::default(),
        }
    }
}

impl Published {
    pub(crate) fn count(&self, record: &Record) {
        if let Some(kind) = self.kinds.get(record.body.kind() as usize) {
            kind.fetch_add(1, Ordering::Relaxed);
        }
        if let Body::Granted(Granted { members, .. }) = &record.body {
            self.leases_granted.fetch_add(members.len() as u64, Ordering::Relaxed);
        }
        if let Body::Denied(Denied { cause, .. }) = &record.body {
            let by = match cause {
                DenyCause::Quota { .. } | DenyCause::KindQuota { .. } => &self.denied_by_quota,
                DenyCause::BurstOver { .. } => &self.denied_by_burst,
                DenyCause::Capacity { .. } => &self.denied_by_capacity,
                DenyCause::Ceiling { .. } => &self.denied_by_ceiling,
                DenyCause::Prepaid { .. } => &self.denied_by_prepaid,
            };
            by.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Every kind with the number of its records.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Body::KINDS.iter().map(|(code, word)| (*word, self.kinds[*code as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_place() {
        assert!(Body::KINDS.iter().all(|(code, _)| (*code as usize) < CODES));
    }

    #[test]
    fn a_value_counts_at_the_first_bound_that_holds_it() {
        let histogram = Histogram::new(&[1, 10]);
        [0, 1, 2, 10, 11, u64::MAX / 2].into_iter().for_each(|value| histogram.add(value));
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(Some(1), 2), (Some(10), 2), (None, 2)]);
        assert_eq!((histogram.count(), histogram.sum()), (6, 24 + u64::MAX / 2));
    }
}
