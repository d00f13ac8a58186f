//! Journals with a past, and small tools to look at them.

use crate::faulty_disk::{FaultyDisk, Image, create};
use leasehold_journal::conformance::{append, batch, genesis, record, stamp};
use leasehold_journal::{FileJournal, Journal, Keys, OpenError, Recovered};
use leasehold_model::{Batch, Body, Hash, Record};
use leasehold_tlog::{Checkpoint, Frontier, SigningKey, leaf_hash};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Appends batches of these counts, checkpointing after those before `checkpointed`, and dies.
pub fn journal_of(counts: &[u64], checkpointed: usize, keys: &Arc<Keys>) -> Image {
    let disk = FaultyDisk::default();
    let journal = create(&disk, keys);
    for (round, count) in counts.iter().enumerate() {
        append(&journal, keys, *count);
        if round < checkpointed {
            journal.checkpoint(stamp(0)).unwrap();
        }
    }
    disk.image()
}

/// The batch as format version 1 has it: without its MAC.
pub fn version_1_batch(bytes: &[u8]) -> Vec<u8> {
    let payload = &bytes[48..];
    let counts = [&(payload.len() as u32).to_le_bytes(), &bytes[8..12]].concat();
    let crc = crc32fast::hash(&[&counts, payload].concat());
    [b"LHB1".as_slice(), &counts, &crc.to_le_bytes(), payload].concat()
}

/// A text with its `end` line.
pub fn closed(text: &str) -> String {
    format!("{text}end {}\n", leasehold_model::hex::encode(&Sha256::digest(text.as_bytes())))
}

/// A text as it lies in a slot of the anchor.
pub fn slot(text: &str) -> Vec<u8> {
    let mut slot = text.as_bytes().to_vec();
    slot.resize(4096, 0);
    slot
}

/// A directory as format version 1 left it: batches of these counts in one segment, and an anchor over the first
/// `anchored` records.
pub fn version_1(counts: &[u64], anchored: u64, keys: &Keys) -> Image {
    let (mut head, mut hashes, mut sequence) = ([0; 32], Vec::<Hash>::new(), 0);
    let origin = Sha256::digest(keys.origin().as_bytes());
    let mut segment = [b"LHSEGMNT".as_slice(), &1u32.to_le_bytes(), &1u32.to_le_bytes(), &[0; 40], &origin].concat();
    segment.extend([0; 4]);
    segment.extend(crc32fast::hash(&segment).to_le_bytes());
    for count in counts {
        let mut sealed = Batch::new(sequence);
        for sequence in sequence..sequence + count {
            sealed.push(&version_1_record(sequence, keys));
        }
        head = sealed.seal(&head, keys).unwrap();
        hashes.extend(sealed.frames().map(|frame| frame.unwrap().hash()));
        segment.extend(version_1_batch(sealed.bytes()));
        sequence += count;
    }
    let mut tree = Frontier::new();
    hashes[..anchored as usize].iter().for_each(|hash| tree.push(leaf_hash(hash)));
    let key = SigningKey::from_seed(keys.origin(), &[1; 32]).unwrap();
    let note = Checkpoint::new(keys.origin(), anchored, tree.root()).unwrap().sign(&key);
    let hex = leasehold_model::hex::encode;
    let anchor = closed(&format!(
        "leasehold-anchor v1\ncounter 5\norigin {}\nepoch 3\nsize {anchored}\nhead {}\nroot {}\nkey {}\ntime 1\ncheckpoint\n{note}",
        keys.origin(),
        hex(&hashes[anchored as usize - 1]),
        hex(&tree.root()),
        key.verifier().id(),
    ));
    let anchor = [slot(&anchor), vec![0; 4096]].concat();
    Image::from([(SEGMENT.to_owned(), segment), ("anchor".to_owned(), anchor)])
}

/// The records of [`version_1`].
pub fn version_1_record(sequence: u64, keys: &Keys) -> Record {
    let mut genesis = genesis(keys);
    if let Body::Genesis(body) = &mut genesis.body {
        body.format_version = 1;
    }
    if sequence == 0 { genesis } else { record(sequence) }
}

/// A batch that somebody without the secret appends: well linked, with a right checksum and this MAC.
pub fn forged(prev: Hash, first: u64, count: u64, mac: [u8; 32], keys: &Keys) -> Vec<u8> {
    let mut forged = batch(keys, first, count);
    forged.seal_with(&prev, keys, |_| mac).unwrap();
    forged.bytes().to_vec()
}

pub const SEGMENT: &str = "journal/00000001.seg";

pub fn end_of_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)
}

pub fn code(opened: Result<(FileJournal, Recovered), OpenError>) -> &'static str {
    let error = opened.err().expect("a refusal");
    assert!(!error.to_string().is_empty());
    error.code()
}

/// A record at another instant.
pub trait Restamped {
    fn restamped(self, sequence: u64) -> Self;
}
impl Restamped for Record {
    fn restamped(mut self, sequence: u64) -> Self {
        self.stamp = stamp(sequence);
        self.effective_at = self.stamp;
        self
    }
}
