//! What this daemon did not write does not count (SEMANTICS 11, "Local authenticity").

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, create, open_image};
use crate::story::{
    SEGMENT, closed, code, end_of_bytes, forged, journal_of, slot, version_1, version_1_batch, version_1_record,
};
use leasehold_journal::conformance::{append, batch, check_records, keys, local, record, stamp};
use leasehold_journal::{AppendError, FileJournal, Journal, Keys, Local, OpenError, Recovered, Secret, UnprovedTail};
use leasehold_model::body::{Body, Converted, Started, TailAction, TailResolved};
use leasehold_model::{Batch, Name, RawBatch, Record};
use std::ops::ControlFlow;
use std::sync::Arc;

type Opened = Result<(FileJournal, Recovered), OpenError>;

fn open_with(image: &Image, keys: &Arc<Keys>, local: Local) -> Opened {
    FileJournal::open(Arc::new(FaultyDisk::from_image(image)), OPTIONS, keys.clone(), local, stamp(0))
}

fn with_tail(tail: UnprovedTail) -> Local {
    Local { tail, ..local() }
}

fn other_secret(tail: UnprovedTail) -> Local {
    Local { tail, ..Local::new(Secret::new([8; 32])) }
}

/// A journal of so many records, stopped cleanly.
fn stopped(counts: &[u64], keys: &Arc<Keys>) -> Image {
    let disk = FaultyDisk::default();
    let journal = create(&disk, keys);
    for count in counts {
        append(&journal, keys, *count);
    }
    journal.close(stamp(100)).unwrap();
    disk.image()
}

/// Writes bytes where the last batch of the last segment ends.
fn extend(image: &mut Image, bytes: &[u8]) {
    let last = image.keys().filter(|name| name.ends_with(".seg") && end_of_bytes(&image[*name]) > 0).max();
    let segment = last.unwrap().clone();
    let segment = image.get_mut(&segment).unwrap();
    let end = end_of_bytes(segment);
    segment.resize(segment.len().max(end + bytes.len()), 0);
    segment[end..end + bytes.len()].copy_from_slice(bytes);
}

/// Refused as it is; discarded with `Cut`; never accepted. `size` records are left.
fn check_cut(image: &Image, keys: &Arc<Keys>, size: u64, records: u64) {
    assert_eq!(code(open_image(image, keys)), "journal_tail_unproved");
    assert_eq!(code(open_with(image, keys, with_tail(UnprovedTail::Accept))), "journal_tail_unproved");
    let disk = FaultyDisk::from_image(image);
    let cut = with_tail(UnprovedTail::Cut);
    let opened = FileJournal::open(Arc::new(disk.clone()), OPTIONS, keys.clone(), cut, stamp(0));
    let (journal, recovered) = opened.unwrap();
    let resolved = recovered.tail_resolved.unwrap();
    assert_eq!((recovered.size, resolved.action, resolved.records), (size, TailAction::Cut, records));
    assert!(resolved.bytes > 0);
    assert_eq!(journal.to_seal(), [Body::TailResolved(resolved)]);
    append(&journal, keys, 2);
    check_records(&journal, keys, size + 2);
    drop(journal);
    let (journal, recovered) = open_image(&disk.image(), keys).unwrap();
    assert_eq!((recovered.size, recovered.tail_resolved), (size + 2, None));
    check_records(&journal, keys, size + 2);
}

#[test]
fn after_a_clean_stop_nothing_may_follow_the_anchor() {
    let keys = keys();
    let image = stopped(&[4, 3], &keys);
    let head = open_image(&image, &keys).unwrap().0.head();
    // Zero padding is nothing.
    let mut padded = image.clone();
    padded.get_mut(SEGMENT).unwrap().extend([0; 500]);
    let (_, recovered) = open_image(&padded, &keys).unwrap();
    assert_eq!((recovered.size, recovered.rolled_forward, recovered.torn), (7, 0, None));
    // A batch that somebody made, half of one, and a single byte.
    let made = forged(head.hash, 7, 3, [0; 32], &keys);
    for (bytes, records) in [(&made[..], 3), (&made[..200], 0), (&[1][..], 0)] {
        let mut tampered = image.clone();
        extend(&mut tampered, bytes);
        check_cut(&tampered, &keys, 7, records);
    }
    // The same in a segment of its own, with a good header and with a bad one.
    let mut header = image[SEGMENT][..96].to_vec();
    header[12] = 2;
    header[16..24].copy_from_slice(&7u64.to_le_bytes());
    header[24..56].copy_from_slice(&head.hash);
    let crc = crc32fast::hash(&header[..92]);
    header[92..].copy_from_slice(&crc.to_le_bytes());
    for (bytes, records) in [([&header[..], &made].concat(), 3), (header.clone(), 0), (vec![9; 200], 0)] {
        let mut tampered = image.clone();
        tampered.insert("journal/00000002.seg".into(), bytes);
        check_cut(&tampered, &keys, 7, records);
    }
}

#[test]
fn what_an_earlier_run_wrote_may_not_follow_a_clean_stop() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 4);
    journal.close(stamp(4)).unwrap();
    let stopped = disk.image();
    drop(journal);
    let (journal, _) = crate::faulty_disk::open(&disk, &keys).unwrap();
    append(&journal, &keys, 3);
    let mut image = disk.image();
    assert_eq!(open_image(&image, &keys).unwrap().1.rolled_forward, 3);
    // The batch is ours; the stop after which it comes was clean.
    image.insert("anchor".into(), stopped["anchor"].clone());
    check_cut(&image, &keys, 4, 3);
}

#[test]
fn after_a_crash_only_batches_with_a_right_mac_are_rolled_forward() {
    let keys = keys();
    let image = journal_of(&[4, 3, 2], 1, &keys);
    let (journal, recovered) = open_image(&image, &keys).unwrap();
    assert_eq!((recovered.size, recovered.rolled_forward), (9, 5));
    let head = journal.head();
    let mut macs = vec![[0; 32], [7; 32]];
    journal
        .scan_batches(0, &mut |_, batch| {
            macs.push(*batch.mac().unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    // None, a made-up one, and the MACs of other batches.
    assert_eq!(macs.len(), 5);
    for mac in macs {
        let mut tampered = image.clone();
        extend(&mut tampered, &forged(head.hash, 9, 2, mac, &keys));
        check_cut(&tampered, &keys, 9, 2);
    }
    // A batch of ours with one record altered and everything hashed again.
    let end = end_of_bytes(&journal_of(&[4, 3], 1, &keys)[SEGMENT]);
    let mut altered = image.clone();
    let own = RawBatch::read(&image[SEGMENT][end..]).unwrap();
    let (mac, total) = (*own.mac().unwrap(), own.bytes_total());
    let prev = own.records().next().unwrap().unwrap().prev_hash();
    let mut made = Batch::new(7);
    made.push(&record(7));
    let mut other = record(8);
    other.identity.workload = Some(Name::new("something else").unwrap());
    made.push(&other);
    made.seal_with(&prev, keys.as_ref(), |_| mac).unwrap();
    let segment = altered.get_mut(SEGMENT).unwrap();
    segment[end..end + total].fill(0);
    extend(&mut altered, made.bytes());
    check_cut(&altered, &keys, 7, 2);
}

#[test]
fn a_refused_start_changes_nothing() {
    let keys = keys();
    let mut image = stopped(&[4], &keys);
    let head = open_image(&image, &keys).unwrap().0.head();
    extend(&mut image, &forged(head.hash, 4, 1, [0; 32], &keys));
    let disk = FaultyDisk::from_image(&image);
    let opened = FileJournal::open(Arc::new(disk.clone()), OPTIONS, keys.clone(), local(), stamp(0));
    let error = opened.err().unwrap();
    assert!(matches!(error, OpenError::UnprovedTail { segment: 1, records: 1, .. }), "{error}");
    assert!(error.is_damage());
    assert!(error.to_string().contains("--cut-unproved-tail"), "{error}");
    assert_eq!(disk.image(), image);
}

#[test]
fn a_lost_secret_costs_the_tail_and_the_snapshots() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 4);
    let checkpoint = journal.checkpoint(stamp(4)).unwrap().unwrap();
    journal.put_snapshot(&checkpoint.position, b"state").unwrap();
    let signed = disk.image();
    append(&journal, &keys, 3);
    let image = disk.image();
    drop(journal);

    // Everything is signed: nothing is lost but the snapshot.
    let (journal, recovered) = open_with(&signed, &keys, other_secret(UnprovedTail::Refuse)).unwrap();
    assert!(recovered.secret_lost);
    assert_eq!((recovered.size, recovered.verified_from, journal.to_seal().len()), (4, 0, 0));
    let loaded = journal.load_snapshot(u64::MAX).unwrap();
    assert_eq!((loaded.snapshot, loaded.damaged.len()), (None, 1));
    check_records(&journal, &keys, 4);

    // The tail cannot be authenticated any more.
    assert_eq!(code(open_with(&image, &keys, other_secret(UnprovedTail::Refuse))), "journal_tail_unproved");
    let (journal, recovered) = open_with(&image, &keys, other_secret(UnprovedTail::Accept)).unwrap();
    assert_eq!((recovered.size, recovered.rolled_forward), (7, 3));
    assert!(matches!(
        journal.to_seal()[..],
        [Body::TailResolved(TailResolved { action: TailAction::Accepted, records: 3, bytes: 1.. })]
    ));
    check_records(&journal, &keys, 7);
    let (journal, _) = open_with(&image, &keys, other_secret(UnprovedTail::Cut)).unwrap();
    check_records(&journal, &keys, 4);
    // With the right secret there is nothing to accept or to cut.
    for tail in [UnprovedTail::Accept, UnprovedTail::Cut] {
        let (journal, recovered) = open_with(&image, &keys, with_tail(tail)).unwrap();
        assert_eq!((recovered.size, recovered.tail_resolved), (7, None));
        check_records(&journal, &keys, 7);
    }
}

#[test]
fn a_snapshot_that_somebody_else_wrote_is_not_used() {
    use sha2::{Digest, Sha256};
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 3);
    let checkpoint = journal.checkpoint(stamp(3)).unwrap().unwrap();
    journal.put_snapshot(&checkpoint.position, b"quota 8  ").unwrap();
    let image = disk.image();
    let name = "snapshots/00000000000000000003.snap";
    // Another state with its SHA-256; the head with a SHA-256, as version 1 had it, and as it was.
    let mut snapshot = image[name].clone();
    let head = snapshot.len() - 9;
    snapshot[head..].copy_from_slice(b"quota 100");
    let state = Sha256::digest(b"quota 100");
    snapshot[96..128].copy_from_slice(&state);
    let mut of_version_1 = snapshot.clone();
    of_version_1[8] = 1;
    let checksum = Sha256::digest(&of_version_1[..head - 32]);
    of_version_1[head - 32..head].copy_from_slice(&checksum);
    let mut summed = snapshot.clone();
    let checksum = Sha256::digest(&summed[..head - 32]);
    summed[head - 32..head].copy_from_slice(&checksum);
    for made in [snapshot, of_version_1, summed] {
        let mut image = image.clone();
        image.insert(name.into(), made);
        let disk = FaultyDisk::from_image(&image);
        let (journal, recovered) = crate::faulty_disk::open(&disk, &keys).unwrap();
        assert_eq!(recovered.verified_from, 0);
        let loaded = journal.load_snapshot(u64::MAX).unwrap();
        assert_eq!((loaded.snapshot, loaded.damaged.len()), (None, 1));
        // It stays until there is another in its place.
        assert!(journal.prune_snapshots().unwrap().is_empty());
        append(&journal, &keys, 1);
        let checkpoint = journal.checkpoint(stamp(4)).unwrap().unwrap();
        journal.put_snapshot(&checkpoint.position, b"quota 8  ").unwrap();
        assert_eq!(journal.prune_snapshots().unwrap(), [3]);
        assert_eq!(journal.snapshots().unwrap(), [4]);
    }
}

#[test]
fn an_anchor_that_somebody_else_wrote_proves_nothing() {
    let keys = keys();
    let image = stopped(&[4], &keys);
    let text = |slot: &[u8]| String::from_utf8(slot.to_vec()).unwrap().trim_end_matches('\0').to_owned();
    let end_of_slots = |image: &Image| image["anchor"].chunks(4096).map(text).collect::<Vec<_>>();
    let slots = end_of_slots(&image);
    let (at, newest) = slots.iter().enumerate().find(|(_, text)| text.contains("state closed")).unwrap();
    // The mark is taken away: the other slot, which is ours, counts, and the batch is ours too.
    let body = newest.rsplit_once("end ").unwrap().0.replace("state closed", "state open");
    let mut opened = image.clone();
    opened.get_mut("anchor").unwrap()[at * 4096..][..4096].copy_from_slice(&slot(&closed(&body)));
    let (journal, recovered) = open_image(&opened, &keys).unwrap();
    assert!(recovered.anchor_slot_damaged);
    check_records(&journal, &keys, 4);
    let head = journal.head();
    extend(&mut opened, &forged(head.hash, 4, 1, [0; 32], &keys));
    assert_eq!(code(open_image(&opened, &keys)), "journal_tail_unproved");
    // Two slots of one counter.
    let other = newest.rsplit_once("end ").unwrap().0.replace("epoch 1", "epoch 2");
    let mut twice = image.clone();
    twice.get_mut("anchor").unwrap()[(1 - at) * 4096..][..4096].copy_from_slice(&slot(&closed(&other)));
    assert_eq!(code(open_image(&twice, &keys)), "journal_anchor_damaged");
}

fn first_batch_of(journal: &FileJournal, count: u64) -> Batch {
    let mut first = Batch::new(journal.head().size);
    for body in journal.to_seal() {
        first.push(&Record::new(first.next_sequence(), stamp(first.next_sequence()), body));
    }
    for _ in 0..count {
        first.push(&record(first.next_sequence()));
    }
    first
}

#[test]
fn version_1_is_converted() {
    let keys = keys();
    let image = version_1(&[4, 3], 7, &keys);
    let disk = FaultyDisk::from_image(&image);
    let (journal, recovered) = crate::faulty_disk::open(&disk, &keys).unwrap();
    assert_eq!((recovered.size, recovered.converted, journal.epoch()), (7, true, 4));
    assert_eq!(journal.to_seal(), [Body::Converted(Converted { format_version: 2 })]);
    // Only the conversion record may come next.
    assert!(matches!(journal.append(&mut batch(&keys, 7, 1)), Err(AppendError::Refused { sequence: 7, .. })));
    let unconverted = disk.image();
    let mut first = first_batch_of(&journal, 2);
    journal.append(&mut first).unwrap();
    let mut again = Batch::new(10);
    again.push(&Record::new(10, stamp(10), Converted { format_version: 2 }));
    assert!(matches!(journal.append(&mut again), Err(AppendError::Refused { sequence: 10, .. })));
    append(&journal, &keys, 3);
    let crashed = disk.image();
    journal.close(stamp(20)).unwrap();
    drop(journal);
    let converted = disk.image();
    assert_eq!(converted[SEGMENT], image[SEGMENT], "segments of version 1 keep their bytes");
    assert_eq!(converted["journal/00000002.seg"][8], 2);
    assert!(converted.contains_key("journal/00000002.tree"));

    // A crash before the conversion record, after it, and a clean stop.
    let (journal, recovered) = open_image(&unconverted, &keys).unwrap();
    assert!(recovered.converted && !recovered.secret_lost);
    assert_eq!(journal.head().size, 7);
    for image in [&crashed, &converted] {
        let (journal, recovered) = open_image(image, &keys).unwrap();
        assert_eq!((recovered.size, recovered.converted), (13, false));
        assert!(journal.to_seal().is_empty());
        let mut sequence = 0;
        journal
            .scan(0, &mut |_, raw| {
                let found = raw.decode().unwrap();
                let expected = match sequence {
                    7 => Record::new(7, stamp(7), Converted { format_version: 2 }),
                    _ => version_1_record(sequence, &keys),
                };
                assert_eq!(found, expected);
                sequence += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(sequence, 13);
    }

    // Nothing of version 1 may follow, and version 2 does not begin in silence.
    let mut mixed = crashed.clone();
    let end = end_of_bytes(&mixed["journal/00000002.seg"]);
    let mut late = batch(&keys, 13, 1);
    let (journal, _) = open_image(&crashed, &keys).unwrap();
    late.seal(&journal.head().hash, keys.as_ref()).unwrap();
    let late = version_1_batch(late.bytes());
    mixed.get_mut("journal/00000002.seg").unwrap()[end..end + late.len()].copy_from_slice(&late);
    let (_, recovered) = open_image(&mixed, &keys).unwrap();
    assert!(recovered.torn.is_some() && recovered.size == 13, "it is no batch there");
    let mut silent = image.clone();
    let mut segment = crashed["journal/00000002.seg"].clone();
    let head = open_image(&image, &keys).unwrap().0.head();
    segment.truncate(96);
    segment.extend(forged(head.hash, 7, 1, [0; 32], &keys));
    silent.insert("journal/00000002.seg".into(), segment);
    assert_eq!(code(open_image(&silent, &keys)), "journal_tail_unproved");
    let accepted = open_with(&silent, &keys, with_tail(UnprovedTail::Accept));
    assert_eq!(code(accepted), "journal_corrupt");
}

#[test]
fn a_tail_of_version_1_needs_a_word_from_the_operator() {
    let keys = keys();
    let image = version_1(&[4, 3, 2], 4, &keys);
    assert_eq!(code(open_image(&image, &keys)), "journal_tail_unproved");
    let (journal, recovered) = open_with(&image, &keys, with_tail(UnprovedTail::Accept)).unwrap();
    assert_eq!((recovered.size, recovered.converted, recovered.rolled_forward), (9, true, 5));
    assert!(matches!(
        journal.to_seal()[..],
        [
            Body::Converted(Converted { format_version: 2 }),
            Body::TailResolved(TailResolved { action: TailAction::Accepted, records: 5, .. })
        ]
    ));
    let mut first = first_batch_of(&journal, 1);
    journal.append(&mut first).unwrap();
    let (journal, recovered) = open_with(&image, &keys, with_tail(UnprovedTail::Cut)).unwrap();
    assert_eq!((recovered.size, journal.to_seal().len()), (4, 2));
    // The torn end of a crash is none: it holds no record.
    let mut torn = version_1(&[4, 3], 4, &keys);
    let segment = torn.get_mut(SEGMENT).unwrap();
    segment.truncate(segment.len() - 9);
    let (_, recovered) = open_image(&torn, &keys).unwrap();
    assert_eq!((recovered.size, recovered.torn.is_some()), (4, true));
    // Converted once, it is no longer a directory of version 1.
    let disk = FaultyDisk::from_image(&version_1(&[4], 4, &keys));
    drop(crate::faulty_disk::open(&disk, &keys).unwrap());
    let mut late = disk.image();
    let full = version_1(&[4, 3], 4, &keys)[SEGMENT].clone();
    late.insert(SEGMENT.into(), full);
    assert_eq!(code(open_with(&late, &keys, with_tail(UnprovedTail::Accept))), "journal_tail_unproved");
}

#[test]
fn epochs_grow() {
    let keys = keys();
    let started = |sequence, epoch| {
        let software = Name::new("test").unwrap();
        Record::new(sequence, stamp(sequence), Started { epoch, software, rules_version: 1, clock_accepted: None })
    };
    for (second, grows) in [(8, true), (7, false), (6, false)] {
        let disk = FaultyDisk::default();
        let journal = create(&disk, &keys);
        append(&journal, &keys, 1);
        let mut starts = Batch::new(1);
        starts.push(&started(1, 7));
        starts.push(&started(2, second));
        journal.append(&mut starts).unwrap();
        let image = disk.image();
        assert_eq!(journal.checkpoint(stamp(3)).is_ok(), grows);
        match open_image(&image, &keys) {
            Ok((journal, _)) => assert_eq!((grows, journal.epoch()), (true, 9), "an epoch of its own"),
            Err(error) => assert_eq!((grows, error.code()), (false, "journal_corrupt"), "{error}"),
        }
    }
}
