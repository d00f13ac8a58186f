//! The power fails at every operation in turn, also while recovering: what was acknowledged stays.

use crate::faulty_disk::{FaultyDisk, Random, create, open};
use leasehold_journal::conformance::{append, batch, check_records, keys, stamp};
use leasehold_journal::{FileJournal, Journal, Keys};
use leasehold_model::body::KeyRotated;
use leasehold_model::{Batch, Record};
use std::path::Path;
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

/// A whole rotation, with records and checkpoints between its steps. Returns how many records were acknowledged.
fn rotate(journal: &FileJournal, keys: &Keys, path: &Path) -> (u64, Option<()>) {
    let mut acknowledged = 0;
    let mut add = |count: u64| {
        journal.prepare().ok()?;
        acknowledged = journal.append(&mut batch(keys, journal.head().size, count)).ok()?.size;
        journal.checkpoint(stamp(0)).ok()
    };
    let old_key = keys.public_keys()[0];
    let mut steps = || {
        add(9)?;
        let new_key = keys.prepare_next(path, &old_key, &[2; 32]).expect("the key file is on another disk");
        add(9)?;
        let sequence = journal.head().size;
        let mut rotation = Record::new(sequence, stamp(sequence), KeyRotated { old_key, new_key });
        rotation.signers.extend([old_key, new_key]);
        let mut batch = Batch::new(sequence);
        batch.push(&rotation);
        journal.prepare().ok()?;
        journal.append(&mut batch).ok()?;
        add(9)?;
        keys.retire_before(path, &new_key).expect("the key file is on another disk");
        add(9)?;
        add(9)?;
        Some(())
    };
    let done = steps();
    (acknowledged, done.map(|_| ()))
}

#[test]
fn a_rotation_survives_a_crash_at_any_operation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let begin = || {
        keys().save(&path).unwrap();
        let (disk, keys) = (FaultyDisk::default(), Arc::new(Keys::load(&path).unwrap()));
        let journal = create(&disk, &keys);
        (disk, keys, journal)
    };
    let (disk, keys, journal) = begin();
    let created = disk.operations();
    rotate(&journal, &keys, &path).1.expect("it is done");
    let mut signed = [0; 3];
    for crash in created + 1..=disk.operations() {
        let (disk, keys, journal) = begin();
        disk.crash_at(crash);
        let (acknowledged, done) = rotate(&journal, &keys, &path);
        assert!(done.is_none(), "crash at {crash}");
        drop(journal);
        // The next process has the key file, and the other disk as the crash left it.
        let keys = Arc::new(Keys::load(&path).unwrap());
        let disk = disk.after_crash(&mut Random(crash));
        let (journal, recovered) = open(&disk, &keys).unwrap_or_else(|error| panic!("crash at {crash}: {error}"));
        assert!(recovered.size >= acknowledged, "crash at {crash}");
        append(&journal, &keys, 5);
        let note = journal.checkpoint(stamp(0)).unwrap().expect("new").note;
        signed[note.matches("\u{2014} ").count()] += 1;
    }
    assert!(signed[1] > 0 && signed[2] > 0, "before, during and after the rotation: {signed:?}");
}
