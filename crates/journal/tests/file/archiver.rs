//! Moving segments to an archive, interrupted at every operation.

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, Random, create};
use leasehold_journal::conformance::{append, check_records, keys, local, stamp};
use leasehold_journal::disk::Disk;
use leasehold_journal::{Archiver, FileJournal, Journal, Keys, Moved, Plan};
use std::sync::Arc;

/// A journal of 72 records in eight segments, with a snapshot in the sixth, closed.
fn closed(keys: &Arc<Keys>) -> Image {
    let disk = FaultyDisk::default();
    let journal = create(&disk, keys);
    for round in 0..8 {
        append(&journal, keys, 9);
        let checkpoint = journal.checkpoint(stamp(0)).unwrap().unwrap();
        if round == 5 {
            journal.put_snapshot(&checkpoint.position, b"state").unwrap();
        }
    }
    journal.close(stamp(0)).unwrap();
    disk.image()
}

fn arc(disk: &FaultyDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

fn archive(data: &FaultyDisk, to: &FaultyDisk, books: u64) -> Option<Moved> {
    let secret = local().secret;
    let plan = Plan::make(&arc(data), Some(&secret), books).ok()?;
    Archiver::new(arc(data), arc(to)).ok()?.run(&plan, &mut |_| true).ok()
}

/// Opens the journal with the archive, and reads every record.
fn check_whole(data: &FaultyDisk, to: &FaultyDisk, keys: &Arc<Keys>) {
    let local = leasehold_journal::Local { archives: vec![arc(to)], ..local() };
    let (journal, _) = FileJournal::open(arc(data), OPTIONS, keys.clone(), local, stamp(0)).unwrap();
    assert_eq!(journal.missing_segment(), None);
    check_records(&journal, keys, 72);
}

fn numbers(disk: &FaultyDisk) -> Vec<String> {
    let names = disk.image().into_keys().filter(|name| name.ends_with(".seg"));
    names.map(|name| name.trim_start_matches("journal/").trim_end_matches(".seg").to_owned()).collect()
}

#[test]
fn what_a_restart_needs_stays() {
    let keys = keys();
    let image = closed(&keys);
    let secret = local().secret;
    let plan = |image: &Image, books: u64| {
        let plan = Plan::make(&arc(&FaultyDisk::from_image(image)), Some(&secret), books).unwrap();
        plan.segments().collect::<Vec<_>>()
    };
    let all = plan(&image, 72);
    let last = *all.last().unwrap();
    assert_eq!(all, (1..=last).collect::<Vec<_>>());
    // The snapshot is in the segment after the last one that may go.
    let (data, to) = (FaultyDisk::from_image(&image), FaultyDisk::default());
    assert_eq!(archive(&data, &to, 72).unwrap().segments, all);
    let (journal, _) = FileJournal::open(arc(&data), OPTIONS, keys.clone(), local(), stamp(0)).unwrap();
    assert_eq!(journal.missing_segment(), Some(1));
    assert!(journal.genesis().unwrap().is_some(), "a snapshot contains it");
    drop(journal);
    check_whole(&data, &to, &keys);

    // Neither without books, nor without a snapshot that is authentic; and a tree file must replace what goes.
    assert_eq!(plan(&image, 0), [0; 0]);
    assert_eq!(plan(&image, 1), [0; 0]);
    let first_of_third = 72 - 72 * 6 / 8;
    assert!(plan(&image, first_of_third).len() < all.len());
    let mut other = image.clone();
    other.retain(|name, _| !name.starts_with("snapshots/"));
    assert_eq!(plan(&other, 72), [0; 0]);
    let mut forged = image.clone();
    forged.iter_mut().filter(|(name, _)| name.starts_with("snapshots/")).for_each(|(_, bytes)| bytes[40] ^= 1);
    assert_eq!(plan(&forged, 72), [0; 0]);
    let mut treeless = image;
    treeless.remove("journal/00000002.tree");
    assert_eq!(plan(&treeless, 72), [0; 0]);
}

#[test]
fn a_kill_at_any_operation_loses_nothing_and_the_next_run_continues() {
    let keys = keys();
    let image = closed(&keys);
    let operations = {
        let (data, to) = (FaultyDisk::from_image(&image), FaultyDisk::default());
        archive(&data, &to, 72).unwrap();
        (data.operations(), to.operations())
    };
    let crashes = (1..=operations.0).map(|at| (Some(at), None)).chain((1..=operations.1).map(|at| (None, Some(at))));
    for (in_data, in_archive) in crashes {
        let (data, to) = (FaultyDisk::from_image(&image), FaultyDisk::default());
        in_data.into_iter().for_each(|at| data.crash_at(at));
        in_archive.into_iter().for_each(|at| to.crash_at(at));
        assert_eq!(archive(&data, &to, 72), None, "{in_data:?} {in_archive:?}");
        let mut random = Random(in_data.unwrap_or(0) << 32 | in_archive.unwrap_or(0));
        let (data, to) = (data.after_crash(&mut random), to.after_crash(&mut random));
        check_whole(&FaultyDisk::from_image(&data.image()), &to, &keys);
        archive(&data, &to, 72).unwrap();
        check_whole(&FaultyDisk::from_image(&data.image()), &to, &keys);
        let (kept, moved) = (numbers(&data), numbers(&to));
        assert!(kept.iter().all(|number| !moved.contains(number)), "{kept:?} {moved:?}");
        assert!(to.image().keys().all(|name| !name.ends_with(".tmp")), "{in_data:?} {in_archive:?}");
        assert!(!data.image().contains_key("journal/00000002.tree"));
    }
}
