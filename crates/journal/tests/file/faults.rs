//! Full disks are survived, failing ones stop the journal.

use crate::faulty_disk::{FaultyDisk, Random, create, open};
use leasehold_journal::conformance::{append, batch, check_records, keys, local, stamp};
use leasehold_journal::{AppendError, FileJournal, Journal, Options, PrepareError};
use std::sync::Arc;

const SEGMENT: &str = "journal/00000001.seg";

#[test]
fn a_full_disk_is_survived() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 1);
    // Room for half a segment, once the one that is ready is used up.
    disk.limit(Some(disk.bytes() + 1500));
    let mut full = None;
    while full.is_none() {
        let mut next = batch(&keys, journal.head().size, 5);
        match journal.append(&mut next) {
            Ok(_) => {}
            Err(AppendError::Full) => full = Some(next),
            Err(error) => panic!("{error}"),
        }
    }
    let size = journal.head().size;
    for _ in 0..3 {
        assert!(matches!(journal.prepare(), Err(PrepareError::Full(_))));
        assert!(!disk.image().contains_key("journal/00000003.seg"), "nothing half-made stays");
    }
    journal.checkpoint(stamp(0)).unwrap().unwrap();
    check_records(&journal, &keys, size);

    // A restart on the full disk can still read.
    let image = disk.image();
    let again = FaultyDisk::from_image(&image);
    again.limit(Some(again.bytes()));
    let (reopened, recovered) = open(&again, &keys).unwrap();
    assert_eq!(recovered.size, size);
    assert!(matches!(reopened.prepare(), Err(PrepareError::Full(_))));
    check_records(&reopened, &keys, size);

    disk.limit(None);
    journal.prepare().unwrap();
    journal.append(&mut full.unwrap()).unwrap();
    check_records(&journal, &keys, size + 5);
}

#[test]
fn a_tree_file_waits_for_room() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for _ in 0..3 {
        append(&journal, &keys, 9);
    }
    disk.limit(Some(disk.bytes()));
    let second = "journal/00000002.tree";
    assert_eq!(journal.checkpoint(stamp(0)).unwrap().unwrap().size(), 27);
    assert!(!disk.image().contains_key(second));
    disk.limit(None);
    append(&journal, &keys, 1);
    journal.checkpoint(stamp(0)).unwrap().unwrap();
    assert!(disk.image().contains_key(second));
}

#[test]
fn a_trimmed_journal_on_a_full_disk_goes_on_when_there_is_room() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 3);
    journal.close(stamp(0)).unwrap();
    drop(journal);
    disk.limit(Some(disk.bytes() + 100));
    let (journal, _) = open(&disk, &keys).unwrap();
    assert!(matches!(journal.append(&mut batch(&keys, 3, 1)), Err(AppendError::Full)));
    assert!(matches!(journal.prepare(), Err(PrepareError::Full(_))));
    disk.limit(None);
    journal.prepare().unwrap();
    journal.append(&mut batch(&keys, 3, 1)).unwrap();
    check_records(&journal, &keys, 4);
    journal.checkpoint(stamp(0)).unwrap().unwrap();
    drop(journal);
    let (journal, _) = open(&disk, &keys).unwrap();
    check_records(&journal, &keys, 4);
}

#[test]
fn too_many_open_files_are_not_a_failed_disk() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 1);
    assert_eq!(journal.checkpoint(stamp(0)).unwrap().unwrap().size(), 1);
    journal.prepare().unwrap();
    disk.run_out_of_files(true);
    // The segments in use are open: records are appended, and those of the first one are read back.
    journal.append(&mut batch(&keys, 1, 5)).unwrap();
    assert_eq!(journal.checkpoint(stamp(0)).unwrap().unwrap().size(), 6);
    // What needs another file waits for it.
    let full = loop {
        let mut next = batch(&keys, journal.head().size, 5);
        match journal.append(&mut next) {
            Ok(_) => {}
            Err(AppendError::Full) => break next,
            Err(error) => panic!("{error}"),
        }
    };
    let size = journal.head().size;
    assert!(disk.image().contains_key("journal/00000002.seg"));
    for _ in 0..3 {
        assert!(matches!(journal.prepare(), Err(PrepareError::Io(_))));
        assert_eq!(journal.checkpoint(stamp(0)).unwrap(), None);
        assert!(journal.checkpointed().size() < size);
    }
    disk.run_out_of_files(false);
    journal.prepare().unwrap();
    journal.append(&mut { full }).unwrap();
    assert_eq!(journal.checkpoint(stamp(0)).unwrap().unwrap().size(), size + 5);
    assert!(disk.image().contains_key("journal/00000002.tree"));
    journal.close(stamp(0)).unwrap();
    drop(journal);
    let (journal, _) = open(&disk, &keys).unwrap();
    check_records(&journal, &keys, size + 5);
}

#[test]
fn a_failed_sync_or_write_stops_the_journal_for_good() {
    let keys = keys();
    for write in [false, true] {
        let disk = FaultyDisk::default();
        let journal = create(&disk, &keys);
        append(&journal, &keys, 2);
        match write {
            true => disk.fail_write_to(SEGMENT),
            false => disk.fail_sync_of(SEGMENT),
        }
        let mut next = batch(&keys, 2, 2);
        for _ in 0..3 {
            // The disk works again after the first failure; the journal does not try.
            let error = journal.append(&mut next).unwrap_err();
            assert!(matches!(error, AppendError::Failed(_)), "{error}");
        }
        assert_eq!(journal.head().size, 2);
        check_records(&journal, &keys, 2);
        assert!(journal.checkpoint(stamp(0)).is_err());
        drop(journal);

        // The next start finds the batch whole in the cache, or torn, and either is made true.
        let (journal, recovered) = open(&disk, &keys).unwrap();
        assert_eq!(recovered.size, if write { 2 } else { 4 });
        drop(journal);
        let disk = disk.after_crash(&mut Random(1));
        let (journal, again) = open(&disk, &keys).unwrap();
        assert_eq!(again.size, recovered.size, "what a start has counted stays");
        check_records(&journal, &keys, again.size);
    }
}

#[test]
fn bytes_that_changed_behind_its_back_stop_the_journal() {
    use leasehold_journal::disk::{Access, Disk};
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 3);
    let file = disk.open(SEGMENT, Access::Update).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 300).unwrap();
    file.write_at(&[byte[0] ^ 1], 300).unwrap();
    let failure = journal.checkpoint(stamp(0)).unwrap_err();
    assert!(failure.to_string().contains("read back"), "{failure}");
    let mut next = batch(&keys, 3, 1);
    assert!(matches!(journal.append(&mut next), Err(AppendError::Failed(_))));
}

#[test]
fn a_failed_anchor_stops_the_journal() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 3);
    disk.fail_sync_of("anchor");
    assert!(journal.checkpoint(stamp(0)).is_err());
    let mut next = batch(&keys, 3, 1);
    assert!(matches!(journal.append(&mut next), Err(AppendError::Failed(_))));
    drop(journal);
    let (journal, recovered) = open(&disk, &keys).unwrap();
    assert_eq!(recovered.size, 3);
    check_records(&journal, &keys, 3);
}

#[test]
fn a_start_on_a_full_disk_has_room_for_its_records() {
    let keys = keys();
    let options = Options { segment_bytes: 128 << 10, index_bytes: 512 };
    let open = |disk: &FaultyDisk| {
        let disk = Arc::new(disk.clone());
        FileJournal::open(disk, options, keys.clone(), local(), stamp(0)).unwrap().0
    };
    // Wherever in a segment the stop was, also near its end.
    for batches in [1, 40, 88, 89, 90, 91, 92, 93, 94, 95] {
        let disk = FaultyDisk::default();
        let shared = Arc::new(disk.clone());
        let journal = FileJournal::create(shared, options, keys.clone(), local(), stamp(0)).unwrap();
        for _ in 0..batches {
            append(&journal, &keys, 9);
        }
        journal.prepare().unwrap();
        journal.close(stamp(0)).unwrap();
        drop(journal);
        // The disk has not one byte left, again and again.
        for round in 0..4 {
            disk.limit(Some(disk.bytes()));
            let journal = open(&disk);
            let size = journal.head().size;
            let _ = journal.prepare();
            let appended = journal.append(&mut batch(&keys, size, 2));
            appended.unwrap_or_else(|error| panic!("{batches} batches, round {round}: {error}"));
            assert!(matches!(journal.prepare(), Err(PrepareError::Full(_))));
            journal.close(stamp(0)).unwrap();
        }
        disk.limit(None);
        let journal = open(&disk);
        journal.prepare().unwrap();
        assert!(journal.room() >= options.segment_bytes - 96);
        check_records(&journal, &keys, batches * 9 + 8);
    }
}
