//! Readers, the checkpointer and the allocator work beside the writer.

use crate::faulty_disk::OPTIONS;
use leasehold_journal::conformance::{batch, check_records, keys, local, stamp};
use leasehold_journal::{AppendError, FileJournal, Journal, RealDisk};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn everyone_works_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let keys = keys();
    let disk = Arc::new(RealDisk::new(folder.path()));
    let journal = FileJournal::create(disk.clone(), OPTIONS, keys.clone(), local(), stamp(0)).unwrap();
    let done = AtomicBool::new(false);
    let until_done = |work: &dyn Fn()| {
        while !done.load(Ordering::Acquire) {
            work();
        }
    };
    thread::scope(|threads| {
        threads.spawn(|| until_done(&|| journal.prepare().unwrap()));
        threads.spawn(|| {
            until_done(&|| {
                if let Some(checkpoint) = journal.checkpoint(stamp(0)).unwrap() {
                    journal.put_snapshot(&checkpoint.position, b"state").unwrap();
                    journal.prune_snapshots().unwrap();
                }
            });
        });
        threads.spawn(|| {
            until_done(&|| {
                let head = journal.head();
                let mut next = head.size / 2;
                let visit = &mut |sequence, _: leasehold_model::RawRecord<'_>| {
                    assert_eq!(sequence, next);
                    next += 1;
                    ControlFlow::Continue(())
                };
                journal.scan(head.size / 2, visit).unwrap();
                assert!(next >= head.size, "everything durable is read");
            });
        });
        while journal.head().size < 3000 {
            let mut batch = batch(&keys, journal.head().size, 10);
            match journal.append(&mut batch) {
                Ok(_) => {}
                Err(AppendError::Full) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Release);
    });
    journal.close(stamp(0)).unwrap();
    drop(journal);
    let (journal, recovered) = FileJournal::open(disk, OPTIONS, keys.clone(), local(), stamp(0)).unwrap();
    assert_eq!((recovered.size, recovered.rolled_forward, recovered.torn), (3000, 0, None));
    check_records(&journal, &keys, 3000);
}
