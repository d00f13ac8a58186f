//! Files that were altered, lost or moved away.

use crate::world::{World, flip, keys, local, options, run};
use leasehold_journal::{FileJournal, Journal, RealDisk, ScrubDamage};
use leasehold_model::Instant;
use leasehold_scrub::{BooksChecked, Finding, Pass};
use std::fs;
use std::sync::Arc;

/// A history of several segments.
fn world() -> World {
    let world = World::told(1, 3000);
    assert!(world.segments() >= 4, "{} segments", world.segments());
    world
}

fn damage(findings: &[Finding]) -> &ScrubDamage {
    match findings {
        [Finding::Journal(damage)] => damage,
        findings => panic!("{findings:?}"),
    }
}

/// Bytes of a segment up to its last batch.
fn used(world: &World, number: u32) -> usize {
    let bytes = fs::read(world.segment(number)).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// Header, lengths, checksums, MACs, records: whatever byte it is.
#[test]
fn every_altered_byte_is_found_and_its_place_named() {
    let world = world();
    for segment in 1..=2 {
        let length = used(&world, segment);
        for at in (0..200).chain((200..length).step_by(13)) {
            flip(&world.segment(segment), at);
            let findings = world.scrub();
            let damage = damage(&findings);
            assert_eq!((damage.segment, damage.file.as_str()), (segment, &*format!("journal/{segment:08}.seg")));
            assert!(damage.offset <= at as u64, "byte {at}: {damage:?}");
            // What follows is still checked, from the next segment on.
            assert!(damage.resumed_at.is_some(), "byte {at}: {damage:?}");
            flip(&world.segment(segment), at);
        }
    }
    assert_eq!(world.scrub(), []);
}

#[test]
fn all_damage_is_found_in_one_pass() {
    let world = world();
    flip(&world.segment(1), 300);
    flip(&world.segment(3), 20);
    let findings = world.scrub();
    let places: Vec<_> = findings
        .iter()
        .map(|finding| match finding {
            Finding::Journal(damage) => (damage.segment, damage.offset > 0),
            finding => panic!("{finding:?}"),
        })
        .collect();
    assert_eq!(places, [(1, true), (3, false)]);
    let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
    run(&mut pass, &world.rows());
    assert!(matches!(pass.books().0, BooksChecked::GivenUp(why) if why.contains("damaged at record")));
}

/// A record altered with its checksum made to fit: only hashes show that.
#[test]
fn a_fitting_checksum_helps_nobody() {
    let world = world();
    let path = world.segment(1);
    let mut bytes = fs::read(&path).unwrap();
    let length = u32::from_le_bytes(bytes[100..104].try_into().unwrap()) as usize;
    // The last byte of the first batch is in the body of its last record.
    let last = 96 + 16 + length - 1;
    bytes[last] ^= 1;
    mend(&mut bytes, 96);
    fs::write(&path, &bytes).unwrap();
    let findings = world.scrub();
    let damage = damage(&findings);
    assert_eq!(damage.segment, 1, "{damage:?}");
}

/// Makes the checksum of the batch at this offset fit.
fn mend(bytes: &mut [u8], at: usize) {
    let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[at + 4..at + 12]);
    crc.update(&bytes[at + 16..at + 16 + length]);
    bytes[at + 12..at + 16].copy_from_slice(&crc.finalize().to_le_bytes());
}

/// A MAC by another secret is counted: after the secret was lost, all older ones are, and their records are signed.
#[test]
fn foreign_macs_are_counted() {
    let world = world();
    let path = world.segment(1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[96 + 16] ^= 1;
    mend(&mut bytes, 96);
    fs::write(&path, &bytes).unwrap();
    let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
    assert_eq!(run(&mut pass, &world.rows()), []);
    assert_eq!(pass.scrub().foreign_macs(), 1);
}

#[test]
fn tree_files_are_checked_and_do_not_stop_the_pass() {
    let world = world();
    let path = world.folder.path().join("journal/00000002.tree");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("size ", "size 1", 1)).unwrap();
    let findings = world.scrub();
    let damage = damage(&findings);
    assert_eq!((damage.file.as_str(), damage.offset), ("journal/00000002.tree", 0));
    fs::remove_file(&path).unwrap();
    assert_eq!(world.scrub(), []);
}

#[test]
fn a_lost_segment_is_found() {
    let world = world();
    fs::remove_file(world.segment(2)).unwrap();
    let findings = world.scrub();
    let damage = damage(&findings);
    assert_eq!((damage.segment, damage.offset), (2, 0), "{damage:?}");
    // The end of the last one that has records.
    let world = self::world();
    let last = world.segments();
    let file = fs::OpenOptions::new().write(true).open(world.segment(last)).unwrap();
    file.set_len(96).unwrap();
    fs::remove_file(world.segment(last + 1)).unwrap();
    let findings = world.scrub();
    let damage = self::damage(&findings);
    assert_eq!((damage.segment, damage.offset, damage.resumed_at), (last, 96, None), "{damage:?}");
}

#[test]
fn archived_segments_are_read_where_they_are() {
    let world = world();
    let (size, books) = (world.size(), world.books.balance().unwrap());
    world.journal.close(Instant(0)).unwrap();
    let archive = tempfile::tempdir().unwrap();
    for name in ["00000001.seg", "00000002.seg", "00000002.tree"] {
        fs::rename(world.folder.path().join("journal").join(name), archive.path().join(name)).unwrap();
    }
    let open = |archived: bool| {
        let mut local = local();
        if archived {
            local.archives = vec![Arc::new(RealDisk::new(archive.path()))];
        }
        let disk = Arc::new(RealDisk::new(world.folder.path()));
        FileJournal::open(disk, options(), keys(), local, Instant(0)).map(|(journal, _)| journal)
    };
    let journal = open(true).unwrap();
    let mut pass = Pass::begin(&journal, Some(books.clone()));
    assert_eq!(run(&mut pass, &world.rows()), []);
    assert_eq!((pass.scrub().size(), pass.books().0), (size, &BooksChecked::Compared));
    // Damage is found there too.
    flip(&archive.path().join("00000002.seg"), 150);
    let mut pass = Pass::begin(&journal, Some(books.clone()));
    assert_eq!(damage(&run(&mut pass, &world.rows())).segment, 2);
    // A snapshot stands in for them, so that the journal opens without.
    let checkpoint = journal.checkpointed();
    journal.put_snapshot(&checkpoint.position, b"state").unwrap();
    journal.close(Instant(0)).unwrap();
    drop(journal);
    let journal = open(false).unwrap();
    let mut pass = Pass::begin(&journal, Some(books));
    assert_eq!(run(&mut pass, &world.rows()), []);
    assert!(pass.scrub().first() > 0 && pass.scrub().size() == size);
    assert!(matches!(pass.books().0, BooksChecked::GivenUp(why) if why.contains("journal.archive")));
}

/// While the journal is open: the next pass begins with the first segment that is left, and a hole is still damage.
#[test]
fn a_pass_begins_after_segments_that_were_deleted() {
    let world = world();
    let size = world.size();
    (1..=3).for_each(|number| fs::remove_file(world.segment(number)).unwrap());
    let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
    assert_eq!(run(&mut pass, &world.rows()), []);
    assert_eq!((pass.scrub().first_segment(), pass.scrub().size()), (4, size));
    assert!(pass.scrub().first() > 0);
    assert!(matches!(pass.books().0, BooksChecked::GivenUp(why) if why.contains("deleted")));

    // In the middle of a pass.
    let world = self::world();
    let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
    pass.step(&world.rows()).unwrap();
    (1..=3).for_each(|number| fs::remove_file(world.segment(number)).unwrap());
    assert_eq!(run(&mut pass, &world.rows()), []);
    assert_eq!(pass.scrub().size(), size);
    assert!(matches!(pass.books().0, BooksChecked::GivenUp(why) if why.contains("deleted")));
}
