//! What is refused, and that nothing damaged passes for whole.

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, create, open, open_image};
use crate::story::{Restamped, SEGMENT, code, end_of_bytes, journal_of};
use leasehold_journal::conformance::{append, check_records, genesis, keys, local, record, stamp};
use leasehold_journal::{FileJournal, Journal, Keys, OpenError, ReadError, RealDisk};
use leasehold_model::body::KeyRotated;
use leasehold_model::{Batch, Record};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Changes the header of a segment and makes its checksum fit again.
fn forge_header(image: &mut Image, name: &str, change: impl FnOnce(&mut [u8])) {
    let header = &mut image.get_mut(name).unwrap()[..96];
    change(header);
    let crc = crc32fast::hash(&header[..92]);
    header[92..].copy_from_slice(&crc.to_le_bytes());
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
        let mut other = record(sequence + 100).restamped(sequence);
        other.sequence = sequence;
        forged.push(&other);
    }
    journal.append(&mut forged).unwrap();
    let mut rewritten = disk.image();
    rewritten.insert("anchor".into(), image["anchor"].clone());
    assert_eq!(code(open_image(&rewritten, &keys)), "journal_anchor_mismatch");
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
            header[8] = 3;
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
    let exists =
        FileJournal::create(Arc::new(FaultyDisk::from_image(&image)), OPTIONS, keys.clone(), local(), stamp(0));
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
    let journal = FileJournal::create(disk(), OPTIONS, keys.clone(), local(), stamp(0)).unwrap();
    let reopen = || FileJournal::open(disk(), OPTIONS, keys.clone(), local(), stamp(0));
    assert_eq!(code(reopen()), "journal_in_use");
    append(&journal, &keys, 1);
    journal.close(stamp(1)).unwrap();
    let (next, recovered) = reopen().unwrap();
    assert_eq!(recovered.size, 1);
    assert_eq!(next.epoch(), 2);
}

#[test]
fn a_header_that_links_elsewhere_is_refused() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for _ in 0..4 {
        append(&journal, &keys, 9);
    }
    let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
    journal.put_snapshot(&checkpoint.position, b"").unwrap();
    let mut image = disk.image();
    forge_header(&mut image, "journal/00000002.seg", |header| header[30] ^= 1);
    assert_eq!(code(open_image(&image, &keys)), "journal_corrupt");
}

#[test]
fn bytes_after_a_finished_segment_are_damage() {
    let keys = keys();
    let mut image = journal_of(&[9, 9, 9, 9], 0, &keys);
    let segment = image.get_mut(SEGMENT).unwrap();
    let end = end_of_bytes(segment);
    segment[end + 20] = 1;
    assert_eq!(code(open_image(&image, &keys)), "journal_corrupt");
}

#[test]
fn only_one_batch_can_be_torn() {
    let keys = keys();
    let mut image = journal_of(&[9, 9, 9], 1, &keys);
    image.get_mut("journal/00000002.seg").unwrap()[50..].fill(0);
    assert_eq!(open_image(&image, &keys).unwrap().1.size, 18);
    let segment = image.get_mut(SEGMENT).unwrap();
    let end = end_of_bytes(segment);
    segment[end - 5] ^= 1;
    assert_eq!(code(open_image(&image, &keys)), "journal_corrupt");
}

#[test]
fn the_key_in_force_must_be_at_hand() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 2);
    let old_key = keys.public_keys()[0];
    let new_key = keys.add(&[2; 32]).unwrap();
    let mut rotation = Record::new(2, stamp(2), KeyRotated { old_key, new_key });
    rotation.signers.extend([old_key, new_key]);
    let mut batch = Batch::new(2);
    batch.push(&rotation);
    journal.append(&mut batch).unwrap();
    let image = disk.image();
    let without = leasehold_journal::conformance::keys();
    assert_eq!(code(open_image(&image, &without)), "journal_key_missing");
    assert_eq!(open_image(&image, &keys).unwrap().1.size, 3);
}

/// The file names retired keys, so that an older slot of the anchor, which they have signed, can still be used.
#[test]
fn a_retired_key_opens_an_older_anchor() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 2);
    journal.checkpoint(stamp(2)).unwrap();
    let old_key = keys.public_keys()[0];
    let new_key = keys.add(&[2; 32]).unwrap();
    let mut rotation = Record::new(2, stamp(2), KeyRotated { old_key, new_key });
    rotation.signers.extend([old_key, new_key]);
    let mut batch = Batch::new(2);
    batch.push(&rotation);
    journal.append(&mut batch).unwrap();
    append(&journal, &keys, 9);
    journal.checkpoint(stamp(20)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    keys.retire_before(&path, &new_key).unwrap();
    let finished = Arc::new(Keys::load(&path).unwrap());
    let mut image = disk.image();
    assert_eq!(open_image(&image, &finished).unwrap().1.size, 12);

    // Without the slot that the new key has signed, the records after the other one are rolled forward.
    let anchor = image.get_mut("anchor").unwrap();
    let text = String::from_utf8_lossy(anchor).into_owned();
    let newer = text.find("size 12\n").expect("the newer slot");
    anchor[newer] ^= 1;
    let (journal, recovered) = open_image(&image, &finished).unwrap();
    assert!(recovered.anchor_slot_damaged && recovered.rolled_forward == 10, "{recovered:?}");
    append(&journal, &finished, 20);
    journal.checkpoint(stamp(99)).unwrap().expect("new");
}
