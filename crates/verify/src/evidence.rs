//! Evidence that a log signed two histories, as a file that convinces anyone who trusts its key (journal-format.md,
//! "Evidence of a fork").
//!
//! Two checkpoints of one size with different roots are evidence by themselves. If one is smaller, the file also says which
//! root the larger tree has at the smaller size, with the consistency proof that leads from that root to the root of the
//! larger checkpoint. No other root can be proved there, so that a different root in the smaller checkpoint contradicts it.

mod check;
mod cli;

pub use check::{Conflict, NoEvidence, SignedRoot};
pub use cli::{EvidenceArgs, run};

use crate::text::{Lines, before_end, version};
use leasehold_model::{Hash, hex};
use leasehold_tlog::limits::PROOF_HASHES_MAX;
use leasehold_tlog::{Checkpoint, Note};
use sha2::{Digest, Sha256};

const FAMILY: &str = "leasehold-evidence";
const FIRST_LINE: &str = "leasehold-evidence v1";
/// Bytes of a whole file.
pub const EVIDENCE_BYTES_MAX: usize = 128 << 10;
/// Bytes of each of the two notes.
const NOTE_BYTES_MAX: usize = 16 << 10;
/// Key rotations, and the bytes of one. A rotation record has about 200.
const ROTATIONS_MAX: usize = 32;
const ROTATION_BYTES_MAX: usize = 1024;
const ROTATION_SIGNATURE_BYTES: usize = 2 * 64;

/// Two signed checkpoints of one log that contradict each other, and what shows that they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub origin: String,
    /// The key rotations that lead from a trusted key to those that signed, in order.
    pub rotations: Vec<RotationRecord>,
    pub smaller: Note,
    pub larger: Note,
    /// Needed where the sizes differ.
    pub growth: Option<Growth>,
}

/// A `journal.key_rotated` record, with the signatures of both keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationRecord {
    /// The hashed bytes.
    pub bytes: Vec<u8>,
    pub signatures: Vec<u8>,
}

/// What the larger tree contains at the smaller size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The root of the first records of the larger tree, as many as the smaller checkpoint has.
    pub root: Hash,
    /// The consistency proof from there to the larger root (RFC 6962, section 2.1.2).
    pub hashes: Vec<Hash>,
}

impl Evidence {
    /// Reads a file. Nothing in it is verified yet.
    ///
    /// # Errors
    /// When the text is not exactly what [`Evidence::to_text`] writes.
    pub fn parse(text: &str) -> Result<Self, NoEvidence> {
        if text.len() > EVIDENCE_BYTES_MAX {
            return Err(NoEvidence::Malformed("it is too long"));
        }
        match version(text, FAMILY) {
            Some(1) => {}
            Some(version) if version > 1 => return Err(NoEvidence::NewerFormat(version)),
            _ => return Err(NoEvidence::Malformed("it does not begin with `leasehold-evidence v1`")),
        }
        let body =
            before_end(text).ok_or(NoEvidence::Malformed("its `end` line does not fit: it was cut or changed"))?;
        let evidence = Self::parse_lines(&mut Lines(body))?;
        // One content has one text.
        match evidence.to_text() == text {
            true => Ok(evidence),
            false => Err(NoEvidence::Malformed("its lines are not in the one form that they can have")),
        }
    }

    fn parse_lines(lines: &mut Lines<'_>) -> Result<Self, NoEvidence> {
        let bad = NoEvidence::Malformed;
        lines.exactly(FIRST_LINE).ok_or(bad("its first line is wrong"))?;
        let origin = lines.value("origin").ok_or(bad("the line `origin` is missing"))?.to_owned();
        let mut rotations = Vec::new();
        while lines.0.starts_with("rotation ") {
            if rotations.len() == ROTATIONS_MAX {
                return Err(bad("it has too many `rotation` lines"));
            }
            let rotation = lines.value("rotation").and_then(RotationRecord::parse);
            rotations.push(rotation.ok_or(bad("a `rotation` line is wrong"))?);
        }
        let growth = match lines.0.starts_with("root ") {
            false => None,
            true => {
                let root = lines.hash("root").ok_or(bad("the line `root` is wrong"))?;
                let mut hashes = Vec::new();
                while lines.0.starts_with("hash ") {
                    if hashes.len() == PROOF_HASHES_MAX {
                        return Err(bad("it has too many `hash` lines"));
                    }
                    hashes.push(lines.hash("hash").ok_or(bad("a `hash` line is wrong"))?);
                }
                Some(Growth { root, hashes })
            }
        };
        lines.exactly("smaller").ok_or(bad("the line `smaller` is missing"))?;
        let (smaller, larger) = split_notes(lines.0).ok_or(bad("the line `larger` is missing"))?;
        Ok(Self { origin, rotations, smaller: note(smaller)?, larger: note(larger)?, growth })
    }

    /// The file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\norigin {}\n", self.origin);
        for rotation in &self.rotations {
            let (bytes, signatures) = (hex::encode(&rotation.bytes), hex::encode(&rotation.signatures));
            text.push_str(&format!("rotation {bytes} {signatures}\n"));
        }
        if let Some(growth) = &self.growth {
            text.push_str(&format!("root {}\n", hex::encode(&growth.root)));
            growth.hashes.iter().for_each(|hash| text.push_str(&format!("hash {}\n", hex::encode(hash))));
        }
        text.push_str(&format!("smaller\n{}larger\n{}", self.smaller, self.larger));
        let end = hex::encode(&Sha256::digest(&text));
        text + &format!("end {end}\n")
    }
}

impl RotationRecord {
    fn parse(text: &str) -> Option<Self> {
        let (bytes, signatures) = text.split_once(' ')?;
        let (bytes, signatures) = (hex::decode(bytes)?, hex::decode(signatures)?);
        let fits = bytes.len() <= ROTATION_BYTES_MAX && signatures.len() == ROTATION_SIGNATURE_BYTES;
        fits.then_some(Self { bytes, signatures })
    }
}

/// A checkpoint without extension lines has no line `larger` after its first one, the origin.
fn split_notes(text: &str) -> Option<(&str, &str)> {
    const BORDER: &str = "\nlarger\n";
    let at = text.find(BORDER)?;
    Some((&text[..=at], &text[at + BORDER.len()..]))
}

fn note(text: &str) -> Result<Note, NoEvidence> {
    if text.len() > NOTE_BYTES_MAX {
        return Err(NoEvidence::Malformed("a note is too long"));
    }
    let note = Note::parse(text).map_err(|_| NoEvidence::Malformed("a note cannot be read"))?;
    match Checkpoint::from_body(note.text()) {
        Ok(checkpoint) if checkpoint.extensions().is_empty() => Ok(note),
        _ => Err(NoEvidence::Malformed("a note is not a checkpoint of origin, size and root")),
    }
}
