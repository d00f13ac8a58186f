//! Real journals to attack, and the attacker's tools.
#![allow(dead_code, unreachable_pub, reason = "each test file is a crate of its own and uses some of it")]

pub mod clock;

use leasehold_journal::{FileJournal, Journal, Keys, Local, Options as Layout, RealDisk, Secret};
use leasehold_model::body::{Genesis, Heartbeat, KeyRotated};
use leasehold_model::frame::signed_message;
use leasehold_model::{Batch, Body, FORMAT_VERSION, Instant, Name, RawBatch, Record};
use leasehold_tlog::{Checkpoint, Frontier, SigningKey, leaf_hash};
use leasehold_verify::{Failure, Options, Report, Trust, verify};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

pub const ORIGIN: &str = "cluster-1.example.org";
pub const FIRST_SEED: [u8; 32] = [1; 32];
pub const SECOND_SEED: [u8; 32] = [2; 32];
/// Of someone who signs single records.
const NOTARY_SEED: [u8; 32] = [3; 32];
const HEADER_BYTES: usize = 96;

pub fn key(seed: [u8; 32]) -> SigningKey {
    SigningKey::from_seed(ORIGIN, &seed).unwrap()
}

pub fn stamp(sequence: u64) -> Instant {
    Instant(1_700_000_000_000_000_000 + sequence * 1_000_000)
}

pub fn genesis() -> Record {
    let body = Genesis {
        format_version: FORMAT_VERSION,
        origin: Name::new(ORIGIN).unwrap(),
        public_key: key(FIRST_SEED).public_key(),
        software: Name::new("test").unwrap(),
    };
    Record::new(0, stamp(0), body)
}

pub fn plain(sequence: u64) -> Record {
    let mut record = Record::new(sequence, stamp(sequence), Heartbeat {});
    record.identity.workload = Some(Name::new(&format!("job {sequence}")).unwrap());
    record
}

pub fn rotation(sequence: u64) -> Record {
    let (old_key, new_key) = (key(FIRST_SEED).public_key(), key(SECOND_SEED).public_key());
    let mut record = Record::new(sequence, stamp(sequence), KeyRotated { old_key, new_key });
    record.signers = [old_key, new_key].into_iter().collect();
    record
}

fn notarised(sequence: u64) -> Record {
    let mut record = plain(sequence);
    record.signers.push(key(NOTARY_SEED).public_key());
    record
}

/// The sequences of the sample journal that are not plain.
pub const NOTARISED_AT: u64 = 5;
pub const UNKNOWN_KIND_AT: u64 = 7;
pub const ROTATED_AT: u64 = 14;
/// What the sample journal holds, and what its anchor signs for.
pub const RECORDS: u64 = 30;
pub const ANCHORED: u64 = 27;

fn sample_record(sequence: u64) -> Record {
    match sequence {
        0 => genesis(),
        NOTARISED_AT => notarised(sequence),
        UNKNOWN_KIND_AT => {
            Record::new(sequence, stamp(sequence), Body::Unknown { kind: 9_999, bytes: b"from the future".to_vec() })
        }
        ROTATED_AT => rotation(sequence),
        _ => plain(sequence),
    }
}

/// A data folder and what the auditor knows.
pub struct Sample {
    pub folder: TempDir,
    pub trust: Trust,
    pub archives: Vec<PathBuf>,
}

impl Sample {
    /// A journal by the real journal crate: three segments, a key rotation, a record signed by someone else, one of
    /// an unknown kind, three records after the anchor, padding, and a segment that was not begun. As after a crash.
    pub fn new() -> Self {
        // Written once, with all its syncs, and copied from memory.
        static FILES: OnceLock<Vec<(&str, String, Vec<u8>)>> = OnceLock::new();
        let files = FILES.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            Self::write(folder.path());
            let inside = |below: &'static str| {
                let entries = fs::read_dir(folder.path().join(below)).unwrap().map(Result::unwrap);
                let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
                files.map(move |entry| {
                    (below, entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
                })
            };
            inside("").chain(inside("journal")).collect()
        });
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("journal")).unwrap();
        for (below, name, bytes) in files {
            fs::write(folder.path().join(below).join(name), bytes).unwrap();
        }
        Self { folder, trust: Trust::new(key(FIRST_SEED).verifier()), archives: Vec::new() }
    }

    fn write(folder: &Path) {
        let keys = Arc::new(Keys::new(ORIGIN, &FIRST_SEED).unwrap());
        keys.add(&SECOND_SEED).unwrap();
        keys.add(&NOTARY_SEED).unwrap();
        let layout = Layout { segment_bytes: 1200, ..Layout::default() };
        let disk = Arc::new(RealDisk::new(folder));
        let journal = FileJournal::create(disk, layout, keys, Local::new(Secret::new([7; 32])), stamp(0)).unwrap();
        for first in (0..RECORDS).step_by(3) {
            journal.prepare().unwrap();
            let mut batch = Batch::new(first);
            (first..first + 3).for_each(|sequence| batch.push(&sample_record(sequence)));
            journal.append(&mut batch).unwrap();
            if first + 3 <= ANCHORED {
                journal.checkpoint(stamp(first)).unwrap();
            }
        }
        journal.prepare().unwrap();
    }

    /// The same files in a folder of their own.
    pub fn copy(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy_files(self.path(), folder.path());
        Self { folder, trust: self.trust.clone(), archives: self.archives.clone() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
    pub fn segment(&self, number: u32) -> PathBuf {
        self.path().join(format!("journal/{number:08}.seg"))
    }
    pub fn tree(&self, number: u32) -> PathBuf {
        self.path().join(format!("journal/{number:08}.tree"))
    }
    pub fn anchor(&self) -> PathBuf {
        self.path().join("anchor")
    }

    pub fn verify_with(&self, threads: usize) -> Result<Report, Failure> {
        verify(&Options {
            data: self.path().to_owned(),
            archives: self.archives.clone(),
            trust: self.trust.clone(),
            threads,
            progress: None,
        })
    }
    pub fn verify(&self) -> Result<Report, Failure> {
        self.verify_with(1)
    }

    /// Checks the code and, where one can be named, the record.
    #[track_caller]
    pub fn must_fail(&self, code: &str, sequence: Option<u64>) -> Failure {
        let failure = self.verify().expect_err(code);
        assert_eq!((failure.code(), failure.sequence), (code, sequence), "{failure}");
        let again = self.verify_with(3).expect_err(code);
        assert_eq!((again.code(), again.sequence), (code, sequence), "with more threads: {again}");
        failure
    }

    /// Takes the segment apart, lets the attacker at it, and puts it together again with fitting checksums.
    pub fn edit(&self, segment: u32, attack: impl FnOnce(&mut Opened)) {
        let mut opened = Opened::read(&self.segment(segment));
        attack(&mut opened);
        put(&self.segment(segment), &opened.encode());
    }

    /// Which segment holds a record.
    pub fn segment_of(&self, sequence: u64) -> u32 {
        (1..).find(|n| Opened::read(&self.segment(*n)).find(sequence).is_some()).unwrap()
    }

    pub fn edit_record(&self, sequence: u64, attack: impl FnOnce(&mut Frame)) {
        self.edit(self.segment_of(sequence), |opened| {
            let (batch, frame) = opened.find(sequence).unwrap();
            attack(&mut opened.batches[batch][frame]);
        });
    }

    /// The text in the anchor slot that counts.
    pub fn anchor_text(&self) -> String {
        let bytes = fs::read(self.anchor()).unwrap();
        let texts = bytes.chunks(4096).map(|slot| String::from_utf8(slot.to_vec()).unwrap());
        let texts = texts.map(|text| text.trim_end_matches('\0').to_owned()).filter(|text| !text.is_empty());
        let counter = |text: &String| text.lines().nth(1).unwrap()["counter ".len()..].parse::<u64>().unwrap();
        texts.max_by_key(counter).unwrap()
    }

    /// Puts an anchor of this text in place of both slots. The `end` line is made to fit.
    pub fn forge_anchor(&self, text: &str) {
        let mut slot = with_fitting_end(text).into_bytes();
        slot.resize(8192, 0);
        put(&self.anchor(), &slot);
    }

    /// The checkpoint in the anchor.
    pub fn note(&self) -> String {
        let text = self.anchor_text();
        let note = text.split_once("\ncheckpoint\n").unwrap().1;
        note[..note.rfind("\nmac ").or_else(|| note.rfind("\nend ")).unwrap() + 1].to_owned()
    }
}

/// The text with an `end` line that fits.
pub fn with_fitting_end(text: &str) -> String {
    let body = &text[..text.rfind("\nend ").unwrap() + 1];
    format!("{body}end {}\n", hex(&Sha256::digest(body)))
}

/// Writes a file anew. Where one is cut and written over, some file systems wait for the disk.
pub fn put(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

pub fn flip(path: &Path, at: usize, bit: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1 << bit;
    put(path, &bytes);
}

pub fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_files(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A record's hashed bytes and its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Vec<u8>,
    pub signatures: Vec<u8>,
}

impl Frame {
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }
    pub fn sequence(&self) -> u64 {
        leasehold_model::Reader::new(&self.bytes[32..]).varint().unwrap()
    }
}

/// A segment taken apart.
pub struct Opened {
    pub header: Vec<u8>,
    pub batches: Vec<Vec<Frame>>,
}

impl Opened {
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let mut rest = &bytes[HEADER_BYTES..];
        let mut batches = Vec::new();
        while let Ok(batch) = RawBatch::read(rest) {
            rest = &rest[batch.bytes_total()..];
            let frames = batch.records().map(Result::unwrap);
            let frames =
                frames.map(|raw| Frame { bytes: raw.bytes.to_vec(), signatures: raw.signatures.to_vec() }).collect();
            batches.push(frames);
        }
        Self { header: bytes[..HEADER_BYTES].to_vec(), batches }
    }

    pub fn find(&self, sequence: u64) -> Option<(usize, usize)> {
        let places = self.batches.iter().enumerate().flat_map(|(b, frames)| (0..frames.len()).map(move |f| (b, f)));
        places.into_iter().find(|(b, f)| self.batches[*b][*f].sequence() == sequence)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.header.clone();
        mend_header(&mut bytes);
        for frames in self.batches.iter().filter(|frames| !frames.is_empty()) {
            bytes.extend(encode_batch(frames));
        }
        bytes
    }
}

/// Makes the checksum of a segment's header fit.
pub fn mend_header(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..92]);
    bytes[92..96].copy_from_slice(&crc.to_le_bytes());
}

/// A batch of format version 2. Its MAC is zero: a verifier has no secret to check it with.
pub fn encode_batch(frames: &[Frame]) -> Vec<u8> {
    let mut payload = vec![0; 32];
    for frame in frames {
        let word = u32::try_from((frame.bytes.len() << 2) + frame.signatures.len() / 64).unwrap();
        payload.extend(word.to_le_bytes());
        payload.extend(&frame.bytes);
        payload.extend(&frame.signatures);
    }
    let counts = [u32::try_from(payload.len()).unwrap(), u32::try_from(frames.len()).unwrap()];
    let counts: Vec<u8> = counts.iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&counts);
    crc.update(&payload);
    [b"LHB2".as_slice(), &counts, &crc.finalize().to_le_bytes(), &payload].concat()
}

/// The attacker's rewrite: takes everything, lets `change` at the frames, and hashes, links, signs and anchors anew with
/// the keys given. The number of records may change, and then the sequences are up to `change`.
pub fn rewrite(sample: &Sample, keys: &[SigningKey], change: impl Fn(&mut [Frame])) {
    let mut head = [0; 32];
    let mut tree = Frontier::new();
    let mut signer = &keys[0];
    for number in 1.. {
        let Ok(bytes) = fs::read(sample.segment(number)) else { break };
        if bytes.iter().all(|b| *b == 0) {
            break;
        }
        if number > 1 {
            write_tree(sample, number, &tree, &head, signer);
        }
        let mut opened = Opened::read(&sample.segment(number));
        opened.header[16..24].copy_from_slice(&tree.size().to_le_bytes());
        opened.header[24..56].copy_from_slice(&head);
        for frames in &mut opened.batches {
            change(frames);
            for frame in frames {
                frame.bytes[..32].copy_from_slice(&head);
                head = frame.hash();
                tree.push(leaf_hash(&head));
                signer = resign(frame, keys, signer);
            }
        }
        put(&sample.segment(number), &opened.encode());
    }
    write_anchor(sample, &tree, &head, signer);
}

/// Signs the record anew where its signers are among `keys`, and says who signs checkpoints after it.
fn resign<'k>(frame: &mut Frame, keys: &'k [SigningKey], signer: &'k SigningKey) -> &'k SigningKey {
    let (message, hashed) = (signed_message(&frame.hash()), frame.bytes.clone());
    let record = Record::get(&mut leasehold_model::Reader::new(&hashed[32..])).unwrap();
    for (index, public_key) in record.signers.iter().enumerate() {
        if let Some(key) = keys.iter().find(|key| key.public_key() == *public_key) {
            frame.signatures[index * 64..][..64].copy_from_slice(&key.sign_raw(&message));
        }
    }
    match record.body {
        Body::KeyRotated(rotated) => keys.iter().find(|key| key.public_key() == rotated.new_key).unwrap_or(signer),
        _ => signer,
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub fn write_anchor(sample: &Sample, tree: &Frontier, head: &[u8; 32], signer: &SigningKey) {
    let note = Checkpoint::new(signer.name(), tree.size(), tree.root()).unwrap().sign(signer);
    sample.forge_anchor(&format!(
        "leasehold-anchor v1\ncounter 99\norigin {}\nepoch 1\nsize {}\nhead {}\nroot {}\nkey {}\ntime 0\ncheckpoint\n{note}end x",
        signer.name(),
        tree.size(),
        hex(head),
        hex(&tree.root()),
        signer.verifier().id(),
    ));
}

fn write_tree(sample: &Sample, number: u32, tree: &Frontier, head: &[u8; 32], signer: &SigningKey) {
    let note = Checkpoint::new(signer.name(), tree.size(), tree.root()).unwrap().sign(signer);
    let parts: String = tree.parts().iter().map(|part| format!("part {}\n", hex(part))).collect();
    let body = format!("leasehold-tree v1\nsize {}\nhead {}\n{parts}checkpoint\n{note}", tree.size(), hex(head));
    put(&sample.tree(number), with_fitting_end(&format!("{body}end x")).as_bytes());
}

/// All keys of the operator.
pub fn operator_keys() -> Vec<SigningKey> {
    vec![key(FIRST_SEED), key(SECOND_SEED), key(NOTARY_SEED)]
}
