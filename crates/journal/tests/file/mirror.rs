//! A collector's copy: what fits is kept through every crash, what does not is named and dropped.

use crate::faulty_disk::{FaultyDisk, Image, OPTIONS, Random};
use crate::story::{version_1, version_1_batch};
use leasehold_journal::conformance::{ORIGIN, append, batch, genesis, keys, record, stamp};
use leasehold_journal::{Journal, Keys, MemoryJournal, Mirror, Misfit, OpenError};
use leasehold_model::body::{Converted, Heartbeat, KeyRotated};
use leasehold_model::frame::Signer;
use leasehold_model::{Batch, RawBatch, Record};
use leasehold_tlog::{Checkpoint, Note, SigningKey, VerifierKey};
use std::sync::Arc;

const TRUST: [u8; 32] = [0x77; 32];

/// What an origin hands out: its batches in order, and after some of them a checkpoint.
struct Origin {
    batches: Vec<Sealed>,
}

#[derive(Clone)]
struct Sealed {
    first: u64,
    bytes: Vec<u8>,
    /// The checkpoint that lies at its end, if there is one.
    note: Option<Note>,
}

impl Sealed {
    fn end(&self) -> u64 {
        self.first + u64::from(self.raw().count())
    }
    fn raw(&self) -> RawBatch<'_> {
        RawBatch::read(&self.bytes).expect("a sealed batch")
    }
}

impl Origin {
    /// So many batches of a few records; one of them rotates the key. The last one is checkpointed.
    fn new(batches: usize, seed: u64) -> Self {
        let keys = keys();
        let journal = MemoryJournal::new(keys.clone());
        let mut random = Random(seed);
        let mut sealed: Vec<Sealed> = Vec::new();
        for round in 0..batches {
            let first = journal.head().size;
            let mut next = if round > 0 && round == batches / 2 {
                rotation(&keys, first)
            } else {
                batch(&keys, first, 1 + random.below(6))
            };
            journal.append(&mut next).expect("an append");
            let checkpoint = round + 1 == batches || random.below(3) == 0;
            let note = checkpoint.then(|| journal.checkpoint(stamp(0)).expect("no failure").expect("new").note);
            let note = note.map(|note| Note::parse(&note).expect("a note"));
            sealed.push(Sealed { first, bytes: next.bytes().to_vec(), note });
        }
        Self { batches: sealed }
    }
    fn size(&self) -> u64 {
        self.batches.last().expect("a batch").end()
    }
    fn bytes(&self) -> Vec<u8> {
        self.batches.iter().flat_map(|sealed| sealed.bytes.clone()).collect()
    }
}

fn rotation(keys: &Keys, sequence: u64) -> Batch {
    let old_key = keys.public_keys()[0];
    let new_key = keys.add(&[2; 32]).expect("a second key");
    let mut record = Record::new(sequence, stamp(sequence), KeyRotated { old_key, new_key });
    record.signers.extend([old_key, new_key]);
    let mut batch = Batch::new(sequence);
    batch.push(&record);
    batch
}

fn trusted() -> Vec<VerifierKey> {
    vec![VerifierKey::new(ORIGIN, &keys().public_keys()[0]).expect("a key")]
}

fn open(disk: &FaultyDisk) -> Result<Mirror, OpenError> {
    Mirror::open(Arc::new(disk.clone()), OPTIONS, ORIGIN, trusted(), TRUST, stamp(0))
}

/// Takes what the origin has after the mirror's end, and returns what was proved last.
fn collect(mirror: &mut Mirror, origin: &Origin, random: &mut Random, proved: &mut u64) -> Option<()> {
    let taken = mirror.size();
    // Also the batch that was taken last: its checkpoint may not have been met.
    for sealed in origin.batches.iter().filter(|sealed| sealed.end() >= taken) {
        if sealed.first >= taken {
            mirror.take(&sealed.raw()).expect("it fits");
        }
        if random.below(2) == 0 {
            mirror.flush().ok()?;
        }
        if let Some(note) = &sealed.note {
            match mirror.prove(note, stamp(0)) {
                Ok(()) => *proved = sealed.end(),
                Err(Misfit::Failed(_)) => return None,
                Err(misfit) => panic!("{misfit}"),
            }
        }
    }
    Some(())
}

/// The batches that lie in the segments.
fn stored(image: &Image) -> Vec<u8> {
    let segments = image.iter().filter(|(name, _)| name.ends_with(".seg"));
    segments.flat_map(|(_, bytes)| bytes[96..].to_vec()).collect()
}

fn files(image: &Image, ending: &str) -> usize {
    image.keys().filter(|name| name.ends_with(ending)).count()
}

#[test]
fn a_copy_holds_the_batches_of_its_origin() {
    let origin = Origin::new(60, 1);
    let disk = FaultyDisk::default();
    let mut mirror = open(&disk).unwrap();
    assert_eq!((mirror.size(), mirror.proved(), mirror.note()), (0, 0, ""));
    let mut proved = 0;
    collect(&mut mirror, &origin, &mut Random(1), &mut proved).unwrap();
    assert_eq!((mirror.size(), mirror.proved(), proved), (origin.size(), origin.size(), origin.size()));
    assert_eq!(Some(mirror.note()), origin.batches.last().unwrap().note.as_ref().map(Note::to_string).as_deref());
    let image = disk.image();
    assert_eq!(stored(&image), origin.bytes());
    assert!(files(&image, ".seg") > 3);
    assert!(files(&image, ".tree") > 1, "segments that begin at a checkpoint have a tree file");
    // The rotated key signs now, although nobody put it into the trust file.
    assert_ne!(mirror.key().unwrap(), trusted()[0]);

    drop(mirror);
    let mirror = open(&disk).unwrap();
    assert_eq!((mirror.size(), mirror.proved()), (origin.size(), origin.size()));
    assert_eq!(disk.image(), image, "nothing was to be done");
    assert!(matches!(open(&disk).err(), Some(OpenError::InUse)));
}

#[test]
fn a_copy_survives_a_crash_at_any_operation() {
    let origin = Origin::new(30, 2);
    for seed in 0..3 {
        let operations = {
            let disk = FaultyDisk::default();
            collect(&mut open(&disk).unwrap(), &origin, &mut Random(seed), &mut 0).unwrap();
            disk.operations()
        };
        for crash in 1..=operations {
            let place = format!("seed {seed}, crash at {crash}");
            let disk = FaultyDisk::default();
            disk.crash_at(crash);
            let mut proved = 0;
            if let Ok(mut mirror) = open(&disk) {
                assert_eq!(collect(&mut mirror, &origin, &mut Random(seed), &mut proved), None, "{place}");
            }
            let mut random = Random(seed << 32 | crash);
            let mut disk = disk.after_crash(&mut random);
            for _ in 0..random.below(3) {
                disk.crash_at(1 + random.below(8));
                drop(open(&disk));
                disk = disk.after_crash(&mut random);
            }
            let mut mirror = open(&disk).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!(mirror.proved() >= proved && mirror.size() >= mirror.proved(), "{place}");
            let so_far = stored(&disk.image());
            assert_eq!(so_far, origin.bytes()[..so_far.len()], "{place}");
            collect(&mut mirror, &origin, &mut random, &mut proved).unwrap();
            assert_eq!(mirror.proved(), origin.size(), "{place}");
            assert_eq!(stored(&disk.image()), origin.bytes(), "{place}");
        }
    }
}

#[test]
fn a_failed_sync_is_not_believed_later() {
    let origin = Origin::new(12, 3);
    let disk = FaultyDisk::default();
    let mut mirror = open(&disk).unwrap();
    collect(&mut mirror, &Origin { batches: origin.batches[..6].to_vec() }, &mut Random(0), &mut 0).unwrap();
    mirror.flush().unwrap();
    mirror.take(&origin.batches[6].raw()).unwrap();
    let last = disk.image().into_keys().filter(|name| name.ends_with(".seg")).max().unwrap();
    disk.fail_sync_of(&last);
    assert!(mirror.flush().is_err());
    drop(mirror);
    // What can still be read is written anew before it counts.
    let mirror = open(&disk).unwrap();
    assert_eq!(mirror.size(), origin.batches[6].end());
    drop(mirror);
    let disk = disk.after_crash(&mut Random(1));
    assert_eq!(open(&disk).unwrap().size(), origin.batches[6].end());
}

/// A batch of these records, sealed after the first `size` of the origin's.
fn forged(origin: &Origin, size: u64, records: &[Record], signer: &dyn Signer) -> Vec<u8> {
    let mut prev = [0; 32];
    let before = origin.batches.iter().filter(|sealed| sealed.end() <= size);
    before.flat_map(|sealed| sealed.raw().records()).for_each(|raw| prev = raw.unwrap().hash());
    let mut batch = Batch::new(records[0].sequence);
    records.iter().for_each(|record| batch.push(record));
    batch.seal(&prev, signer).expect("the keys are there");
    batch.bytes().to_vec()
}

#[test]
fn what_does_not_fit_is_named_and_nothing_of_it_is_kept() {
    let origin = Origin::new(8, 4);
    let disk = FaultyDisk::default();
    let mut mirror = open(&disk).unwrap();
    // Up to the last checkpoint but one, and then a batch that no checkpoint has proved.
    let proved_at = origin.batches.iter().rposition(|sealed| sealed.note.is_some() && sealed.end() < origin.size());
    let proved_at = proved_at.expect("two checkpoints");
    collect(&mut mirror, &Origin { batches: origin.batches[..=proved_at].to_vec() }, &mut Random(0), &mut 0).unwrap();
    let proved = mirror.proved();
    mirror.take(&origin.batches[proved_at + 1].raw()).unwrap();
    mirror.flush().unwrap();
    let size = mirror.size();
    let held = keys();
    held.add(&[2; 32]).unwrap();
    let mut refused = |bytes: &[u8]| {
        let before = mirror.size();
        let misfit = mirror.take(&RawBatch::read(bytes).expect("a batch")).expect_err("it does not fit");
        assert_eq!(mirror.size(), before);
        (misfit.code(), misfit.sequence(), misfit.to_string())
    };

    let (code, sequence, said) = refused(&forged(&origin, size, &[record(size + 1)], held.as_ref()));
    assert_eq!((code, sequence), ("gap", Some(size)), "{said}");
    assert_eq!(said, format!("record {size} is missing: record {} stands in its place", size + 1));
    let (code, _, said) = refused(&origin.batches[proved_at].bytes);
    assert_eq!(code, "out_of_order", "{said}");
    let (code, sequence, said) = refused(&forged(&origin, proved, &[record(size)], held.as_ref()));
    assert_eq!((code, sequence), ("broken_link", Some(size)), "{said}");
    let earlier = Record::new(size, stamp(0), Heartbeat {});
    assert_eq!(refused(&forged(&origin, size, &[earlier], held.as_ref())).0, "stamp_goes_back");
    let mut again = genesis(&held);
    (again.sequence, again.stamp, again.effective_at) = (size, stamp(size), stamp(size));
    assert_eq!(refused(&forged(&origin, size, &[again], held.as_ref())).0, "bad_genesis");

    // Signatures: of an ordinary record, and of a rotation from a key that is not in force.
    let mut signed = record(size);
    signed.signers.push(held.public_keys()[0]);
    let good = forged(&origin, size, &[signed.clone()], held.as_ref());
    struct Liar;
    impl Signer for Liar {
        fn sign(&self, _: &[u8; 32], _: &[u8]) -> Option<[u8; 64]> {
            Some([1; 64])
        }
    }
    assert_eq!(refused(&forged(&origin, size, &[signed], &Liar)).0, "bad_record_signature");
    let third = held.add(&[3; 32]).unwrap();
    let mut usurped = Record::new(size, stamp(size), KeyRotated { old_key: third, new_key: held.public_keys()[0] });
    usurped.signers.extend([third, held.public_keys()[0]]);
    assert_eq!(refused(&forged(&origin, size, &[usurped], held.as_ref())).0, "bad_rotation");

    mirror.take(&RawBatch::read(&good).unwrap()).expect("a record that somebody else signed");
    mirror.forget_unproved().unwrap();
    assert_eq!((mirror.size(), mirror.proved()), (proved, proved));
    collect(&mut mirror, &origin, &mut Random(0), &mut 0).unwrap();
    assert_eq!(stored(&disk.image()), origin.bytes());
}

#[test]
fn a_checkpoint_counts_only_if_the_key_in_force_signed_these_records() {
    let origin = Origin::new(1, 5);
    let mut mirror = open(&FaultyDisk::default()).unwrap();
    mirror.take(&origin.batches[0].raw()).unwrap();
    let size = mirror.size();
    let note = origin.batches[0].note.clone().unwrap();
    let root = *Checkpoint::from_body(note.text()).unwrap().root();
    let key = |seed| SigningKey::from_seed(ORIGIN, &[seed; 32]).unwrap();
    let mut refused = |text: String| {
        let misfit = mirror.prove(&Note::parse(&text).unwrap(), stamp(0)).expect_err("it does not fit");
        assert_eq!(mirror.proved(), 0);
        misfit.code()
    };
    let of = |origin: &str, root| Checkpoint::new(origin, size, root).unwrap();
    assert_eq!(refused(of(ORIGIN, root).sign(&key(9))), "not_signed");
    assert_eq!(refused(of(ORIGIN, [9; 32]).sign(&key(1))), "root_mismatch");
    assert_eq!(refused(of("other.example", root).sign(&key(1))), "wrong_origin");
    let mut false_one = note.to_string();
    let at = false_one.rfind(' ').unwrap() + 20;
    let other = if &false_one[at..=at] == "A" { "B" } else { "A" };
    false_one.replace_range(at..=at, other);
    assert_eq!(refused(false_one), "bad_signature");
    let mut extended = of(ORIGIN, root);
    extended.add_extension("something more").unwrap();
    assert_eq!(refused(extended.sign(&key(1))), "bad_checkpoint");
    mirror.prove(&note, stamp(0)).expect("the true one");
    assert_eq!(mirror.proved(), size);
}

#[test]
fn only_a_trusted_key_and_origin_begin_a_copy() {
    let disk = FaultyDisk::default();
    let mut mirror = open(&disk).unwrap();
    let stranger = Keys::new(ORIGIN, &[7; 32]).unwrap();
    let mut first = batch(&stranger, 0, 1);
    first.seal(&[0; 32], &stranger).unwrap();
    let misfit = mirror.take(&RawBatch::read(first.bytes()).unwrap()).unwrap_err();
    assert_eq!(misfit.code(), "unknown_key");
    let other = Keys::new("other.example", &[1; 32]).unwrap();
    let mut first = batch(&other, 0, 1);
    first.seal(&[0; 32], &other).unwrap();
    let misfit = mirror.take(&RawBatch::read(first.bytes()).unwrap()).unwrap_err();
    assert_eq!((misfit.code(), misfit.sequence()), ("bad_genesis", Some(0)));

    // Somebody else's folder is left alone, and so is the copy of another origin.
    drop(mirror);
    let elsewhere = Mirror::open(Arc::new(disk), OPTIONS, "other.example", Vec::new(), TRUST, stamp(0));
    assert!(matches!(elsewhere.err(), Some(OpenError::WrongOrigin { .. })));
    let taken = FaultyDisk::default();
    drop(crate::faulty_disk::create(&taken, &keys()));
    let before = taken.image();
    assert!(matches!(open(&taken).err(), Some(OpenError::NotACopy)));
    assert_eq!(taken.image(), before);
}

#[test]
fn a_copy_that_lost_what_it_had_proved_is_not_gone_on_with() {
    let origin = Origin::new(20, 6);
    let disk = FaultyDisk::default();
    collect(&mut open(&disk).unwrap(), &origin, &mut Random(0), &mut 0).unwrap();
    let image = disk.image();
    let last = image.keys().filter(|name| name.ends_with(".seg")).max().unwrap().clone();
    let code = |damage: &dyn Fn(&mut Image)| {
        let mut image = image.clone();
        damage(&mut image);
        open(&FaultyDisk::from_image(&image)).err().map(|error| error.code())
    };
    assert_eq!(code(&|image| image.get_mut(&last).unwrap().truncate(100)), Some("copy_damaged"));
    assert_eq!(code(&|image| drop(image.remove(&last))), Some("journal_segment_missing"));
    assert_eq!(code(&|image| image.get_mut("collector").unwrap()[40] ^= 1), Some("copy_damaged"));
    assert_eq!(code(&|image| drop(image.remove("collector"))), Some("not_a_copy"));
    // Old segments may be moved away, and a lost anchor is written again.
    assert_eq!(code(&|image| drop(image.remove("journal/00000001.seg"))), None);
    assert_eq!(code(&|image| drop(image.remove("anchor"))), None);
}

/// A journal that was begun in format version 1: the copy begins a segment where the version changes.
#[test]
fn a_converted_journal_is_collected() {
    let keys = keys();
    let origin = FaultyDisk::from_image(&version_1(&[4, 3], 7, &keys));
    let (journal, _) = crate::faulty_disk::open(&origin, &keys).unwrap();
    let mut first = Batch::new(7);
    first.push(&Record::new(7, stamp(7), Converted { format_version: 2 }));
    journal.append(&mut first).unwrap();
    append(&journal, &keys, 3);
    let note = Note::parse(&journal.checkpoint(stamp(11)).unwrap().unwrap().note).unwrap();
    let mut batches = Vec::new();
    journal
        .scan_batches(0, &mut |_, batch| {
            batches.push(batch.bytes().to_vec());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    let disk = FaultyDisk::default();
    let mut mirror = open(&disk).unwrap();
    for bytes in &batches {
        mirror.take(&RawBatch::read(bytes).unwrap()).unwrap();
    }
    mirror.prove(&note, stamp(11)).unwrap();
    drop(mirror);
    let image = disk.image();
    assert_eq!((image["journal/00000001.seg"][8], image["journal/00000002.seg"][8]), (1, 2));
    assert_eq!(stored(&image), batches.concat());
    // It goes on after a restart, and nothing of version 1 may follow.
    let mut mirror = open(&disk).unwrap();
    assert_eq!((mirror.size(), mirror.proved()), (11, 11));
    let mut late = Batch::new(11);
    late.push(&record(11));
    late.seal(&journal.head().hash, keys.as_ref()).unwrap();
    let of_version_1 = version_1_batch(late.bytes());
    let misfit = mirror.take(&RawBatch::read(&of_version_1).unwrap()).unwrap_err();
    assert_eq!((misfit.code(), misfit.sequence()), ("bad_conversion", Some(11)));
    mirror.take(&RawBatch::read(late.bytes()).unwrap()).unwrap();
    // Nor may version 2 begin without its record.
    let mut mirror = open(&FaultyDisk::default()).unwrap();
    mirror.take(&RawBatch::read(&batches[0]).unwrap()).unwrap();
    let mut silent = Batch::new(4);
    silent.push(&record(4));
    let last = RawBatch::read(&batches[0]).unwrap().records().last().unwrap().unwrap().hash();
    silent.seal(&last, keys.as_ref()).unwrap();
    assert_eq!(mirror.take(&RawBatch::read(silent.bytes()).unwrap()).unwrap_err().code(), "bad_conversion");
}
