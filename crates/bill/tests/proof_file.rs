//! The proof file: what is written is read again and leads to the root of the journal, and nothing else does.

use leasehold_bill::proof_file::{BadProofFile, Growth, Lists, ProofFile, ProofWriter};
use leasehold_model::body::{ClockJumped, Heartbeat};
use leasehold_model::frame::Signer;
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::{Batch, Hash, Instant, InvoiceNo, RawBatch, Record};
use leasehold_tlog::{ConsistencyBuilder, Frontier, ProofError, SigningKey, leaf_hash, perfect_root};
use proptest::prelude::*;
use std::collections::BTreeSet;

const INVOICE: InvoiceNo = InvoiceNo { series: InvoiceSeries::Invoice, number: 300 };
const NOTE: &str = "a.example\n3\nroot\n\n\u{2014} a.example AAAA\n";
const LISTS: Lists<&[u8]> = Lists { common: b"common", tenant: b"", claimed_nodes: b"nodes" };

struct Key(SigningKey);
impl Key {
    fn new() -> Self {
        Self(SigningKey::from_seed("a.example", &[7; 32]).expect("a key"))
    }
}
impl Signer for Key {
    fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]> {
        (self.0.verifier().public_key() == *public_key).then(|| self.0.sign_raw(message))
    }
}

/// A journal of so many records; each seventh is signed.
fn journal(size: u64) -> Batch {
    let key = Key::new();
    let mut batch = Batch::new(0);
    for sequence in 0..size {
        let stamp = Instant(1_000_000 + sequence);
        let mut record = match sequence % 3 {
            0 => Record::new(sequence, stamp, ClockJumped { wall_clock: Instant(sequence) }),
            _ => Record::new(sequence, stamp, Heartbeat {}),
        };
        if sequence % 7 == 6 {
            record.signers.push(key.0.verifier().public_key());
        }
        batch.push(&record);
    }
    batch.seal(&[0; 32], &key).expect("the key is there");
    batch
}

fn root_of(batch: &Batch) -> Hash {
    let mut tree = Frontier::new();
    RawBatch::read(batch.bytes()).expect("a batch").records().for_each(|raw| {
        tree.push(leaf_hash(&raw.expect("a frame").hash()));
    });
    tree.root()
}

/// The file with some of the records. Blocks of 2^level records without any are given by their root.
fn write(batch: &Batch, chosen: &BTreeSet<u64>, level: Option<u32>) -> (Vec<u8>, Hash) {
    let raw: Vec<_> =
        RawBatch::read(batch.bytes()).expect("a batch").records().map(|raw| raw.expect("a frame")).collect();
    let mut writer = ProofWriter::new(INVOICE, NOTE, None);
    while writer.size() < raw.len() as u64 {
        let at = writer.size();
        let block = level.map(|level| (level, at..at + (1 << level))).filter(|(level, block)| {
            at.is_multiple_of(1 << level)
                && block.end <= raw.len() as u64
                && chosen.range(block.clone()).next().is_none()
        });
        if let Some((level, block)) = block {
            let mut leaves: Vec<Hash> = block.map(|at| leaf_hash(&raw[usize::try_from(at).unwrap()].hash())).collect();
            writer.pass_subtree(level, perfect_root(&mut leaves)).expect("a whole block");
            continue;
        }
        let record = &raw[usize::try_from(at).unwrap()];
        if chosen.contains(&at) {
            writer.record(record, &record.hash())
        } else {
            writer.pass(leaf_hash(&record.hash()))
        }
    }
    writer.finish(&LISTS).expect("a record is chosen")
}

/// The root to which a file leads, and the sequences of its records.
fn read(bytes: &[u8], size: u64) -> Result<(Hash, Vec<u64>), BadProofFile> {
    let file = ProofFile::read(bytes)?;
    let mut sequences = Vec::new();
    let root = file.root(size, |record, _| {
        sequences.push(record.sequence);
        Ok::<_, BadProofFile>(())
    })?;
    Ok((root, sequences))
}

fn size_and_chosen() -> impl Strategy<Value = (u64, BTreeSet<u64>)> {
    (1_u64..120).prop_flat_map(|size| {
        (Just(size), prop::collection::btree_set(0..size, 1..=30.min(usize::try_from(size).unwrap())))
    })
}

proptest! {
    #[test]
    fn what_is_written_leads_to_the_root((size, chosen) in size_and_chosen(), level in 1_u32..5) {
        let batch = journal(size);
        let (bytes, root) = write(&batch, &chosen, None);
        prop_assert_eq!(root, root_of(&batch));
        prop_assert_eq!(&write(&batch, &chosen, Some(level)), &(bytes.clone(), root));
        let file = ProofFile::read(&bytes).unwrap();
        prop_assert_eq!((file.invoice, file.checkpoint, file.lists), (INVOICE, NOTE, LISTS));
        let (found, sequences) = read(&bytes, size).unwrap();
        prop_assert_eq!(found, root);
        prop_assert_eq!(sequences, chosen.into_iter().collect::<Vec<_>>());
    }

    /// A changed file is refused, or leads to another root, or differs in what the root does not cover: the number, the
    /// checkpoint and the lists, which have to be compared with what they claim.
    #[test]
    fn every_byte_matters((size, chosen) in size_and_chosen(), at: prop::sample::Index, by in 1_u8..=255, how in 0..4) {
        let batch = journal(size);
        let (bytes, root) = write(&batch, &chosen, None);
        let mut changed = bytes.clone();
        let place = at.index(bytes.len());
        match how {
            0 => changed[place] ^= by,
            1 => changed.truncate(place),
            2 => changed.insert(place, by),
            _ => changed.splice(place..place, bytes.iter().copied().skip(place).take(32)).for_each(drop),
        }
        prop_assume!(changed != bytes);
        if let (Ok(file), Ok((found, _))) = (ProofFile::read(&changed), read(&changed, size)) {
            let same = (file.invoice, file.checkpoint, file.lists) == (INVOICE, NOTE, LISTS);
            prop_assert!(found != root || !same);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes: Vec<u8>, size: u64) {
        prop_assert_eq!(read(&bytes, size), Err(BadProofFile::NotAProof));
        let after_the_line = [b"leasehold-invoice-proof v1\n\x01\x01\0\0".as_slice(), &bytes].concat();
        let _ = read(&after_the_line, size);
    }
}

/// Written out by hand from the reference page.
#[test]
fn the_bytes_are_those_of_the_reference() {
    let batch = journal(3);
    let (bytes, _) = write(&batch, &[1].into(), None);
    let raw: Vec<_> = RawBatch::read(batch.bytes()).unwrap().records().map(Result::unwrap).collect();
    let mut expected = b"leasehold-invoice-proof v1\n".to_vec();
    expected.extend([1, 0xac, 0x02]); // the series, and 300
    expected.push(u8::try_from(NOTE.len()).unwrap());
    expected.extend(NOTE.as_bytes());
    expected.push(0); // no earlier size
    // Record 1: eleven bytes without signatures, then its link. Sequence, stamp, kind and parts:
    expected.extend([11 << 2, 1, 0x41, 0x42, 0x0f, 0, 0, 0, 0, 0, 3, 0]);
    expected.extend(raw[0].hash());
    expected.extend([0, 6]);
    expected.extend(b"common\0\x05nodes");
    // Record 0 follows from the link, so that only record 2 is missing.
    expected.extend(leaf_hash(&raw[2].hash()));
    assert_eq!(bytes, expected);
}

#[test]
fn a_file_that_is_not_one_is_refused_with_its_reason() {
    let batch = journal(20);
    let (bytes, root) = write(&batch, &[6, 7, 13].into(), None);
    assert_eq!(read(&bytes, 20), Ok((root, vec![6, 7, 13])));
    assert_eq!(read(b"", 20), Err(BadProofFile::NotAProof));
    assert_eq!(read(b"leasehold-invoice-proof v2\n", 20), Err(BadProofFile::NewerFormat));
    assert_eq!(read(b"leasehold-invoice-proof v12", 20), Err(BadProofFile::NewerFormat));
    for other in ["v0\n", "v01\n", "v1", "v\n", "v1x\n"] {
        assert_eq!(read(format!("leasehold-invoice-proof {other}").as_bytes(), 20), Err(BadProofFile::NotAProof));
    }
    assert_eq!(read(&[bytes.as_slice(), &[0]].concat(), 20), Err(BadProofFile::PartOfAHash));
    assert_eq!(read(&[bytes.as_slice(), &[0; 32]].concat(), 20), Err(BadProofFile::Proof(ProofError::TooManyHashes)));
    assert_eq!(read(&bytes[..bytes.len() - 32], 20), Err(BadProofFile::Proof(ProofError::TooFewHashes)));
    // Record 6 is signed; its signature is the only 64 bytes that are not hashed.
    let raw: Vec<_> = RawBatch::read(batch.bytes()).unwrap().records().map(Result::unwrap).collect();
    let signature = raw[6].signatures;
    let at = bytes.windows(64).position(|window| window == signature).expect("it is in the file");
    let mut forged = bytes.clone();
    forged[at] ^= 1;
    assert_eq!(read(&forged, 20), Err(BadProofFile::BadSignature { sequence: 6 }));
}

/// A length says nothing about how much memory is needed: what is longer than the rest of the file is refused at once.
#[test]
fn lengths_beyond_the_file_are_refused_and_allocate_nothing() {
    let head = b"leasehold-invoice-proof v1\n\x01\x01";
    let huge: [&[u8]; 4] = [
        &[0xff, 0xff, 0x3f],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ];
    let (no_note, no_growth, no_records): (&[u8], &[u8], &[u8]) = (&[0], &[0], &[0]);
    let earlier = [&[5_u8] as &[u8], &[7; 32]].concat();
    for length in huge {
        // Where a note, the hashes of an earlier size, a record and the three lists have their lengths.
        let places: [Vec<&[u8]>; 6] = [
            vec![],
            vec![no_note, &earlier],
            vec![no_note, no_growth],
            vec![no_note, no_growth, no_records],
            vec![no_note, no_growth, no_records, &[0]],
            vec![no_note, no_growth, no_records, &[0], &[0]],
        ];
        for before in places {
            let bytes = [head as &[u8], &before.concat(), length, &[1; 40]].concat();
            let (read, allocated) = counting(|| ProofFile::read(&bytes).map(drop));
            assert!(read.is_err(), "{before:?} {length:?}");
            assert!(allocated <= 16 * bytes.len(), "{allocated} bytes for {before:?} {length:?}");
        }
    }
}

/// Reading needs no more memory than some times the bytes of the file, whatever they are.
#[test]
fn memory_is_bounded_by_the_size_of_the_file() {
    let (bytes, _) = write(&journal(120), &(0..120).step_by(3).collect(), None);
    let mut cases = vec![bytes.clone(), [bytes.as_slice(), &bytes].concat()];
    for place in 0..bytes.len() {
        for to in [0, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[place] = to;
            cases.push(changed);
        }
        cases.push(bytes[..place].to_vec());
    }
    for case in cases {
        let (_, allocated) = counting(|| read(&case, 120).map(drop));
        assert!(allocated <= 64 * case.len() + 4096, "{allocated} bytes for a file of {}", case.len());
    }
}

#[test]
fn growth_is_verified_against_the_checkpoint() {
    let batch = journal(50);
    let raw: Vec<_> = RawBatch::read(batch.bytes()).unwrap().records().map(Result::unwrap).collect();
    let mut builder = ConsistencyBuilder::new(20, 50).expect("it has grown");
    raw.iter().for_each(|record| builder.push(leaf_hash(&record.hash())));
    let (proof, root, whole) = builder.finish().expect("all leaves");
    let growth = Growth { from: 20, root, hashes: proof.hashes };
    let written = |growth: &Growth| {
        let mut writer = ProofWriter::new(INVOICE, NOTE, Some(growth));
        raw.iter().for_each(|record| writer.record(record, &record.hash()));
        writer.finish(&LISTS).expect("records").0
    };
    let bytes = written(&growth);
    let file = ProofFile::read(&bytes).expect("a file");
    assert_eq!(file.growth.as_ref(), Some(&growth));
    assert_eq!(file.check_growth(50, &whole), Ok(()));
    assert_eq!(file.check_growth(19, &whole), Err(BadProofFile::NotGrown { from: 20 }));
    assert_eq!(file.check_growth(50, &root), Err(BadProofFile::NotGrown { from: 20 }));
    let mut more = growth.clone();
    more.hashes.push([0; 32]);
    for other in [Growth { from: 21, ..growth.clone() }, Growth { root: whole, ..growth.clone() }, more] {
        let bytes = written(&other);
        let file = ProofFile::read(&bytes).expect("a file");
        assert_eq!(file.check_growth(50, &whole), Err(BadProofFile::NotGrown { from: other.from }));
    }
    // Their number has a limit.
    let many = Growth { hashes: vec![[0; 32]; 64], ..growth };
    assert!(ProofFile::read(&written(&many)).is_err());
}

/// Counts the bytes that a thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

// Every call goes to the allocator of the system.
#[allow(unsafe_code)]
unsafe impl std::alloc::GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + layout.size()));
        unsafe { std::alloc::System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: std::alloc::Layout) {
        unsafe { std::alloc::System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a call returns, and how much it allocated.
fn counting<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.get();
    let returned = call();
    (returned, ALLOCATED.get() - before)
}
