//! The two signed texts beside the segments: the anchor, and the tree file of a segment
//! (journal-format.md, "Anchor and tree files").
//!
//! Reading only checks that a text is complete. It is trusted once the records lead to its root and its checkpoint is
//! signed by the key in force.

use crate::text::{Lines, before_end, version};
use leasehold_model::{Hash, hex};
use leasehold_tlog::{Checkpoint, Frontier, Note};

const FAMILY: &str = "leasehold-anchor";
/// The newest version; collectors write version 1.
const ANCHOR_VERSION: u32 = 2;
const SLOT_BYTES: usize = 4096;
/// The size of an anchor file; one byte more is read to detect a longer file.
pub(crate) const ANCHOR_BYTES: usize = 2 * SLOT_BYTES;
/// Far more than 62 parts and a note with sixteen signatures need.
pub(crate) const TREE_BYTES_MAX: usize = 64 * 1024;

/// A signed checkpoint, its text and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedCheckpoint {
    pub(crate) note: Note,
    pub(crate) checkpoint: Checkpoint,
}

impl SignedCheckpoint {
    fn parse(note: &str) -> Option<Self> {
        let note = Note::parse(note).ok()?;
        let checkpoint = Checkpoint::from_body(note.text()).ok()?;
        checkpoint.extensions().is_empty().then_some(Self { note, checkpoint })
    }
}

/// The newer valid slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) counter: u64,
    pub(crate) origin: String,
    pub(crate) size: u64,
    pub(crate) head: Hash,
    pub(crate) root: Hash,
    /// Eight hex digits.
    pub(crate) key: String,
    pub(crate) signed: SignedCheckpoint,
}

impl Anchor {
    fn parse(text: &str) -> Option<Self> {
        let body = before_end(text)?;
        // The MAC is for the daemon that wrote it; without its secret only the form can be checked.
        let (version, body) = match version(text, FAMILY)? {
            1 => (1, body),
            ANCHOR_VERSION => (ANCHOR_VERSION, before_mac(body)?),
            _ => return None,
        };
        let mut lines = Lines(body.split_once('\n')?.1);
        let counter = lines.number("counter")?;
        let origin = lines.value("origin")?.to_owned();
        lines.number("epoch")?;
        if version > 1 && !matches!(lines.value("state")?, "open" | "closed") {
            return None;
        }
        let size = lines.number("size")?;
        let head = lines.hash("head")?;
        let root = lines.hash("root")?;
        let key = lines.value("key")?.to_owned();
        lines.number("time")?;
        lines.exactly("checkpoint")?;
        Some(Self { counter, origin, size, head, root, key, signed: SignedCheckpoint::parse(lines.0)? })
    }
}

/// What is before the `mac` line, which must be the last one.
fn before_mac(text: &str) -> Option<&str> {
    let at = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let mac = text[at..].strip_suffix('\n')?.strip_prefix("mac ")?;
    hex::decode_hash(mac).map(|_| &text[..at])
}

/// The content of an anchor file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnchorFile {
    Good {
        anchor: Box<Anchor>,
        /// The other slot is damaged, by a crash while it was written or by somebody.
        slot_damaged: bool,
    },
    NewerFormat(u32),
    Bad(&'static str),
}

enum Slot {
    Unwritten,
    Damaged,
    NewerFormat(u32),
    Good(Box<Anchor>),
}

impl Slot {
    fn read(bytes: &[u8]) -> Self {
        let written = without_padding(bytes);
        if written.is_empty() {
            return Self::Unwritten;
        }
        let Ok(text) = std::str::from_utf8(written) else {
            return Self::Damaged;
        };
        match (Anchor::parse(text), version(text, FAMILY)) {
            (Some(anchor), _) => Self::Good(Box::new(anchor)),
            // A complete text of a later version is not damage.
            (None, Some(version)) if version > ANCHOR_VERSION && before_end(text).is_some() => {
                Self::NewerFormat(version)
            }
            (None, _) => Self::Damaged,
        }
    }
}

fn without_padding(slot: &[u8]) -> &[u8] {
    &slot[..slot.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)]
}

pub(crate) fn read_anchor(bytes: &[u8]) -> AnchorFile {
    if bytes.len() > ANCHOR_BYTES {
        return AnchorFile::Bad("it is longer than its two slots");
    }
    let (first, second) = bytes.split_at(bytes.len().min(SLOT_BYTES));
    match (Slot::read(first), Slot::read(second)) {
        (Slot::NewerFormat(version), _) | (_, Slot::NewerFormat(version)) => AnchorFile::NewerFormat(version),
        (Slot::Good(a), Slot::Good(b))
            if a.counter == b.counter && without_padding(first) != without_padding(second) =>
        {
            AnchorFile::Bad("its two slots have the same counter but differ")
        }
        (Slot::Good(a), Slot::Good(b)) => {
            AnchorFile::Good { anchor: if a.counter > b.counter { a } else { b }, slot_damaged: false }
        }
        (Slot::Good(anchor), other) | (other, Slot::Good(anchor)) => {
            AnchorFile::Good { anchor, slot_damaged: matches!(other, Slot::Damaged) }
        }
        (Slot::Unwritten, Slot::Unwritten) => AnchorFile::Bad("both of its slots are empty"),
        _ => AnchorFile::Bad("neither of its slots is valid"),
    }
}

/// Head of the chain and frontier of the tree at the beginning of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) head: Hash,
    pub(crate) tree: Frontier,
    pub(crate) signed: SignedCheckpoint,
}

pub(crate) enum ReadTree {
    Good(Box<TreeFile>),
    NewerFormat(u32),
    Bad(&'static str),
}

pub(crate) fn read_tree(bytes: &[u8]) -> ReadTree {
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| before_end(text).is_some()) else {
        return ReadTree::Bad("its `end` line does not match the text before it");
    };
    if let Some(version) = version(text, "leasehold-tree").filter(|version| *version > 1) {
        return ReadTree::NewerFormat(version);
    }
    let Some(file) = TreeFile::parse(text) else {
        return ReadTree::Bad("its lines are not those of a tree file");
    };
    let checkpoint = &file.signed.checkpoint;
    if checkpoint.size() != file.tree.size() || *checkpoint.root() != file.tree.root() {
        return ReadTree::Bad("its parts do not lead to the root of its checkpoint");
    }
    ReadTree::Good(Box::new(file))
}

impl TreeFile {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = Lines(before_end(text)?);
        lines.exactly("leasehold-tree v1")?;
        let size = lines.number("size")?;
        let head = lines.hash("head")?;
        let parts = (0..size.count_ones()).map(|_| lines.hash("part")).collect::<Option<Vec<_>>>()?;
        lines.exactly("checkpoint")?;
        Some(Self { head, tree: Frontier::from_parts(size, parts).ok()?, signed: SignedCheckpoint::parse(lines.0)? })
    }
}
