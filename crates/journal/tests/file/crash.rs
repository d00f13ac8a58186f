//! The power fails at every operation in turn, also while recovering: what was acknowledged stays.

use crate::faulty_disk::{FaultyDisk, Random, create, open};
use leasehold_journal::conformance::{append, batch, check_records, keys, stamp};
use leasehold_journal::{FileJournal, Journal, Keys};
use std::sync::Arc;

/// What the outside world was told.
#[derive(Default)]
struct Told {
    acknowledged: u64,
    /// The batch in flight when the power failed, if one was.
    in_flight: u64,
    checkpointed: u64,
    snapshot: u64,
}

/// Works until it is done or the power fails.
fn work(journal: &FileJournal, keys: &Keys, random: &mut Random, told: &mut Told) -> Option<()> {
    for _ in 0..14 {
        if journal.prepare().is_err() {
            return None;
        }
        let count = 1 + random.below(9);
        let mut batch = batch(keys, journal.head().size, count);
        told.in_flight = count;
        told.acknowledged = journal.append(&mut batch).ok()?.size;
        told.in_flight = 0;
        if random.below(3) == 0
            && let Some(checkpoint) = journal.checkpoint(stamp(0)).ok()?
        {
            told.checkpointed = checkpoint.size();
            if random.below(3) == 0 {
                journal.put_snapshot(&checkpoint.position, &[7; 700]).ok()?;
                told.snapshot = checkpoint.size();
                journal.prune_snapshots().ok()?;
            }
        }
    }
    if random.below(2) == 0 {
        journal.close(stamp(0)).ok()?;
    }
    Some(())
}

fn reopen(disk: &FaultyDisk, keys: &Arc<Keys>, told: &Told, place: &str) -> FileJournal {
    let (journal, recovered) = match open(disk, keys) {
        Ok(opened) => opened,
        Err(error) => panic!("{place}: {error}"),
    };
    let sizes = told.acknowledged..=told.acknowledged + told.in_flight;
    assert!(sizes.contains(&recovered.size), "{place}: {} records, expected {sizes:?}", recovered.size);
    assert!(recovered.size >= told.checkpointed);
    check_records(&journal, keys, recovered.size);
    let loaded = journal.load_snapshot(u64::MAX).unwrap();
    assert_eq!(loaded.damaged, [], "{place}");
    assert!(loaded.snapshot.map_or(0, |snapshot| snapshot.position.size()) >= told.snapshot, "{place}");
    journal
}

#[test]
fn acknowledged_records_survive_a_crash_at_any_operation() {
    let keys = keys();
    for seed in 0..6 {
        let operations = {
            let disk = FaultyDisk::default();
            let journal = create(&disk, &keys);
            work(&journal, &keys, &mut Random(seed), &mut Told::default()).unwrap();
            disk.operations()
        };
        let created = {
            let disk = FaultyDisk::default();
            drop(create(&disk, &keys));
            disk.operations()
        };
        for crash in created + 1..=operations {
            let place = format!("seed {seed}, crash at {crash}");
            let disk = FaultyDisk::default();
            let journal = create(&disk, &keys);
            disk.crash_at(crash);
            let mut told = Told::default();
            assert!(work(&journal, &keys, &mut Random(seed), &mut told).is_none());
            drop(journal);

            let mut random = Random(seed << 32 | crash);
            let mut disk = disk.after_crash(&mut random);
            // It may fail again while it recovers, more than once.
            for _ in 0..random.below(3) {
                disk.crash_at(1 + random.below(12));
                drop(open(&disk, &keys));
                disk = disk.after_crash(&mut random);
            }
            let journal = reopen(&disk, &keys, &told, &place);
            let told = Told { acknowledged: append(&journal, &keys, 5).size, ..Told::default() };
            drop(journal);
            reopen(&disk.after_crash(&mut random), &keys, &told, &place);
        }
    }
}
