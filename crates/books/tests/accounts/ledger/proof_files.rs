//! Proof files of random histories, for a verifier that others wrote. Each is a journal that was sealed and signed, with
//! the invoice of one tenant, as it is or with one thing changed by somebody who holds the key.
//!
//! With LEASEHOLD_PROOFS they are kept in that directory, beside what our own verifier says of them.

use super::brief;
use super::evidence::evidences;
use super::file_changes::{FILE_CHANGES, Parts, other_trust};
use super::proof_journal::{Making, ORIGIN, hashes, sealed};
use super::tamper::{Change, changes};
use super::tampering::{histories, restated_with};
use crate::from_env;
use leasehold_bill::{Evidence, Evident, Mismatch, Place, Verdict, check};
use leasehold_model::codec::Field;
use leasehold_model::{Hash, Record, hex};
use leasehold_tlog::SigningKey;
use leasehold_verify::Trust;
use leasehold_verify::invoice::{Broken, verify_invoice};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What somebody with the key makes of a history: the records, as evidence has them now, and a statement of them.
pub(super) struct Forged {
    records: Vec<Record>,
    evidence: Evidence,
}

/// The records of a history with those of the evidence in their places. What the evidence leaves out stays in the journal.
pub(super) fn forge(history: &[Record], mut evidence: Evidence) -> Forged {
    // A file has no other order.
    evidence.records.sort_by_key(|evident| evident.sequence);
    let mut records = history.to_vec();
    for evident in &evidence.records {
        let place = usize::try_from(evident.sequence).expect("few");
        records[place] = evident.record.clone();
    }
    Forged { records, evidence }
}

/// Evidence with the hashes that its records have in the journal.
pub(super) fn honest(history: &[Record], evidence: Evidence) -> Evidence {
    let hashes = hashes(&sealed(history));
    restated_with(evidence, &|e| with_hashes(e, &hashes)).expect("nothing was changed")
}

fn with_hashes(mut evidence: Evidence, hashes: &[Hash]) -> Evidence {
    for Evident { sequence, hash, .. } in &mut evidence.records {
        *hash = hashes[usize::try_from(*sequence).expect("few")];
    }
    evidence
}

/// The file with the records of the evidence, the statement and the end of the month.
pub(super) fn file(key: &SigningKey, forged: &Forged) -> Option<Vec<u8>> {
    let Forged { records, evidence } = forged;
    Making { records, evidences: &[evidence], key, rotated_from: None, since: None }.file(0)
}

/// Where something does not fit, in a form for programs.
fn place(place: &Place) -> (&'static str, String) {
    match place {
        Place::List(which) => ("list", (*which).to_owned()),
        Place::Records(which) => ("records", (*which).to_owned()),
        Place::Record(sequence) => ("record", sequence.to_string()),
        Place::Line { payer, key } => ("line", format!("{} {}", payer.0, hex::encode(&key.to_bytes()))),
        Place::Entry(entry) => ("entry", entry.to_string()),
        Place::InvoiceLine(key) => ("invoice_line", format!("{} {}", key.project.0, key.month)),
        Place::Project(project) => ("project", project.0.to_string()),
        Place::Tax(rate) => ("tax", rate.to_string()),
        Place::Invoice(figure) => ("invoice", (*figure).to_owned()),
    }
}

/// By how much something is wrong, if it is a number: its place, what was expected, what was found, and the difference.
fn figure(found: &Mismatch) -> Option<String> {
    let (kind, which) = place(&found.place);
    let difference = found.difference.as_ref()?;
    Some(format!("[[{kind:?}, {which:?}], {:?}, {:?}, {difference:?}]", found.expected, found.found))
}

/// Where two files do not fit together.
fn place_between(broken: &Broken) -> (&'static str, String) {
    match broken {
        Broken::OtherTenant { .. } | Broken::NotEarlier { .. } => ("file", "earlier".to_owned()),
        Broken::OtherRecord { sequence, .. } => ("record", sequence.to_string()),
        Broken::OtherBorder { .. } | Broken::OtherList { .. } => ("months", "earlier".to_owned()),
    }
}

/// What our own verifier says, as JSON; and whether it says yes.
pub(super) fn said(bytes: &[u8], trust: &Trust, change: Option<&str>) -> (bool, String) {
    said_with(bytes, &[], trust, change)
}

/// The same with files of earlier months, which have these names.
pub(super) fn said_with(
    bytes: &[u8],
    earlier: &[(String, Vec<u8>)],
    trust: &Trust,
    change: Option<&str>,
) -> (bool, String) {
    let quoted = |text: &str| format!("{text:?}");
    let before: Vec<Vec<u8>> = earlier.iter().map(|(_, bytes)| bytes.clone()).collect();
    let (proved, code, places, figures) = match verify_invoice(bytes, &before, trust) {
        Err((_, why)) => (false, why.code().to_owned(), Vec::new(), Vec::new()),
        Ok(judged) => {
            let files = std::iter::once(&judged.checked).chain(&judged.earlier);
            let wrong: Vec<&Mismatch> = files.flat_map(|checked| &checked.report.mismatches).collect();
            let places = wrong.iter().map(|found| place(&found.place));
            let places = places.chain(judged.broken.iter().map(place_between)).collect();
            let figures = wrong.iter().filter_map(|found| figure(found)).collect();
            let proved = judged.is_proved();
            (proved, if proved { "proved" } else { "wrong" }.to_owned(), places, figures)
        }
    };
    let places: Vec<String> =
        places.iter().map(|(kind, which)| format!("[{}, {}]", quoted(kind), quoted(which))).collect();
    let json = format!(
        "{{\"trust\": {}, \"verdict\": {}, \"code\": {}, \"places\": [{}], \"figures\": [{}], \"change\": {}, \
         \"earlier\": [{}]}}\n",
        quoted(&trust.to_text()),
        quoted(if proved { "yes" } else { "no" }),
        quoted(&code),
        places.join(", "),
        figures.join(", "),
        change.map_or_else(|| "null".to_owned(), quoted),
        earlier.iter().map(|(name, _)| quoted(&format!("{name}.proof"))).collect::<Vec<_>>().join(", "),
    );
    (proved, json)
}

pub(super) struct Folder {
    path: Option<PathBuf>,
    pub(super) files: u64,
}

impl Folder {
    /// The one that LEASEHOLD_PROOFS names, if it is set.
    pub(super) fn open() -> Self {
        let path = std::env::var_os("LEASEHOLD_PROOFS").map(PathBuf::from);
        if let Some(path) = &path {
            std::fs::create_dir_all(path).expect("a directory");
        }
        Self { path, files: 0 }
    }

    pub(super) fn keep(&mut self, name: &str, bytes: &[u8], json: &str) {
        self.files += 1;
        let Some(path) = &self.path else { return };
        std::fs::write(path.join(format!("{name}.proof")), bytes).expect("the file is written");
        std::fs::write(path.join(format!("{name}.json")), json).expect("the file is written");
    }
}

/// Histories are told until there are 1,000 honest files, which LEASEHOLD_PROOF_FILES changes. The other verifier judges
/// each of them as well.
#[test]
fn honest_files_are_proved() {
    let (key, mut folder) = (key(), Folder::open());
    let trust = Trust::new(key.verifier());
    let (least, mut invoices) = (from_env("LEASEHOLD_PROOF_FILES", 1000), 0);
    for seed in 0.. {
        let story = brief(seed).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        for (at, evidence) in evidences(&story.records).into_iter().enumerate() {
            let evidence = honest(&story.records, evidence);
            let bytes = file(&key, &forge(&story.records, evidence)).expect("an invoice");
            let (proved, json) = said(&bytes, &trust, None);
            assert!(proved, "seed {seed}: {json}");
            folder.keep(&format!("honest-{seed:04}-{at}"), &bytes, &json);
            invoices += 1;
        }
        assert!(seed < 100 || invoices >= seed / 4, "histories without invoices: {invoices} after {seed}");
        if invoices >= least {
            break;
        }
    }
    assert!(invoices >= least, "{invoices} honest files");
}

pub(super) fn key() -> SigningKey {
    SigningKey::from_seed(ORIGIN, &[9; 32]).expect("a key")
}

/// What a file can say: the hashes in it follow from its bytes, and the order from the sequences.
fn sayable(change: &&Change) -> bool {
    !["a record has another hash", "two records are swapped", "the invoice is missing"].contains(&change.what)
}

/// How often each kind of manipulation is made.
const EACH: u32 = 3;

/// Every manipulation that changes the bill is refused wherever it is made, and each kind is made. The other verifier has
/// to refuse each of the files as well, and to name the same places.
#[test]
fn manipulated_files_are_refused() {
    let (key, mut folder) = (key(), Folder::open());
    let trust = Trust::new(key.verifier());
    let mut made: BTreeMap<&str, u32> = BTreeMap::new();
    for (seed, story) in histories(400) {
        if seed >= 60 && changes().filter(sayable).all(|change| made.get(change.what).is_some_and(|count| *count > 0)) {
            break;
        }
        for (at, evidence) in evidences(&story.records).into_iter().enumerate() {
            // Where a line is not proved, not everything can be noticed.
            if check(&evidence).lines.iter().any(|line| line.verdict == Verdict::NotProved) {
                continue;
            }
            let honest = honest(&story.records, evidence);
            if at == 0 && seed < u64::from(EACH) {
                let forged = forge(&story.records, honest.clone());
                change_file(seed, &key, &forged, &mut made, &mut folder);
            }
            for change in changes() {
                let count = made.entry(change.what).or_default();
                if *count < EACH
                    && let Some((bytes, proved, json)) = changed(&story.records, &honest, change, &key, &trust)
                {
                    *count += 1;
                    assert!(!proved, "seed {seed}, {}: {json}", change.what);
                    folder.keep(&format!("changed-{seed:04}-{at}-{}", change.what.replace(' ', "_")), &bytes, &json);
                }
            }
        }
    }
    println!("{} files, {made:#?}", folder.files);
    for what in changes().filter(sayable).map(|change| change.what) {
        assert!(made.get(what).is_some_and(|count| *count > 0), "{what}: never made as a file");
    }
    let kinds = made.values().filter(|count| **count > 0).count();
    assert!(kinds >= 60, "only {kinds} kinds of manipulations");
}

/// Changes of the file itself, and of what its reader trusts.
fn change_file(
    seed: u64,
    key: &SigningKey,
    forged: &Forged,
    made: &mut BTreeMap<&'static str, u32>,
    folder: &mut Folder,
) {
    let honest = file(key, forged).expect("an invoice");
    let (parts, trust) = (Parts::of(&honest), Trust::new(key.verifier()));
    let changed = FILE_CHANGES.iter().map(|change| (change.what, (change.make)(&honest, &parts), trust.clone()));
    let distrusted = other_trust().into_iter().map(|(what, trust)| (what, honest.clone(), trust));
    let evidences = [&forged.evidence];
    let making = Making { records: &forged.records, evidences: &evidences, key, rotated_from: None, since: None };
    let size = forged.records.len() as u64 + 1;
    // Checkpoints that the operator has signed: of the journal one record before, and of a third of it.
    let old = [("its checkpoint is one record old", size - 1), ("its checkpoint is an old one", size / 3)];
    let old = old.map(|(what, size)| {
        let note = making.checkpoint(size, key).expect("a checkpoint");
        (what, parts.with_checkpoint(&honest, &note), trust.clone())
    });
    for (what, bytes, trust) in changed.chain(distrusted).chain(old) {
        let (proved, json) = said(&bytes, &trust, Some(what));
        assert!(!proved, "seed {seed}, {what}: {json}");
        *made.entry(what).or_default() += 1;
        folder.keep(&format!("file-{seed:04}-{}", what.replace([' ', '\''], "_")), &bytes, &json);
    }
}

/// The file after a change, if there is something to change that matters.
fn changed(
    history: &[Record],
    honest: &Evidence,
    change: &Change,
    key: &SigningKey,
    trust: &Trust,
) -> Option<(Vec<u8>, bool, String)> {
    let mut evidence = honest.clone();
    if !(change.make)(&mut evidence) || !(change.matters)(honest, &evidence) {
        return None;
    }
    let Forged { records, evidence } = forge(history, evidence);
    let hashes = hashes(&sealed(&records));
    // In a file the hash of a record follows from its bytes, and the order from the sequences.
    if with_hashes(evidence.clone(), &hashes) == *honest {
        return None;
    }
    let evidence = match change.restated {
        true => restated_with(evidence, &|e| with_hashes(e, &hashes))?,
        false => evidence,
    };
    let bytes = file(key, &Forged { records, evidence })?;
    let (proved, json) = said(&bytes, trust, Some(change.what));
    Some((bytes, proved, json))
}
