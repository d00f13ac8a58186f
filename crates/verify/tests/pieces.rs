//! A journal of many pieces: the answer does not depend on where they are cut or how many threads check them.

mod common;

use common::*;
use leasehold_journal::{FileJournal, Journal, Keys, Local, Options as Layout, RealDisk, Secret};
use leasehold_model::Batch;
use leasehold_verify::Trust;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const BATCH_RECORDS: u64 = 1000;
const RECORDS: u64 = 60 * BATCH_RECORDS;

fn write(folder: &Path) {
    let keys = Arc::new(Keys::new(ORIGIN, &FIRST_SEED).unwrap());
    let layout = Layout { segment_bytes: 2_500_000, ..Layout::default() };
    let journal =
        FileJournal::create(Arc::new(RealDisk::new(folder)), layout, keys, Local::new(Secret::new([7; 32])), stamp(0))
            .unwrap();
    for first in (0..RECORDS).step_by(usize::try_from(BATCH_RECORDS).unwrap()) {
        journal.prepare().unwrap();
        let mut batch = Batch::new(first);
        (first..first + BATCH_RECORDS).for_each(|sequence| match sequence {
            0 => batch.push(&genesis()),
            _ => batch.push(&plain(sequence)),
        });
        journal.append(&mut batch).unwrap();
        if first == 30 * BATCH_RECORDS {
            journal.checkpoint(stamp(first)).unwrap();
        }
    }
    journal.close(stamp(RECORDS)).unwrap();
}

#[test]
fn the_first_wrong_record_is_named_wherever_the_pieces_end() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut sample = Sample { folder, trust: Trust::new(key(FIRST_SEED).verifier()), archives: Vec::new() };
    let report = sample.verify().unwrap();
    assert_eq!((report.records, report.complete_up_to), (RECORDS, RECORDS));
    assert!(report.bytes > 3 << 20 && report.segments.unwrap().1 > 1, "more than three pieces");
    for threads in [2, 5] {
        let again = sample.verify_with(threads).unwrap();
        assert_eq!((again.head, again.root, again.bytes), (report.head, report.root, report.bytes));
    }
    let note = sample.note();
    sample.trust.pin(&note).unwrap();

    let middle = sample.segment_of(RECORDS / 2);
    let good = fs::read(sample.segment(middle)).unwrap();
    let opened = Opened::read(&sample.segment(middle));
    // The ends of all batches, and with them those of the pieces, and one inside.
    let ends = opened.batches.iter().map(|batch| batch.last().unwrap().sequence());
    for sequence in ends.chain([RECORDS / 2]) {
        let mut attacked = Opened { header: opened.header.clone(), batches: opened.batches.clone() };
        let (batch, frame) = attacked.find(sequence).unwrap();
        *attacked.batches[batch][frame].bytes.last_mut().unwrap() ^= 1;
        // A later one too: the first counts.
        *attacked.batches.last_mut().unwrap().last_mut().unwrap().bytes.last_mut().unwrap() ^= 2;
        put(&sample.segment(middle), &attacked.encode());
        for threads in [1, 4] {
            let failure = sample.verify_with(threads).unwrap_err();
            assert_eq!((failure.code(), failure.sequence), ("altered_record", Some(sequence)), "{failure}");
        }
    }
    put(&sample.segment(middle), &good);
    sample.verify().unwrap();
}
