//! Whether an invoice follows from the journal, from one file and the payer's own trust file
//! (docs/reference/invoice-proof.md).
//!
//! First the file: its checkpoint is signed by a trusted key, and its records lead to the root in it. Then the invoice:
//! the crate `bill` computes it again. Earlier files of the same payer are checked the same way, and must be about the
//! same journal and fit together.

mod chain;
mod cli;
mod names;
mod text;
mod words;

pub use chain::Broken;
pub use cli::{InvoiceArgs, run};

use crate::cosigned::{Cosigned, cosigned};
use crate::failure::Why;
use crate::trust::Trust;
use leasehold_bill::proof_file::{BadProofFile, Growth, Opened, ProofFile, Rotated};
use leasehold_bill::{Evidence, Report, check, check_together};
use leasehold_model::{Hash, InvoiceNo};
use leasehold_tlog::{Checkpoint, CheckpointError, Note, NoteError, VerifierKey};
use std::fmt;

/// Why a file proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoProof {
    /// The file is not a proof, or does not lead to one root.
    File(BadProofFile),
    /// Its checkpoint is not signed by a key of the trust file, or is of another journal.
    Checkpoint(CheckpointError),
    /// The trust file names no key.
    NoKey,
    Cosignature(String),
    /// Its records do not lead to the root in its checkpoint.
    OtherRoot,
    /// The journal that it signs for has another root at the size of the pinned checkpoint.
    Fork {
        size: u64,
    },
    /// The pinned checkpoint is not signed by a key of the trust file.
    Pinned(CheckpointError),
}

impl NoProof {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(BadProofFile::NewerFormat) => "newer_format",
            Self::File(BadProofFile::NotAProof) => "not_a_proof",
            Self::File(_) => "bad_file",
            Self::Checkpoint(CheckpointError::WrongOrigin { .. }) => "wrong_origin",
            Self::Checkpoint(CheckpointError::Note(NoteError::NoKnownSignature)) | Self::NoKey => "unknown_key",
            Self::Checkpoint(_) => "bad_checkpoint",
            Self::Cosignature(_) => "cosignatures",
            Self::OtherRoot => "root_mismatch",
            Self::Fork { .. } => "fork",
            Self::Pinned(_) => "bad_pinned_checkpoint",
        }
    }
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => why.fmt(f),
            Self::Checkpoint(CheckpointError::Note(NoteError::NoKnownSignature)) => {
                f.write_str("its checkpoint is not signed by a key of the trust file")
            }
            Self::NoKey => f.write_str(
                "the trust file names no key of the operator: the line `key NAME+ID+BASE64` is missing, without which no \
                 signature counts",
            ),
            Self::Checkpoint(why) => write!(f, "its checkpoint is not accepted: {why}"),
            Self::Cosignature(why) => f.write_str(why),
            Self::OtherRoot => {
                f.write_str("its records do not lead to the root that was signed: something was changed")
            }
            Self::Fork { size } => write!(
                f,
                "its journal has another root at {size} records than the checkpoint pinned in the trust file: the log \
                 signed two histories"
            ),
            Self::Pinned(why) => write!(f, "the checkpoint pinned in the trust file is not accepted: {why}"),
        }
    }
}

impl std::error::Error for NoProof {}

/// How the checkpoint of a file relates to the one that is pinned in the trust file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// Nothing is pinned.
    None,
    /// They are the same.
    Same,
    /// The file proves that its journal continues the pinned one.
    Continues { pinned: u64 },
    /// They have other sizes, and the file does not prove that one continues the other.
    Undecided { pinned: u64 },
}

/// The key that signed the checkpoint of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedBy {
    /// A key of the trust file.
    Trusted,
    /// The key to which a key of the trust file was rotated, by this record.
    RotatedTo { sequence: u64 },
}

/// What was found about the invoice of one file.
#[derive(Clone, Debug)]
pub struct Checked {
    pub number: InvoiceNo,
    /// The size and the root of its signed checkpoint.
    pub size: u64,
    pub root: Hash,
    pub records: usize,
    pub pinning: Pinning,
    pub signed_by: SignedBy,
    pub cosigned: Cosigned,
    pub evidence: Evidence,
    /// The sequences and hashes of its other records.
    pub aside: Vec<(u64, Hash)>,
    pub report: Report,
}

/// What was found about an invoice, and about the earlier ones that were given with it.
#[derive(Clone, Debug)]
pub struct Judged {
    pub checked: Checked,
    /// In the order of their months.
    pub earlier: Vec<Checked>,
    /// Where two files do not fit together.
    pub broken: Vec<Broken>,
}

impl Judged {
    /// Whether every file is proved and all fit together.
    pub fn is_proved(&self) -> bool {
        let all = std::iter::once(&self.checked).chain(&self.earlier);
        self.broken.is_empty() && all.map(|checked| &checked.report).all(Report::is_proved)
    }
}

/// Checks the file of an invoice with the files of earlier ones.
///
/// # Errors
/// When a file proves nothing: which one, counted from 0 with the earlier ones after it, and why.
pub fn verify_invoice(file: &[u8], earlier: &[Vec<u8>], trust: &Trust) -> Result<Judged, (usize, NoProof)> {
    let checked = check_file(file, trust).map_err(|why| (0, why))?;
    let mut before = Vec::new();
    for (at, file) in earlier.iter().enumerate() {
        before.push(check_file(file, trust).map_err(|why| (at + 1, why))?);
    }
    before.sort_by_key(|checked: &Checked| (checked.evidence.month, checked.number));
    let broken = chain::broken(&before, &checked);
    let mut judged = Judged { checked, earlier: before, broken };
    if judged.is_proved() {
        judge_together(&mut judged);
    }
    Ok(judged)
}

/// Checks the months that follow each other up to that of the invoice together.
fn judge_together(judged: &mut Judged) {
    let mut chain = vec![&judged.checked.evidence];
    for earlier in judged.earlier.iter().rev().map(|earlier| &earlier.evidence) {
        if chain.last().is_some_and(|later| earlier.month.next() == later.month) {
            chain.push(earlier);
        }
    }
    chain.reverse();
    if let [first, _, ..] = chain[..] {
        let (first, found) = (first.month, check_together(&chain));
        let Checked { report, evidence, .. } = &mut judged.checked;
        report.decide_from(first, evidence, found);
    }
}

fn check_file(bytes: &[u8], trust: &Trust) -> Result<Checked, NoProof> {
    let file = ProofFile::read(bytes).map_err(NoProof::File)?;
    let note = Note::parse(file.checkpoint).map_err(|why| NoProof::Checkpoint(why.into()))?;
    let claimed = Checkpoint::from_body(note.text()).map_err(NoProof::Checkpoint)?;
    // Another journal has another key, too; that it is another one says more.
    if claimed.origin() != trust.origin() {
        let (expected, found) = (trust.origin().to_owned(), claimed.origin().to_owned());
        return Err(NoProof::Checkpoint(CheckpointError::WrongOrigin { expected, found }));
    }
    let trusted = Checkpoint::open_note(&note, trust.keys(), trust.origin());
    let unknown = CheckpointError::Note(NoteError::NoKnownSignature);
    let (checkpoint, opened, signed_by) = match trusted {
        Ok(checkpoint) => {
            let opened = file.open(checkpoint.size()).map_err(NoProof::File)?;
            (checkpoint, opened, SignedBy::Trusted)
        }
        // Keys are followed from one to the next by the rotations in the file, which both keys of each have signed.
        Err(why) if why == unknown => {
            let opened = file.open(claimed.size()).map_err(NoProof::File)?;
            let (checkpoint, sequence) = open_rotated(&note, &opened.rotations, trust)?;
            (checkpoint, opened, SignedBy::RotatedTo { sequence })
        }
        Err(why) => return Err(NoProof::Checkpoint(why)),
    };
    let cosigned = cosigned(&note, trust).map_err(|why: Why| NoProof::Cosignature(why.to_string()))?;
    let Opened { evidence, root, rotations, aside } = opened;
    if root != *checkpoint.root() {
        return Err(NoProof::OtherRoot);
    }
    file.check_growth(checkpoint.size(), &root).map_err(NoProof::File)?;
    let pinning = compare_pinned(&checkpoint, file.growth.as_ref(), &rotations, trust)?;
    Ok(Checked {
        number: file.invoice,
        size: checkpoint.size(),
        root,
        records: file.records.len(),
        pinning,
        signed_by,
        cosigned,
        report: check(&evidence),
        evidence,
        aside,
    })
}

/// The keys to which those of the trust file were rotated, each with the record that did it.
fn rotated_keys(rotations: &[Rotated], trust: &Trust) -> Vec<(VerifierKey, u64)> {
    let mut known: Vec<[u8; 32]> = trust.keys().iter().map(VerifierKey::public_key).collect();
    let mut rotated = Vec::new();
    for Rotated { sequence, old_key, new_key } in rotations {
        if known.contains(old_key)
            && !known.contains(new_key)
            && let Ok(key) = VerifierKey::new(trust.origin(), new_key)
        {
            known.push(*new_key);
            rotated.push((key, *sequence));
        }
    }
    rotated
}

/// Opens a checkpoint with the keys to which those of the trust file were rotated, the newest first.
fn open_rotated(note: &Note, rotations: &[Rotated], trust: &Trust) -> Result<(Checkpoint, u64), NoProof> {
    let mut why = CheckpointError::Note(NoteError::NoKnownSignature);
    for (key, sequence) in rotated_keys(rotations, trust).into_iter().rev() {
        match Checkpoint::open_note(note, &[key], trust.origin()) {
            Ok(checkpoint) => return Ok((checkpoint, sequence)),
            Err(CheckpointError::Note(NoteError::NoKnownSignature)) => {}
            Err(other) => why = other,
        }
    }
    Err(NoProof::Checkpoint(why))
}

fn compare_pinned(
    checkpoint: &Checkpoint,
    growth: Option<&Growth>,
    rotations: &[Rotated],
    trust: &Trust,
) -> Result<Pinning, NoProof> {
    let Some(pinned) = trust.pinned() else { return Ok(Pinning::None) };
    let mut keys = trust.keys().to_vec();
    keys.extend(rotated_keys(rotations, trust).into_iter().map(|(key, _)| key));
    Checkpoint::open_note(&pinned.note, &keys, trust.origin()).map_err(NoProof::Pinned)?;
    let (size, root) = (pinned.checkpoint.size(), pinned.checkpoint.root());
    let known = match growth {
        _ if size == checkpoint.size() => Some((checkpoint.root(), Pinning::Same)),
        Some(growth) if growth.from == size => Some((&growth.root, Pinning::Continues { pinned: size })),
        // Every journal continues the empty one.
        _ if size == 0 => Some((root, Pinning::Continues { pinned: 0 })),
        _ => None,
    };
    match known {
        Some((found, pinning)) if found == root => Ok(pinning),
        Some(_) => Err(NoProof::Fork { size }),
        None => Ok(Pinning::Undecided { pinned: size }),
    }
}
