//! What is opened again, what is cut off, and what is refused.

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, create, open, open_image};
use leasehold_journal::conformance::{append, batch, check_records, genesis, keys, stamp};
use leasehold_journal::{FileJournal, Head, Journal, Keys, OpenError, Options, ReadError, RealDisk, TornTail};
use leasehold_model::Batch;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Appends batches of these counts, checkpointing after those before `checkpointed`, and dies.
fn journal_of(counts: &[u64], checkpointed: usize, keys: &Arc<Keys>) -> Image {
    let disk = FaultyDisk::default();
    let journal = create(&disk, keys);
    for (round, count) in counts.iter().enumerate() {
        append(&journal, keys, *count);
        if round < checkpointed {
            journal.checkpoint(stamp(0)).unwrap();
        }
    }
    disk.image()
}

const SEGMENT: &str = "journal/00000001.seg";

fn end_of_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)
}

fn code(opened: Result<(FileJournal, leasehold_journal::Recovered), OpenError>) -> &'static str {
    let error = opened.err().expect("a refusal");
    assert!(!error.to_string().is_empty());
    error.code()
}

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

#[test]
fn no_flipped_bit_goes_unseen() {
    let keys = keys();
    let mut image = journal_of(&[4, 9, 9, 3], 3, &keys);
    // Everything is verified from the first record on.
    image.retain(|name, _| !name.ends_with(".tree"));
    let whole = open_image(&image, &keys).unwrap().0.head();
    assert_eq!(whole.size, 25);
    for (name, bytes) in &image {
        for at in 0..bytes.len() {
            let mut image = image.clone();
            image.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
            let Ok((journal, recovered)) = open_image(&image, &keys) else {
                continue;
            };
            let said = recovered.torn.is_some() || recovered.anchor_slot_damaged;
            assert!(said, "a flip at {at} of {name} is passed over in silence");
            assert!(recovered.size >= 22, "a flip at {at} of {name} costs synced records");
            check_records(&journal, &keys, recovered.size);
        }
    }
}

#[test]
fn damage_in_old_segments_shows_when_they_are_read() {
    let keys = keys();
    let image = journal_of(&[9, 9, 9, 9, 9], 5, &keys);
    assert!(image.contains_key("journal/00000003.seg"));
    let end = end_of_bytes(&image[SEGMENT]);
    for at in (96..end).step_by(7) {
        let mut image = image.clone();
        image.get_mut(SEGMENT).unwrap()[at] ^= 0x10;
        let (journal, recovered) = open_image(&image, &keys).unwrap();
        assert!(recovered.verified_from > 0, "this start need not read the first segment");
        let read = journal.scan(0, &mut |_, _| ControlFlow::Continue(()));
        assert!(matches!(read, Err(ReadError::Corrupt { segment: 1, .. })));
    }
}

#[test]
fn damage_before_a_good_batch_names_its_place() {
    let keys = keys();
    let one = journal_of(&[2], 0, &keys);
    let mut image = journal_of(&[2, 3, 3], 0, &keys);
    let place = end_of_bytes(&one[SEGMENT]);
    image.get_mut(SEGMENT).unwrap()[place + 40] ^= 1;
    let error = open_image(&image, &keys).err().unwrap();
    let OpenError::Corrupt { segment, offset, sequence, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((segment, offset, sequence), (1, place as u64, 2));
}

#[test]
fn damage_that_the_anchor_signs_for_is_not_torn() {
    let keys = keys();
    let mut image = journal_of(&[2, 3], 2, &keys);
    let end = end_of_bytes(&image[SEGMENT]);
    image.get_mut(SEGMENT).unwrap()[end - 1] ^= 1;
    assert_eq!(code(open_image(&image, &keys)), "journal_corrupt");
    // Without a trace of the batch, the end was cut off.
    let before = end_of_bytes(&journal_of(&[2], 1, &keys)[SEGMENT]);
    image.get_mut(SEGMENT).unwrap()[before..].fill(0);
    assert_eq!(code(open_image(&image, &keys)), "journal_cut_off");
    image.remove(SEGMENT);
    assert_eq!(code(open_image(&image, &keys)), "journal_cut_off");
}

#[test]
fn a_rewritten_journal_does_not_fit_its_anchor() {
    let keys = keys();
    let image = journal_of(&[4], 1, &keys);
    // The same history with another name in it, sealed anew.
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    let mut forged = Batch::new(0);
    forged.push(&genesis(&keys));
    for sequence in 1..4 {
        forged.push(&leasehold_journal::conformance::record(sequence + 100).renumbered(sequence));
    }
    journal.append(&mut forged).unwrap();
    let mut rewritten = disk.image();
    rewritten.insert("anchor".into(), image["anchor"].clone());
    assert_eq!(code(open_image(&rewritten, &keys)), "journal_anchor_mismatch");
}

/// A record under another number, stamped accordingly.
trait Renumbered {
    fn renumbered(self, sequence: u64) -> Self;
}
impl Renumbered for leasehold_model::Record {
    fn renumbered(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self.stamp = stamp(sequence);
        self.effective_at = self.stamp;
        self
    }
}

#[test]
fn what_does_not_belong_is_refused_by_name() {
    let keys = keys();
    let image = journal_of(&[9, 9, 9, 9, 9], 5, &keys);
    let check = |change: &dyn Fn(&mut Image), expected: &str| {
        let mut image = image.clone();
        change(&mut image);
        assert_eq!(code(open_image(&image, &keys)), expected);
    };
    check(&|image| drop(image.remove("anchor")), "journal_anchor_missing");
    check(&|image| image.get_mut("anchor").unwrap().fill(b'x'), "journal_anchor_damaged");
    check(&|image| drop(image.insert("journal/notes.txt".into(), b"hello".to_vec())), "journal_foreign_file");
    check(&|image| drop(image.remove("journal/00000002.seg")), "journal_segment_missing");
    check(&|image| image.get_mut("journal/00000002.seg").unwrap().fill(0), "journal_corrupt");
    check(
        &|image| {
            let third = image["journal/00000003.seg"].clone();
            image.insert("journal/00000002.seg".into(), third);
        },
        "journal_corrupt",
    );
    check(
        &|image| {
            let header = &mut image.get_mut(SEGMENT).unwrap()[..96];
            header[8] = 2;
            let crc = crc32fast::hash(&header[..92]);
            header[92..].copy_from_slice(&crc.to_le_bytes());
        },
        "journal_newer_format",
    );

    let elsewhere = Arc::new(Keys::new("other.example", &[1; 32]).unwrap());
    assert_eq!(code(open_image(&image, &elsewhere)), "journal_wrong_origin");
    let stranger = Arc::new(Keys::new(keys.origin(), &[9; 32]).unwrap());
    assert_eq!(code(open_image(&image, &stranger)), "journal_key_missing");
    assert_eq!(code(open_image(&Image::new(), &keys)), "journal_not_found");
    let exists = FileJournal::create(Arc::new(FaultyDisk::from_image(&image)), OPTIONS, keys.clone(), stamp(0));
    assert_eq!(exists.err().unwrap().code(), "journal_exists");
}

#[test]
fn a_refusal_changes_nothing() {
    let keys = keys();
    let mut image = journal_of(&[2, 3, 3], 3, &keys);
    image.get_mut(SEGMENT).unwrap()[200] ^= 1;
    let disk = FaultyDisk::from_image(&image);
    assert!(open(&disk, &keys).is_err());
    assert_eq!(disk.image(), image);
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(RealDisk::new(folder.path()));
    let keys = keys();
    let journal = FileJournal::create(disk(), OPTIONS, keys.clone(), stamp(0)).unwrap();
    let reopen = || FileJournal::open(disk(), OPTIONS, keys.clone(), stamp(0));
    assert_eq!(code(reopen()), "journal_in_use");
    append(&journal, &keys, 1);
    journal.close(stamp(1)).unwrap();
    let (next, recovered) = reopen().unwrap();
    assert_eq!(recovered.size, 1);
    assert_eq!(next.epoch(), 2);
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
        assert_ne!(bytes.last(), Some(&0), "{name}");
        assert!(bytes.len() > 96);
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
fn segments_moved_away_while_it_runs_are_missed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let keys = keys();
    let disk = Arc::new(RealDisk::new(folder.path()));
    let journal = FileJournal::create(disk, OPTIONS, keys.clone(), stamp(0)).unwrap();
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
    for round in 0..10 {
        append(&journal, &keys, 8);
        let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
        if round == 7 {
            journal.put_snapshot(&checkpoint.position, b"").unwrap();
        }
    }
    let (journal, recovered) = open_image(&disk.image(), &keys).unwrap();
    assert!(recovered.verified_from >= 64);
    // Stamps are remembered across the start, though their records were not read.
    let mut early = Batch::new(80);
    early.push(&leasehold_journal::conformance::record(80).renumbered_only(80, 3));
    assert!(journal.append(&mut early).is_err());
    assert_eq!(journal.head().size, 80);
}

trait RenumberedOnly {
    fn renumbered_only(self, sequence: u64, stamped: u64) -> Self;
}
impl RenumberedOnly for leasehold_model::Record {
    fn renumbered_only(self, sequence: u64, stamped: u64) -> Self {
        let mut record = self.renumbered(stamped);
        record.sequence = sequence;
        record
    }
}

#[test]
fn idempotency_keys_cannot_pass_for_batches() {
    let keys = keys();
    // A whole batch of one record, small enough for an idempotency key, inside a record that is then torn.
    let mut inner = Batch::new(3);
    inner.push(&leasehold_model::Record::new(3, stamp(3), leasehold_model::body::Heartbeat {}));
    inner.seal(&[0; 32], &leasehold_model::frame::NoKeys).unwrap();
    assert!(inner.bytes().len() <= 64);
    let mut hostile = leasehold_journal::conformance::record(30);
    hostile.idempotency =
        Some(leasehold_model::Idempotency { owner: None, key: inner.bytes().into(), payload: [0; 16] });
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
    drop(FileJournal::create(disk(), OPTIONS, keys.clone(), stamp(0)).unwrap());
    for segment_bytes in [3072, 8192, 2048, 5000, 3072] {
        let options = Options { segment_bytes, index_bytes: 100 };
        let (journal, _) = FileJournal::open(disk(), options, keys.clone(), stamp(0)).unwrap();
        for _ in 0..6 {
            size = append(&journal, &keys, 7).size;
        }
        check_records(&journal, &keys, size);
        journal.close(stamp(0)).unwrap();
    }
    let options = Options { segment_bytes: 100, index_bytes: 1 };
    let refused = FileJournal::open(disk(), options, keys.clone(), stamp(0));
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
        let created = FileJournal::create(Arc::new(disk.clone()), OPTIONS, keys.clone(), stamp(0));
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
