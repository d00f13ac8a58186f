//! Which snapshots are kept: the newest for starting again, and one now and then for explaining the past.

use std::collections::BTreeSet;

/// The newest ones that are kept, so that a damaged one costs little.
pub const SNAPSHOTS_NEWEST: usize = 2;
/// Of each so many records the first snapshot is kept, so that no replay is longer.
pub const SNAPSHOT_EVERY: u64 = 1_000_000;

/// Of snapshots of these sizes, those that nobody needs any more, ascending.
pub fn snapshots_to_remove(sizes: &[u64]) -> Vec<u64> {
    let all: BTreeSet<u64> = sizes.iter().copied().collect();
    let mut kept: BTreeSet<u64> = all.iter().rev().take(SNAPSHOTS_NEWEST).copied().collect();
    let mut million = 0;
    for size in &all {
        // Below the first million a replay from the first record is as short.
        if size / SNAPSHOT_EVERY > million {
            million = size / SNAPSHOT_EVERY;
            kept.insert(*size);
        }
    }
    all.difference(&kept).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_two_and_the_first_of_each_million_stay() {
        let check = |sizes: &[u64], removed: &[u64]| {
            assert_eq!(snapshots_to_remove(sizes), removed, "{sizes:?}");
        };
        check(&[], &[]);
        check(&[5], &[]);
        check(&[5, 6], &[]);
        check(&[7, 5, 6], &[5]);
        check(
            &[10, 999_999, 1_000_000, 1_500_000, 3_200_000, 3_999_999, 4_000_001, 4_000_002, 4_000_003],
            &[10, 999_999, 1_500_000, 3_999_999],
        );
        // Pruning again removes nothing more.
        check(&[1_000_000, 3_200_000, 4_000_001, 4_000_002, 4_000_003], &[]);
    }
}
