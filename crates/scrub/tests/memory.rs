//! The memory of a pass does not depend on the size of the journal. A test of its own, because it looks at the process.

use leasehold_books::{Balance, BooksError, Row};
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options, RealDisk, Secret};
use leasehold_model::body::{Genesis, Heartbeat};
use leasehold_model::{Batch, FORMAT_VERSION, Instant, LeaseNo, Name, Record};
use leasehold_scrub::{BookRows, BooksChecked, Pass};
use std::sync::Arc;

struct NoRows;

impl BookRows for NoRows {
    fn closed_rows(&self, _: u64) -> Result<Vec<Row>, BooksError> {
        Ok(Vec::new())
    }
    fn leases_of(&self, _: &[LeaseNo]) -> Result<Vec<Row>, BooksError> {
        Ok(Vec::new())
    }
}

/// The most memory that the process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn a_pass_reads_batch_by_batch() {
    const RECORDS: u64 = 600_000;
    let folder = tempfile::tempdir().unwrap();
    let keys = Arc::new(Keys::new("memory.example", &[1; 32]).unwrap());
    let genesis = Genesis {
        format_version: FORMAT_VERSION,
        origin: Name::new("memory.example").unwrap(),
        public_key: keys.public_keys()[0],
        software: Name::new("test").unwrap(),
    };
    let options = Options { segment_bytes: 16 << 20, ..Options::default() };
    let disk = Arc::new(RealDisk::new(folder.path()));
    let local = Local::new(Secret::new([7; 32]));
    let journal = FileJournal::create(disk, options, keys, local, Instant(0)).unwrap();
    let workload = Name::new(&"long-name-".repeat(11)).ok();
    let mut next = 0;
    while next < RECORDS {
        journal.prepare().unwrap();
        let mut batch = Batch::new(next);
        for sequence in next..next + 5_000 {
            let mut record = Record::new(sequence, Instant(sequence), Heartbeat {});
            record.identity.workload = workload.clone();
            match sequence {
                0 => batch.push(&Record::new(0, Instant(0), genesis.clone())),
                _ => batch.push(&record),
            }
        }
        next += 5_000;
        journal.append(&mut batch).unwrap();
    }
    journal.checkpoint(Instant(0)).unwrap();
    let before = peak();
    let balance = Balance { size: next, stamp: Instant(next - 1), ..Balance::default() };
    let mut pass = Pass::begin(&journal, Some(balance));
    while !pass.step(&NoRows).unwrap().done {}
    assert_eq!((pass.scrub().size(), pass.books().0), (next, &BooksChecked::Compared));
    let (bytes, grown) = (pass.scrub().bytes(), peak() - before);
    assert!(bytes > 64 << 20, "the journal has {bytes} bytes");
    assert!(grown < 8 << 10, "a pass over {bytes} bytes took {grown} KiB more");
}
