//! A folder read by somebody who never touches it: live, copied, archived and damaged.

use crate::faulty_disk::{FaultyDisk, Image, create};
use crate::story::{SEGMENT, journal_of};
use leasehold_journal::conformance::{append, keys, stamp};
use leasehold_journal::disk::Disk;
use leasehold_journal::{Head, Journal, OpenError, ReadOnly, Scanned};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Reads everything; answers where it ended, too.
fn read(disk: &FaultyDisk, archives: &[FaultyDisk]) -> Result<(Scanned, Head), OpenError> {
    let archives = archives.iter().map(|disk| -> Arc<dyn Disk> { Arc::new(disk.clone()) });
    let journal = ReadOnly::open(Arc::new(disk.clone()), archives.collect())?;
    let mut head = Head::EMPTY;
    let scanned = journal.scan(&mut |entry| {
        assert!(head.size == 0 || entry.sequence == head.size, "records come in order");
        head = Head { size: entry.sequence + 1, hash: entry.hash };
        ControlFlow::Continue(())
    })?;
    assert_eq!(scanned.size, head.size);
    Ok((scanned, head))
}

fn read_image(image: &Image) -> Result<(Scanned, Head), OpenError> {
    read(&FaultyDisk::from_image(image), &[])
}

#[test]
fn a_journal_is_read_while_another_has_it_open_and_is_not_changed_by_it() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for round in 0..30 {
        append(&journal, &keys, 1 + round % 5);
        if round % 3 == 0 {
            journal.checkpoint(stamp(0)).unwrap();
        }
        journal.prepare().unwrap();
        let (before, operations) = (disk.image(), disk.operations());
        let (scanned, head) = read(&disk, &[]).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!((scanned.first, head), (0, journal.head()));
        assert!(disk.image() == before && disk.operations() == operations, "it only reads");
    }
    assert!(disk.image().contains_key("journal/00000003.seg"), "it went over segments");
}

#[test]
fn segments_may_lie_elsewhere_and_are_missed_where_they_do_not() {
    let keys = keys();
    let whole = journal_of(&[9, 9, 9, 9, 9], 5, &keys);
    let (scanned, head) = read_image(&whole).unwrap();
    let mut rest = whole.clone();
    let moved = rest.remove(SEGMENT).unwrap();
    let (without, last) = read_image(&rest).unwrap();
    assert!(without.first > 0 && last == head, "what is here can be read without the beginning");
    let journal = ReadOnly::open(Arc::new(FaultyDisk::from_image(&rest)), vec![]).unwrap();
    let from_genesis = journal.scan_from_genesis(&mut |_| panic!("there is no first record"));
    assert!(matches!(from_genesis, Err(OpenError::MissingSegment { segment: 1 })));
    let archive = FaultyDisk::from_image(&Image::from([("00000001.seg".to_owned(), moved)]));
    let (again, last) = read(&FaultyDisk::from_image(&rest), &[archive]).unwrap();
    assert_eq!((again.first, again.bytes, last), (0, scanned.bytes, head));
    let mut gap = whole;
    gap.remove("journal/00000002.seg").unwrap();
    assert!(matches!(read_image(&gap), Err(OpenError::MissingSegment { segment: 2 })));
}

#[test]
fn no_flipped_bit_up_to_the_anchor_goes_unseen() {
    let keys = keys();
    let image = journal_of(&[4, 9, 9, 3], 3, &keys);
    let (_, head) = read_image(&image).unwrap();
    let signed = ReadOnly::open(Arc::new(FaultyDisk::from_image(&image)), vec![]).unwrap().signed().head;
    assert!(signed.size == 22 && head.size == 25, "three records lie beyond the checkpoint");
    for (name, bytes) in image.iter().filter(|(name, _)| name.ends_with(".seg")) {
        for at in 0..bytes.len() {
            let mut image = image.clone();
            image.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
            match read_image(&image) {
                Err(error) => assert!(error.is_damage() || matches!(error, OpenError::NewerFormat { .. }), "{error}"),
                Ok((scanned, _)) => {
                    assert!(scanned.size >= signed.size, "a flip at {at} of {name} costs signed records")
                }
            }
        }
    }
}

#[test]
fn a_folder_without_a_journal_is_told_from_one_that_lost_its_anchor() {
    let keys = keys();
    let mut image = journal_of(&[4], 1, &keys);
    let code = |image: &Image| read_image(image).expect_err("a refusal").code();
    assert_eq!(code(&Image::new()), "journal_not_found");
    let anchor = image.remove("anchor").unwrap();
    assert_eq!(code(&image), "journal_anchor_missing");
    image.insert("anchor".into(), [anchor.clone(), vec![0]].concat());
    assert_eq!(code(&image), "journal_anchor_damaged");
    image.insert("anchor".into(), anchor);
    image.remove(SEGMENT);
    assert_eq!(code(&image), "journal_cut_off");
}
