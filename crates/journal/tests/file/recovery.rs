//! What is opened again, and what is cut off.

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, create, open, open_image};
use crate::story::{Restamped, SEGMENT, code, end_of_bytes, journal_of, version_1_batch};
use leasehold_journal::conformance::{append, batch, check_records, keys, local, record, stamp};
use leasehold_journal::disk::Disk;
use leasehold_journal::{
    AppendError, FileJournal, Head, Journal, Local, OpenError, Options, ReadError, RealDisk, TornTail,
};
use leasehold_model::{Batch, Instant, RawBatch, Record};
use std::ops::ControlFlow;
use std::sync::Arc;

#[test]
fn a_journal_ahead_of_its_anchor_is_rolled_forward() {
    let keys = keys();
    let image = journal_of(&[2, 3, 4, 1], 2, &keys);
    let (journal, recovered) = open_image(&image, &keys).unwrap();
    assert_eq!((recovered.size, recovered.rolled_forward), (10, 5));
    assert_eq!(recovered.torn, None);
    assert_eq!(journal.checkpointed().size(), 10);
    check_records(&journal, &keys, 10);
}

#[test]
fn every_cut_through_the_last_batch_leaves_the_one_before() {
    let keys = keys();
    let without = journal_of(&[2, 3], 2, &keys);
    let image = journal_of(&[2, 3, 3], 2, &keys);
    let begin = end_of_bytes(&without[SEGMENT]);
    let end = end_of_bytes(&image[SEGMENT]);
    assert!(end > begin + 300);
    for cut in begin..end {
        for padded in [true, false] {
            let mut image = image.clone();
            let segment = image.get_mut(SEGMENT).unwrap();
            let whole = segment.len();
            segment.truncate(cut);
            if padded {
                segment.resize(whole, 0);
            }
            let (journal, recovered) = open_image(&image, &keys).unwrap();
            assert_eq!(recovered.size, 5, "cut at {cut}");
            let torn = recovered.torn.map(|torn| (torn.segment, torn.offset));
            assert_eq!(torn, (cut > begin).then_some((1, begin as u64)), "cut at {cut}");
            append(&journal, &keys, 4);
            check_records(&journal, &keys, 9);
        }
    }
}

#[test]
fn a_torn_beginning_of_a_segment_counts_as_not_begun() {
    let keys = keys();
    // The third batch does not fit any more, so the second segment begins with it.
    let image = journal_of(&[9, 9, 9], 2, &keys);
    let second = "journal/00000002.seg";
    let end = end_of_bytes(&image[second]);
    assert!(end > 1000, "{end}");
    for cut in 0..end {
        let mut image = image.clone();
        image.get_mut(second).unwrap()[cut..].fill(0);
        let (journal, recovered) = open_image(&image, &keys).unwrap();
        assert_eq!(recovered.size, 18, "cut at {cut}");
        let torn = recovered.torn.map(|torn| (torn.segment, torn.offset));
        assert_eq!(torn, (cut > 0).then_some((2, 0)), "cut at {cut}");
        append(&journal, &keys, 9);
        check_records(&journal, &keys, 27);
    }
    // The header may be what is missing.
    let mut headless = image.clone();
    headless.get_mut(second).unwrap()[..512].fill(0);
    let (_, recovered) = open_image(&headless, &keys).unwrap();
    assert_eq!((recovered.size, recovered.torn.unwrap().segment), (18, 2));
    // But not before a batch that is good.
    let mut broken = image.clone();
    broken.get_mut(second).unwrap()[..96].fill(0);
    assert_eq!(code(open_image(&broken, &keys)), "journal_corrupt");
}

/// Verification begins where the torn segment does, and so reads no batch of it: the last record is in the segment before.
#[test]
fn a_torn_beginning_of_a_segment_is_cut_off_after_a_snapshot_at_its_beginning() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 9);
    append(&journal, &keys, 9);
    let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
    journal.put_snapshot(&checkpoint.position, b"state").unwrap();
    append(&journal, &keys, 9);
    let image = disk.image();
    let second = "journal/00000002.seg";
    for cut in [0, 50, 96, 150, end_of_bytes(&image[second]) - 1] {
        let mut image = image.clone();
        image.get_mut(second).unwrap()[cut..].fill(0);
        let (journal, recovered) = open_image(&image, &keys).unwrap();
        assert_eq!((recovered.size, recovered.verified_from), (18, 18), "cut at {cut}");
        check_records(&journal, &keys, 18);
        append(&journal, &keys, 9);
        check_records(&journal, &keys, 27);
    }
}

/// The directory that was copied may be started again after the copy; its epochs are not used a second time.
#[test]
fn a_restored_journal_continues_in_an_epoch_that_the_old_directory_does_not_reach() {
    let keys = keys();
    let image = journal_of(&[2, 3], 2, &keys);
    let (old, _) = open_image(&image, &keys).unwrap();
    assert_eq!(old.epoch(), 2);
    let disk = FaultyDisk::from_image(&image);
    let restored = |disk: &FaultyDisk, restored: Option<Instant>, now: Instant| {
        let local = Local { restored, ..local() };
        FileJournal::open(Arc::new(disk.clone()), OPTIONS, keys.clone(), local, now).unwrap().0.epoch()
    };
    let now = Instant::from_secs(1_800_000_000);
    assert_eq!(restored(&disk, Some(stamp(5)), now), 1_800_000_000);
    // A clock that is far behind does not make epochs repeat within a directory.
    assert_eq!(restored(&FaultyDisk::from_image(&image), Some(stamp(5)), Instant(0)), 2);
}

#[test]
fn a_clean_stop_leaves_no_padding() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for _ in 0..5 {
        append(&journal, &keys, 9);
    }
    journal.close(stamp(45)).unwrap();
    let image = disk.image();
    for (name, bytes) in image.iter().filter(|(name, _)| name.ends_with(".seg")) {
        assert!(bytes.len() > 96);
        // The last one is a reserve for a start on a full disk: small, and not begun.
        match bytes.iter().all(|byte| *byte == 0) {
            true => assert!(bytes.len() < 96 + 100, "{name}"),
            false => assert_ne!(bytes.last(), Some(&0), "{name}"),
        }
    }
    drop(journal);
    let (journal, recovered) = open(&disk, &keys).unwrap();
    assert_eq!((recovered.rolled_forward, recovered.torn), (0, None));
    assert!(journal.room() > 0);
    append(&journal, &keys, 9);
    check_records(&journal, &keys, 54);
}

#[test]
fn early_segments_can_be_moved_away() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for round in 0..8 {
        append(&journal, &keys, 9);
        let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
        if round == 5 {
            journal.put_snapshot(&checkpoint.position, b"state").unwrap();
        }
    }
    let mut image = disk.image();
    image.remove(SEGMENT);
    image.remove("journal/00000002.seg");
    let (journal, _) = open_image(&image, &keys).unwrap();
    assert_eq!(journal.head().size, 72);
    let all = |_: u64, _: leasehold_model::RawRecord<'_>| ControlFlow::Continue(());
    assert!(matches!(journal.scan(3, &mut { all }), Err(ReadError::Archived { segment: 2 })));
    let mut seen = 0;
    let first = journal.load_snapshot(u64::MAX).unwrap().snapshot.unwrap().position;
    journal
        .scan_verified(first.head, &mut |_, _, _| {
            seen += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen, 72 - first.size());
    append(&journal, &keys, 9);
    journal.checkpoint(stamp(0)).unwrap().unwrap();

    // What stands in for them must be there.
    let mut treeless = image.clone();
    treeless.remove("journal/00000003.tree");
    assert_eq!(code(open_image(&treeless, &keys)), "journal_segment_missing");
    let mut stateless = image.clone();
    stateless.retain(|name, _| !name.starts_with("snapshots/"));
    assert_eq!(code(open_image(&stateless, &keys)), "journal_segment_missing");
}

#[test]
fn segments_that_were_moved_away_are_read_in_their_archive() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for round in 0..8 {
        append(&journal, &keys, 9);
        let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
        if round == 5 {
            journal.put_snapshot(&checkpoint.position, b"state").unwrap();
        }
    }
    let (data, archived): (Image, Image) = disk.image().into_iter().partition(|(name, _)| {
        let early = ["journal/00000001", "journal/00000002"];
        !early.iter().any(|early| name.starts_with(early))
    });
    let open_with = |data: &Image, archives: &[&Image]| {
        let archives = archives.iter().map(|image| -> Arc<dyn Disk> { Arc::new(FaultyDisk::from_image(image)) });
        let local = leasehold_journal::Local { archives: archives.collect(), ..local() };
        FileJournal::open(Arc::new(FaultyDisk::from_image(data)), OPTIONS, keys.clone(), local, stamp(0))
    };
    // As they were in the data directory, and directly in the archive.
    let flat: Image = archived.iter().map(|(name, bytes)| (name.replace("journal/", ""), bytes.clone())).collect();
    let mut stateless = data.clone();
    stateless.retain(|name, _| !name.starts_with("snapshots/"));
    for archive in [&archived, &flat] {
        for data in [&data, &stateless] {
            let (journal, recovered) = open_with(data, &[archive]).unwrap();
            assert_eq!((recovered.size, journal.missing_segment()), (72, None));
            check_records(&journal, &keys, 72);
            append(&journal, &keys, 9);
            journal.checkpoint(stamp(0)).unwrap().unwrap();
            journal.close(stamp(0)).unwrap();
            check_records(&journal, &keys, 81);
        }
    }
    // Each in another one; and the first one that is missing is named.
    let only = |number: &str| -> Image {
        let names = flat.iter().filter(|(name, _)| name.starts_with(number));
        names.map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
    };
    let (first, second) = (only("00000001"), only("00000002"));
    check_records(&open_with(&stateless, &[&second, &first]).unwrap().0, &keys, 72);
    for (archives, missing) in [(vec![], 1), (vec![&second], 1), (vec![&first], 2)] {
        let error = open_with(&stateless, &archives).err().unwrap();
        assert!(matches!(error, OpenError::MissingSegment { segment } if segment == missing), "{error}");
        let (journal, _) = open_with(&data, &archives).unwrap();
        assert_eq!(journal.missing_segment(), Some(missing));
    }
    // What is damaged there is noticed when it is read.
    let mut damaged = flat.clone();
    damaged.get_mut("00000001.seg").unwrap()[300] ^= 1;
    assert!(
        open_with(&stateless, &[&damaged]).is_err() || {
            let (journal, _) = open_with(&stateless, &[&damaged]).unwrap();
            journal.scan(0, &mut |_, _| ControlFlow::Continue(())).is_err()
        }
    );
}

#[test]
fn segments_moved_away_while_it_runs_are_missed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let keys = keys();
    let disk = Arc::new(RealDisk::new(folder.path()));
    let journal = FileJournal::create(disk, OPTIONS, keys.clone(), local(), stamp(0)).unwrap();
    for _ in 0..5 {
        append(&journal, &keys, 9);
    }
    std::fs::remove_file(folder.path().join(SEGMENT)).unwrap();
    let read = journal.record(2);
    assert!(matches!(read, Err(ReadError::Archived { segment: 1 })));
    assert!(journal.record(44).unwrap().is_some());
}

#[test]
fn a_snapshot_that_lies_is_passed_over() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 4);
    let mut position = journal.checkpoint(stamp(0)).unwrap().unwrap().position;
    append(&journal, &keys, 4);
    journal.checkpoint(stamp(0)).unwrap().unwrap();
    let parts = position.tree.parts().iter().map(|_| [3; 32]).collect();
    position.tree = leasehold_tlog::Frontier::from_parts(4, parts).unwrap();
    journal.put_snapshot(&position, b"state").unwrap();
    let mut elsewhere = journal.checkpointed().position;
    elsewhere.head.hash = [3; 32];
    journal.put_snapshot(&elsewhere, b"state").unwrap();
    let (journal, recovered) = open_image(&disk.image(), &keys).unwrap();
    assert_eq!(recovered.verified_from, 0);
    check_records(&journal, &keys, 8);
}

#[test]
fn damaged_snapshots_are_passed_over_and_named() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for state in [b"first state", b"other state"] {
        append(&journal, &keys, 4);
        let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
        journal.put_snapshot(&checkpoint.position, state).unwrap();
    }
    let image = disk.image();
    let newest = "snapshots/00000000000000000008.snap";
    for at in 0..image[newest].len() {
        let mut image = image.clone();
        image.get_mut(newest).unwrap()[at] ^= 4;
        let (journal, _) = open_image(&image, &keys).unwrap();
        let loaded = journal.load_snapshot(u64::MAX).unwrap();
        assert_eq!(loaded.snapshot.unwrap().state, b"first state", "flip at {at}");
        assert_eq!(loaded.damaged[0].size, 8);
        check_records(&journal, &keys, 8);
    }
}

#[test]
fn a_restart_reads_from_the_newest_snapshot_on() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for round in 1..=10 {
        append(&journal, &keys, 8);
        let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
        if round == 8 || round == 10 {
            journal.put_snapshot(&checkpoint.position, b"").unwrap();
        }
        if round < 8 {
            continue;
        }
        let (journal, recovered) = open_image(&disk.image(), &keys).unwrap();
        assert!(recovered.verified_from >= 64);
        // The last stamp is known, though its record may not have been verified.
        journal.prepare().unwrap();
        let mut early = Batch::new(round * 8);
        early.push(&record(round * 8).restamped(3));
        assert!(matches!(journal.append(&mut early), Err(AppendError::Refused { .. })));
    }
}

#[test]
fn idempotency_keys_cannot_pass_for_batches() {
    let keys = keys();
    // A whole batch of one record, small enough for an idempotency key, inside a record that is then torn. Only one of
    // format version 1 is: with a MAC it is longer than a key.
    let mut inner = Batch::new(3);
    inner.push(&Record::new(3, stamp(3), leasehold_model::body::Heartbeat {}));
    inner.seal(&[0; 32], &leasehold_model::frame::NoKeys).unwrap();
    assert!(inner.bytes().len() > 64);
    let inner = version_1_batch(inner.bytes());
    assert!(inner.len() <= 64 && RawBatch::read(&inner).is_ok());
    let mut hostile = record(30);
    hostile.idempotency = Some(leasehold_model::Idempotency {
        owner: None,
        key: leasehold_model::Key::new(&inner).expect("it fits a key"),
        payload: [0; 16],
    });
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 10);
    append(&journal, &keys, 9);
    append(&journal, &keys, 11);
    let mut last = Batch::new(30);
    last.push(&hostile);
    journal.append(&mut last).unwrap();
    let mut image = disk.image();
    let segment = image.iter_mut().rfind(|(name, bytes)| name.ends_with(".seg") && end_of_bytes(bytes) > 0);
    let (_, bytes) = segment.unwrap();
    let end = end_of_bytes(bytes);
    bytes[end - 20] ^= 1;
    let (_, recovered) = open_image(&image, &keys).unwrap();
    assert_eq!(recovered.size, 30);
    assert!(matches!(recovered.torn, Some(TornTail { .. })));
}

#[test]
fn options_may_change_between_starts() {
    let folder = tempfile::tempdir().unwrap();
    let keys = keys();
    let disk = || Arc::new(RealDisk::new(folder.path()));
    let mut size = 0;
    drop(FileJournal::create(disk(), OPTIONS, keys.clone(), local(), stamp(0)).unwrap());
    for segment_bytes in [3072, 8192, 2048, 5000, 3072] {
        let options = Options { segment_bytes, index_bytes: 100 };
        let (journal, _) = FileJournal::open(disk(), options, keys.clone(), local(), stamp(0)).unwrap();
        for _ in 0..6 {
            size = append(&journal, &keys, 7).size;
        }
        check_records(&journal, &keys, size);
        journal.close(stamp(0)).unwrap();
    }
    let options = Options { segment_bytes: 100, index_bytes: 1 };
    let refused = FileJournal::open(disk(), options, keys.clone(), local(), stamp(0));
    assert_eq!(code(refused), "journal_bad_options");
}

#[test]
fn an_interrupted_creation_can_be_repeated() {
    let keys = keys();
    let whole = FaultyDisk::default();
    drop(create(&whole, &keys));
    for crash in 1..=whole.operations() {
        let disk = FaultyDisk::default();
        disk.crash_at(crash);
        let created = FileJournal::create(Arc::new(disk.clone()), OPTIONS, keys.clone(), local(), stamp(0));
        assert!(created.is_err());
        for seed in 0..8 {
            let disk = disk.after_crash(&mut crate::faulty_disk::Random(seed));
            let journal = match open(&disk, &keys) {
                Ok((journal, _)) => journal,
                Err(OpenError::NoJournal) => create(&disk, &keys),
                Err(error) => panic!("crash at {crash}, seed {seed}: {error}"),
            };
            assert_eq!(journal.head(), Head::EMPTY);
            journal.prepare().unwrap();
            journal.append(&mut batch(&keys, 0, 3)).unwrap();
            check_records(&journal, &keys, 3);
        }
    }
}

#[test]
fn a_segment_that_was_torn_leaves_no_tree_file() {
    let keys = keys();
    let mut image = journal_of(&[9, 9, 9], 1, &keys);
    // Of the second segment only the header got through.
    image.get_mut("journal/00000002.seg").unwrap()[96..].fill(0);
    let disk = FaultyDisk::from_image(&image);
    // With larger segments the first one goes on, and the second will begin elsewhere.
    let options = Options { segment_bytes: 8000, ..OPTIONS };
    let opened = FileJournal::open(Arc::new(disk.clone()), options, keys.clone(), local(), stamp(0));
    let (journal, recovered) = opened.unwrap();
    let torn = TornTail { segment: 2, offset: 0, bytes: 96 };
    assert_eq!((recovered.size, recovered.torn), (18, Some(torn)));
    assert!(!disk.image().contains_key("journal/00000002.tree"));
    for _ in 0..8 {
        append(&journal, &keys, 9);
        journal.checkpoint(stamp(0)).unwrap().unwrap();
    }
    drop(journal);
    let (journal, recovered) = open(&disk, &keys).unwrap();
    assert!(recovered.verified_from > 18);
    check_records(&journal, &keys, 90);
}

#[test]
fn a_folder_that_is_not_there_holds_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(RealDisk::new(folder.path().join("deep/down")));
    let keys = keys();
    let opened = FileJournal::open(disk(), OPTIONS, keys.clone(), local(), stamp(0));
    assert_eq!(code(opened), "journal_not_found");
    drop(FileJournal::create(disk(), OPTIONS, keys.clone(), local(), stamp(0)).unwrap());
    assert!(FileJournal::open(disk(), OPTIONS, keys, local(), stamp(0)).is_ok());
}
