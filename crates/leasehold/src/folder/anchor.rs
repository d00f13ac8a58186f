//! The anchor file: the newest head and signed checkpoint (journal-format.md, "Anchor and tree files").

use super::cannot_read;
use crate::numbers::{hex, parse_hash};
use crate::problem::Problem;
use leasehold_model::{Hash, Instant};
use leasehold_tlog::{Checkpoint, Note};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const SLOT_BYTES: usize = 4096;

/// The slot that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) counter: u64,
    pub(crate) origin: String,
    pub(crate) epoch: u64,
    pub(crate) size: u64,
    /// The hash of the last record it covers.
    pub(crate) head: Hash,
    /// Eight hex digits: the id of the key that signed.
    pub(crate) key: String,
    pub(crate) time: Instant,
    /// As it is signed.
    pub(crate) note: Note,
    pub(crate) checkpoint: Checkpoint,
}

impl Anchor {
    pub(super) fn read(data: &Path) -> Result<Self, Problem> {
        let path = data.join("anchor");
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(2 * SLOT_BYTES as u64 + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            return Err(match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_anchor(data),
                _ => cannot_read(&path, &error),
            });
        }
        let (first, second) = bytes.split_at(bytes.len().min(SLOT_BYTES));
        let slots = [Slot::read(first), Slot::read(second)];
        if let Some(version) = slots.iter().find_map(Slot::newer) {
            return Err(newer_format(&path, version));
        }
        let newest = slots.into_iter().filter_map(Slot::good).max_by_key(|anchor| anchor.counter);
        newest.filter(|_| bytes.len() <= 2 * SLOT_BYTES).ok_or_else(|| {
            Problem::not_verified("journal_anchor_damaged", "neither slot of the anchor can be used")
                .at(&path)
                .advice("bring the file back from a copy of this folder")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line));
        let mut value = |word: &str| lines.next()?.strip_prefix(word)?.strip_prefix(' ');
        if value("leasehold-anchor")? != "v1" {
            return None;
        }
        let counter = number(value("counter")?)?;
        let origin = value("origin")?.to_owned();
        let epoch = number(value("epoch")?)?;
        let size = number(value("size")?)?;
        let head = parse_hash(value("head")?)?;
        let root = parse_hash(value("root")?)?;
        let key = value("key")?.to_owned();
        let time = Instant(number(value("time")?)?);
        let (_, note) = text.split_once("\ncheckpoint\n")?;
        let note = Note::parse(note).ok()?;
        let checkpoint = Checkpoint::from_body(note.text()).ok()?;
        (checkpoint.origin() == origin && checkpoint.size() == size && *checkpoint.root() == root).then_some(Self {
            counter,
            origin,
            epoch,
            size,
            head,
            key,
            time,
            note,
            checkpoint,
        })
    }
}

fn number(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    (canonical && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

enum Slot {
    Unusable,
    Newer(u32),
    Good(Box<Anchor>),
}

impl Slot {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        let Some(body) = std::str::from_utf8(&bytes[..end]).ok().and_then(before_end) else {
            return Self::Unusable;
        };
        let version = body.split_once('\n').and_then(|(line, _)| line.strip_prefix("leasehold-anchor v")?.parse().ok());
        match (Anchor::parse(body), version) {
            (Some(anchor), _) => Self::Good(Box::new(anchor)),
            (None, Some(version)) if version > 1 => Self::Newer(version),
            (None, _) => Self::Unusable,
        }
    }
    fn newer(&self) -> Option<u32> {
        match self {
            Self::Newer(version) => Some(*version),
            _ => None,
        }
    }
    fn good(self) -> Option<Anchor> {
        match self {
            Self::Good(anchor) => Some(*anchor),
            _ => None,
        }
    }
}

/// What stands before the `end` line, if that line fits it.
fn before_end(text: &str) -> Option<&str> {
    let end_at = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let (body, end) = text.split_at(end_at);
    (end.strip_prefix("end ")?.trim_end() == hex(&Sha256::digest(body.as_bytes()))).then_some(body)
}

/// No folder, a folder of something else, or a journal that lost its anchor.
fn no_anchor(data: &Path) -> Problem {
    if !data.is_dir() {
        return Problem::refused("journal_not_found", "there is no such folder").at(data).advice("check the path");
    }
    let segment = std::fs::read_dir(data.join("journal"))
        .is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().ends_with(".seg"))));
    if segment {
        return Problem::not_verified("journal_anchor_missing", "there are records but no anchor")
            .at(data)
            .advice("bring the file `anchor` back from where the segments came from");
    }
    Problem::refused("journal_not_found", "there is no journal here")
        .at(data)
        .advice("name the data folder, the one that holds `journal` and `anchor`")
}

pub(super) fn newer_format(path: &Path, version: u32) -> Problem {
    Problem::refused("journal_newer_format", format!("it is of format version {version}, newer than this program"))
        .at(path)
        .advice("use the program that wrote it")
}
