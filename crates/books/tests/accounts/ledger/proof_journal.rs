//! Histories as sealed and signed journals, and the proof files of their invoices.

use leasehold_bill::proof_file::{Growth, Lists, ProofWriter};
use leasehold_bill::{Evidence, Evident};
use leasehold_model::body::KeyRotated;
use leasehold_model::codec::Field;
use leasehold_model::frame::Signer;
use leasehold_model::limits::BATCH_BYTES_MAX;
use leasehold_model::{Batch, Body, Hash, InvoiceNo, RawBatch, Record};
use leasehold_tlog::{Checkpoint, ConsistencyBuilder, Frontier, SigningKey, leaf_hash};
use std::collections::BTreeMap;

pub(super) const ORIGIN: &str = "sim.example";

/// The keys that sign records: those of a rotation.
struct Signers<'k>(&'k [&'k SigningKey]);
impl Signer for Signers<'_> {
    fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]> {
        let key = self.0.iter().find(|key| key.verifier().public_key() == *public_key)?;
        Some(key.sign_raw(message))
    }
}

/// Records in batches that fit, sealed one after the other.
pub(super) fn sealed(records: &[Record]) -> Vec<Batch> {
    sealed_by(records, &[])
}

fn sealed_by(records: &[Record], keys: &[&SigningKey]) -> Vec<Batch> {
    let mut batches = vec![Batch::new(0)];
    for record in records {
        let last = batches.last().expect("there is one");
        if last.bytes().len() > BATCH_BYTES_MAX / 2 || last.count() == 10_000 {
            batches.push(Batch::new(record.sequence));
        }
        batches.last_mut().expect("there is one").push(record);
    }
    let mut head = [0; 32];
    for batch in &mut batches {
        head = batch.seal(&head, &Signers(keys)).expect("the keys are there");
    }
    batches
}

pub(super) fn hashes(batches: &[Batch]) -> Vec<Hash> {
    let raw = batches.iter().map(|batch| RawBatch::read(batch.bytes()).expect("a batch"));
    raw.flat_map(|batch| batch.records().map(|raw| raw.expect("a frame").hash()).collect::<Vec<_>>()).collect()
}

fn number(evidence: &Evidence) -> Option<(u64, InvoiceNo)> {
    evidence.records.iter().find_map(|evident| match &evident.record.body {
        Body::InvoiceIssued(issued) if (issued.month, issued.currency) == (evidence.month, evidence.currency) => {
            Some((evident.sequence, issued.number))
        }
        _ => None,
    })
}

/// A journal of which proof files are made: a history, then the statements, then a rotation of the key if there was one.
#[derive(Clone, Copy)]
pub(super) struct Making<'a> {
    pub(super) records: &'a [Record],
    /// What is stated, in this order.
    pub(super) evidences: &'a [&'a Evidence],
    /// Who signs the checkpoint, and the key before it.
    pub(super) key: &'a SigningKey,
    pub(super) rotated_from: Option<&'a SigningKey>,
    /// The files prove that the journal continues that of this size.
    pub(super) since: Option<u64>,
}

impl Making<'_> {
    fn journal(&self) -> Option<Vec<Batch>> {
        let mut all = self.records.to_vec();
        let stamp = all.last()?.stamp;
        for evidence in self.evidences {
            let mut record = Record::new(all.len() as u64, stamp, evidence.statement.1);
            record.identity.tenant = Some(evidence.tenant);
            all.push(record);
        }
        if let Some(old) = self.rotated_from {
            let (old_key, new_key) = (old.verifier().public_key(), self.key.verifier().public_key());
            let mut record = Record::new(all.len() as u64, stamp, KeyRotated { old_key, new_key });
            record.signers.extend([old_key, new_key]);
            all.push(record);
        }
        let keys: Vec<&SigningKey> = self.rotated_from.into_iter().chain([self.key]).collect();
        Some(sealed_by(&all, &keys))
    }

    fn note(&self, tree: &Frontier, key: &SigningKey) -> String {
        Checkpoint::new(ORIGIN, tree.size(), tree.root()).expect("an origin").sign(key)
    }

    /// A checkpoint of the first records, by this key.
    pub(super) fn checkpoint(&self, size: u64, key: &SigningKey) -> Option<String> {
        let mut tree = Frontier::new();
        let first = hashes(&self.journal()?).into_iter().take(usize::try_from(size).expect("few"));
        first.for_each(|hash| tree.push(leaf_hash(&hash)));
        Some(self.note(&tree, key))
    }

    fn growth(&self, hashes: &[Hash]) -> Option<Growth> {
        let from = self.since?;
        let mut builder = ConsistencyBuilder::new(from, hashes.len() as u64).expect("it has grown");
        hashes.iter().for_each(|hash| builder.push(leaf_hash(hash)));
        let (proof, root, _) = builder.finish().expect("all leaves");
        Some(Growth { from, root, hashes: proof.hashes })
    }

    /// The file of one of the invoices; `None` if its evidence has none.
    pub(super) fn file(&self, at: usize) -> Option<Vec<u8>> {
        let evidence = self.evidences[at];
        let (issued_at, invoice) = number(evidence)?;
        let stated_at = (self.records.len() + at) as u64;
        let batches = self.journal()?;
        let hashes = hashes(&batches);
        let mut tree = Frontier::new();
        hashes.iter().for_each(|hash| tree.push(leaf_hash(hash)));
        let listed: BTreeMap<u64, &Evident> =
            evidence.records.iter().map(|evident| (evident.sequence, evident)).collect();
        let note = self.note(&tree, self.key);
        let mut writer = ProofWriter::new(invoice, &note, self.growth(&hashes).as_ref());
        for batch in &batches {
            for raw in RawBatch::read(batch.bytes()).expect("a batch").records() {
                let raw = raw.expect("a frame");
                let (sequence, hash) = (writer.size(), raw.hash());
                let record = raw.decode().expect("a record");
                let closes = matches!(&record.body, Body::PeriodClosed(closed) if closed.month == evidence.month);
                let applied = |body: &Body| matches!(body, Body::PrepaidApplied(applied) if applied.invoice == invoice);
                let rotates = matches!(&record.body, Body::KeyRotated(_));
                // What comes after the invoice concerns it only if it is about it.
                let wanted = listed.contains_key(&sequence) && (sequence <= issued_at || applied(&record.body));
                match wanted || closes || rotates || sequence == stated_at {
                    true => writer.record(&raw, &hash),
                    false => writer.pass(leaf_hash(&hash)),
                }
            }
        }
        let lists = Lists {
            common: evidence.common_at_start.to_bytes(),
            tenant: evidence.list_at_start.to_bytes(),
            claimed_nodes: evidence.claimed_nodes.to_bytes(),
        };
        let (bytes, root) = writer.finish(&lists).expect("there are records");
        assert_eq!(root, tree.root(), "the proof leads to the root");
        Some(bytes)
    }
}
