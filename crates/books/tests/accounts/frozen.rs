//! The frozen journals of rules version 4 (`tests/frozen`): what the books say of them was right when it was frozen.

use crate::{books_of, check, compare_reserved};
use leasehold_journal::{ReadOnly, RealDisk};
use leasehold_model::Record;
use leasehold_sim::Dice;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn records_in(data: &Path) -> Vec<Record> {
    let journal = ReadOnly::open(Arc::new(RealDisk::new(data)), Vec::new()).unwrap();
    let mut records = Vec::new();
    let scanned = journal.scan_from_genesis(&mut |entry| {
        records.push(entry.raw.decode().unwrap());
        ControlFlow::Continue(())
    });
    scanned.unwrap_or_else(|error| panic!("{}: {error}", data.display()));
    records
}

#[test]
fn the_books_of_frozen_journals_agree_with_the_accounts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen/rules-4");
    let mut folders: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 15, "only {} journals were found", folders.len());
    for folder in folders {
        let records = records_in(&folder.join("data"));
        compare_reserved(&records).unwrap_or_else(|what| panic!("{}: {what}", folder.display()));
        let mut dice = Dice::new(records.len() as u64);
        for part in [records.len() / 3, records.len() / 2, records.len() - 1, records.len()] {
            let part = &records[..part];
            let checked = check(part, &books_of(part), 30, &mut dice);
            checked.unwrap_or_else(|what| panic!("{}, {} records: {what}", folder.display(), part.len()));
        }
    }
}
