//! What every provider must do, as tests that any provider can be put through with [`conformance!`].
//!
//! [`conformance!`]: crate::conformance!

use crate::{AppendError, Head, Journal, Keys, Local, PrepareError, ReadError, Secret, SnapshotError};
use leasehold_model::body::{Genesis, Heartbeat, KeyRotated};
use leasehold_model::{Batch, FORMAT_VERSION, Instant, Name, Record};
use leasehold_tlog::{Checkpoint, Frontier, Note, VerifierKey, leaf_hash};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A provider under test.
pub trait Harness {
    /// Batches up to this size fit an empty segment; about three of them fill it.
    const BATCH_BYTES: usize;

    /// An empty journal, ready to be appended to.
    fn create(&mut self, keys: Arc<Keys>) -> Arc<dyn Journal>;

    /// The journal that was created, opened again. The old one was dropped, with or without being closed.
    fn reopen(&mut self) -> Arc<dyn Journal>;
}

/// Runs the whole suite against a harness that is `Default`.
#[macro_export]
macro_rules! conformance {
    ($harness:ty) => {
        $crate::conformance!($harness:
            what_is_appended_is_read_back, a_scan_begins_anywhere_and_ends_when_told,
            batches_are_handed_out_as_they_were_sealed,
            a_verified_scan_checks_every_link, checkpoints_sign_for_all_records,
            a_rotated_key_signs_from_its_record_on, what_would_not_stand_is_refused,
            a_full_journal_takes_the_same_batch_later, a_batch_larger_than_a_segment_is_refused,
            snapshots_are_kept_and_pruned, a_journal_goes_on_after_a_restart,
            a_closed_journal_takes_nothing);
    };
    ($harness:ty: $($test:ident),* $(,)?) => {$(
        #[test]
        fn $test() {
            $crate::conformance::$test(&mut <$harness>::default());
        }
    )*};
}

pub const ORIGIN: &str = "conformance.example";

/// A keyring with one fixed key.
pub fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(ORIGIN, &[1; 32]).expect("a fixed origin"))
}

/// A fixed secret; what cannot be authenticated is refused.
pub fn local() -> Local {
    Local::new(Secret::new([7; 32]))
}

/// The instant of the record with this sequence.
pub fn stamp(sequence: u64) -> Instant {
    Instant(1_700_000_000_000_000_000 + sequence * 1_000_000)
}

/// The first record of a journal.
pub fn genesis(keys: &Keys) -> Record {
    let body = Genesis {
        format_version: FORMAT_VERSION,
        origin: Name::new(keys.origin()).expect("an origin is a name"),
        public_key: keys.public_keys()[0],
        software: Name::new("conformance").expect("a fixed name"),
    };
    Record::new(0, stamp(0), body)
}

/// A record of about 140 bytes.
pub fn record(sequence: u64) -> Record {
    let mut record = Record::new(sequence, stamp(sequence), Heartbeat {});
    let workload = format!("a workload with a name as long as they tend to be, number {sequence:08}");
    record.identity.workload = Some(Name::new(&workload).expect("a plain name"));
    record
}

/// A batch of so many records; the first of the journal is its genesis record.
pub fn batch(keys: &Keys, first_sequence: u64, count: u64) -> Batch {
    let mut batch = Batch::new(first_sequence);
    for sequence in first_sequence..first_sequence + count {
        match sequence {
            0 => batch.push(&genesis(keys)),
            _ => batch.push(&record(sequence)),
        }
    }
    batch
}

/// Appends so many records in one batch, preparing before.
pub fn append(journal: &dyn Journal, keys: &Keys, count: u64) -> Head {
    journal.prepare().expect("room to prepare");
    let mut batch = batch(keys, journal.head().size, count);
    journal.append(&mut batch).expect("an append")
}

/// Checks that the journal holds exactly the records that [`append`] makes, linked and whole.
pub fn check_records(journal: &dyn Journal, keys: &Keys, size: u64) {
    assert_eq!(journal.head().size, size);
    let mut next = 0;
    let end = journal
        .scan_verified(Head::EMPTY, &mut |sequence, raw, _| {
            let expected = if sequence == 0 { genesis(keys) } else { record(sequence) };
            assert_eq!(raw.decode().expect("a good record"), expected);
            assert_eq!(sequence, next);
            next += 1;
            ControlFlow::Continue(())
        })
        .expect("a whole journal");
    assert_eq!(end, journal.head());
}

/// The tree over all records, made independently of any checkpointer.
fn tree(journal: &dyn Journal) -> Frontier {
    let mut tree = Frontier::new();
    journal
        .scan(0, &mut |_, raw| {
            tree.push(leaf_hash(&raw.hash()));
            ControlFlow::Continue(())
        })
        .expect("a whole journal");
    tree
}

fn verifier(public_key: &[u8; 32]) -> VerifierKey {
    VerifierKey::new(ORIGIN, public_key).expect("a key of the keyring")
}

pub fn what_is_appended_is_read_back(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    assert_eq!(journal.head(), Head::EMPTY);
    assert_eq!(journal.origin(), ORIGIN);
    check_records(journal.as_ref(), &keys, 0);
    let mut size = 0;
    for count in [1, 2, 3, 1, 5, 1, 1, 4, 2, 6] {
        let head = append(journal.as_ref(), &keys, count);
        size += count;
        assert_eq!(head, journal.head());
        check_records(journal.as_ref(), &keys, size);
    }
}

pub fn a_scan_begins_anywhere_and_ends_when_told(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    for _ in 0..12 {
        append(journal.as_ref(), &keys, 3);
    }
    for from in 0..40 {
        let mut seen = Vec::new();
        let visit = &mut |sequence, _: leasehold_model::RawRecord<'_>| {
            seen.push(sequence);
            if sequence == 30 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        journal.scan(from, visit).expect("a scan");
        let expected = if from <= 30 { from..31 } else { from..36 };
        assert_eq!(seen, expected.collect::<Vec<_>>());
        let one = journal.record(from).expect("a read");
        assert_eq!(one.map(|r| r.decode().expect("a good record").sequence), (from < 36).then_some(from));
    }
}

pub fn batches_are_handed_out_as_they_were_sealed(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    let mut sealed = Vec::new();
    for count in [1, 3, 2, 5, 4, 1, 6, 3, 2, 2, 4, 3] {
        journal.prepare().expect("room to prepare");
        let mut batch = batch(&keys, journal.head().size, count);
        journal.append(&mut batch).expect("an append");
        sealed.push((batch.first_sequence(), batch.next_sequence(), batch.bytes().to_vec()));
    }
    let handed_out = |journal: &dyn Journal, from: u64, most: usize| {
        let mut batches = Vec::new();
        let visit = &mut |first: u64, batch: leasehold_model::RawBatch<'_>| {
            batches.push((first, first + u64::from(batch.count()), batch.bytes().to_vec()));
            if batches.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        journal.scan_batches(from, visit).expect("a scan");
        batches
    };
    let check = |journal: &dyn Journal| {
        for from in 0..40 {
            let expected: Vec<_> = sealed.iter().filter(|(_, after, _)| *after > from).cloned().collect();
            assert_eq!(handed_out(journal, from, usize::MAX), expected, "from {from}");
            let two = &expected[..expected.len().min(2)];
            assert_eq!(handed_out(journal, from, 2), two, "two from {from}");
        }
    };
    check(journal.as_ref());
    drop(journal);
    check(harness.reopen().as_ref());
}

pub fn a_verified_scan_checks_every_link(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    let middle = append(journal.as_ref(), &keys, 4);
    let end = append(journal.as_ref(), &keys, 4);
    let go_on = &mut |_: u64, _: leasehold_model::RawRecord<'_>, _: &[u8; 32]| ControlFlow::Continue(());
    assert_eq!(journal.scan_verified(middle, go_on).expect("linked"), end);
    let elsewhere = Head { size: 4, hash: [9; 32] };
    assert!(matches!(journal.scan_verified(elsewhere, go_on), Err(ReadError::BrokenChain { sequence: 4 })));
}

pub fn checkpoints_sign_for_all_records(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    assert_eq!(journal.checkpointed().size(), 0);
    let verifier = verifier(&keys.public_keys()[0]);
    assert_eq!(journal.checkpoint(stamp(0)).expect("no failure"), None);
    for round in 0..8 {
        append(journal.as_ref(), &keys, 1 + round);
        append(journal.as_ref(), &keys, 2);
        let checkpoint = journal.checkpoint(stamp(round)).expect("no failure");
        let checkpoint = checkpoint.expect("something new");
        let opened = Checkpoint::open(&checkpoint.note, std::slice::from_ref(&verifier), ORIGIN);
        let opened = opened.expect("a signed note");
        assert_eq!(opened.size(), journal.head().size);
        assert_eq!(*opened.root(), tree(journal.as_ref()).root());
        assert_eq!(checkpoint.position.head, journal.head());
        assert_eq!(checkpoint.position.tree, tree(journal.as_ref()));
        assert_eq!(journal.checkpointed(), checkpoint);
        assert_eq!(journal.checkpoint(stamp(round)).expect("no failure"), None);
    }
}

pub fn a_rotated_key_signs_from_its_record_on(harness: &mut impl Harness) {
    let keys = keys();
    let old_key = keys.public_keys()[0];
    let journal = harness.create(keys.clone());
    append(journal.as_ref(), &keys, 3);
    let new_key = keys.add(&[2; 32]).expect("a second key");
    let before = journal.checkpoint(stamp(3)).expect("no failure").expect("new");

    let mut rotation = Record::new(3, stamp(3), KeyRotated { old_key, new_key });
    rotation.signers.extend([old_key, new_key]);
    let mut batch = Batch::new(3);
    batch.push(&rotation);
    journal.prepare().expect("room");
    journal.append(&mut batch).expect("a rotation");
    let after = journal.checkpoint(stamp(4)).expect("no failure").expect("new");

    // Until the old key is retired, it signs too, after the one in force.
    let opens = |note: &str, key| Checkpoint::open(note, &[verifier(key)], ORIGIN).is_ok();
    assert!(opens(&before.note, &old_key) && !opens(&before.note, &new_key));
    assert!(opens(&after.note, &new_key) && opens(&after.note, &old_key));
    let first = Note::parse(&after.note).expect("a note").signatures()[0].key_id();
    assert_eq!(first, verifier(&new_key).id());
    drop(journal);
    let journal = harness.reopen();
    append(journal.as_ref(), &keys, 2);
    let later = journal.checkpoint(stamp(6)).expect("no failure").expect("new");
    assert!(opens(&later.note, &new_key) && opens(&later.note, &old_key));
    let name = format!("leasehold-key-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    keys.retire_before(&path, &new_key).expect("a file");
    std::fs::remove_file(path).expect("the file");
    append(journal.as_ref(), &keys, 2);
    let finished = journal.checkpoint(stamp(8)).expect("no failure").expect("new");
    assert!(opens(&finished.note, &new_key) && !opens(&finished.note, &old_key));
    drop(journal);
    append(harness.reopen().as_ref(), &keys, 2);
}

pub fn what_would_not_stand_is_refused(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    let refused = |record: &Record| {
        let head = journal.head();
        let mut batch = Batch::new(head.size);
        batch.push(record);
        journal.prepare().expect("room");
        let error = journal.append(&mut batch).expect_err("a bad record");
        assert_eq!(journal.head(), head);
        error
    };
    let is_refused = |error: &AppendError| matches!(error, AppendError::Refused { .. });

    // The first record is the genesis record of this origin, with a key that is held.
    assert!(is_refused(&refused(&Record::new(0, stamp(0), Heartbeat {}))));
    let foreign = Keys::new("other.example", &[1; 32]).expect("a keyring");
    assert!(is_refused(&refused(&genesis(&foreign))));
    let stranger = Keys::new(ORIGIN, &[7; 32]).expect("a keyring");
    assert!(matches!(refused(&genesis(&stranger)), AppendError::MissingKey(_)));

    // Stamps never go back, and keys change hands properly.
    append(journal.as_ref(), &keys, 3);
    assert!(is_refused(&refused(&Record::new(3, stamp(1), Heartbeat {}))));
    let (old_key, new_key) = (keys.public_keys()[0], stranger.public_keys()[0]);
    let mut rotation = Record::new(3, stamp(3), KeyRotated { old_key, new_key });
    rotation.signers.extend([old_key, new_key]);
    assert!(matches!(refused(&rotation), AppendError::MissingKey(_)));
    keys.add(&[7; 32]).expect("the new key");
    rotation.signers.pop();
    assert!(is_refused(&refused(&rotation)));
    append(journal.as_ref(), &keys, 3);
    journal.checkpoint(stamp(9)).expect("no failure").expect("new");
    check_records(journal.as_ref(), &keys, 6);
}

pub fn a_full_journal_takes_the_same_batch_later<H: Harness>(harness: &mut H) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    let mut size = 0;
    let mut held_back = None;
    while held_back.is_none() {
        let mut batch = batch(&keys, size, 4);
        let room = journal.room();
        match journal.append(&mut batch) {
            Ok(head) => {
                size = head.size;
                assert!(room > 0);
            }
            Err(AppendError::Full) => {
                assert!(room < batch.bytes().len() as u64, "there is no room of {room} bytes");
                held_back = Some(batch);
            }
            Err(error) => panic!("{error}"),
        }
        assert!(size < 10_000, "it must be full some time");
    }
    check_records(journal.as_ref(), &keys, size);
    journal.checkpoint(stamp(size)).expect("reads and checkpoints go on");
    journal.prepare().expect("room on the disk");
    let mut batch = held_back.expect("a batch that did not fit");
    assert!(journal.room() >= batch.bytes().len() as u64);
    journal.append(&mut batch).expect("an append");
    check_records(journal.as_ref(), &keys, size + 4);
}

pub fn a_batch_larger_than_a_segment_is_refused<H: Harness>(harness: &mut H) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    let mut large = batch(&keys, 0, (H::BATCH_BYTES as u64 * 4) / 100);
    assert!(matches!(journal.append(&mut large), Err(AppendError::TooLarge { .. })));
    append(journal.as_ref(), &keys, 2);
    check_records(journal.as_ref(), &keys, 2);
}

pub fn snapshots_are_kept_and_pruned(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    let mut positions = Vec::new();
    for round in 0..4_u8 {
        append(journal.as_ref(), &keys, 3);
        let checkpoint = journal.checkpoint(stamp(0)).expect("no failure").expect("new");
        let state = vec![round; 1000 * usize::from(round)];
        journal.put_snapshot(&checkpoint.position, &state).expect("kept");
        positions.push(checkpoint.position);
    }
    assert_eq!(journal.snapshots().expect("a list"), [3, 6, 9, 12]);
    drop(journal);
    let journal = harness.reopen();
    let loaded = journal.load_snapshot(u64::MAX).expect("no failure");
    let snapshot = loaded.snapshot.expect("the newest");
    assert_eq!(snapshot.position, positions[3]);
    assert_eq!(snapshot.state, vec![3; 3000]);
    assert!(loaded.damaged.is_empty());
    let earlier = journal.load_snapshot(8).expect("no failure").snapshot;
    assert_eq!(earlier.map(|s| s.position.size()), Some(6));
    assert_eq!(journal.load_snapshot(2).expect("no failure").snapshot, None);

    assert_eq!(journal.prune_snapshots().expect("removed"), [3, 6]);
    assert_eq!(journal.snapshots().expect("a list"), [9, 12]);

    append(journal.as_ref(), &keys, 1);
    let mut ahead = positions[3].clone();
    ahead.head = journal.head();
    assert!(matches!(journal.put_snapshot(&ahead, b""), Err(SnapshotError::NotCheckpointed { size: 13 })));
}

pub fn a_journal_goes_on_after_a_restart(harness: &mut impl Harness) {
    let keys = keys();
    let mut journal = harness.create(keys.clone());
    let mut size = 0;
    assert_eq!(journal.epoch(), 1);
    for round in 0..6 {
        for _ in 0..=round {
            size = append(journal.as_ref(), &keys, 3).size;
        }
        let head = journal.head();
        match round % 3 {
            0 => journal.close(stamp(size)).expect("a clean stop"),
            1 => drop(journal.checkpoint(stamp(size)).expect("no failure")),
            _ => {}
        }
        drop(journal);
        journal = harness.reopen();
        assert_eq!(journal.head(), head);
        assert_eq!(journal.epoch(), round + 2);
        check_records(journal.as_ref(), &keys, size);
    }
    append(journal.as_ref(), &keys, 1);
    journal.checkpoint(stamp(size)).expect("no failure").expect("new");
    assert_eq!(journal.checkpointed().position.tree, tree(journal.as_ref()));
}

pub fn a_closed_journal_takes_nothing(harness: &mut impl Harness) {
    let keys = keys();
    let journal = harness.create(keys.clone());
    append(journal.as_ref(), &keys, 2);
    journal.close(stamp(2)).expect("a clean stop");
    assert_eq!(journal.checkpointed().size(), 2);
    let mut batch = batch(&keys, 2, 1);
    assert!(matches!(journal.append(&mut batch), Err(AppendError::Failed(_))));
    assert!(matches!(journal.prepare(), Err(PrepareError::Failed(_))));
    check_records(journal.as_ref(), &keys, 2);
}
