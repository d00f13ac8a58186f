//! The anchor: the newest head and signed checkpoint, in two slots written in turn
//! (journal-format.md, "Anchor and tree files").

use super::layout::ANCHOR;
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::error::OpenError;
use crate::keyring::Keys;
use crate::provider::Head;
use crate::text::{self, Lines};
use leasehold_model::Instant;
use leasehold_model::hex;
use leasehold_model::record::Hash;
use leasehold_tlog::{Checkpoint, KeyId};
use std::io;
use std::sync::Arc;

const SLOT_BYTES: usize = 4096;
const FAMILY: &str = "leasehold-anchor";
const FIRST_LINE: &str = "leasehold-anchor v1";
const VERSION: u32 = 1;

/// What one slot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) counter: u64,
    pub(super) origin: String,
    pub(super) epoch: u64,
    pub(super) head: Head,
    pub(super) root: Hash,
    pub(super) key: KeyId,
    pub(super) time: Instant,
    /// The signed checkpoint.
    pub(super) note: String,
}

impl Anchor {
    fn encode(&self) -> Vec<u8> {
        let text = format!(
            "{FIRST_LINE}\ncounter {}\norigin {}\nepoch {}\nsize {}\nhead {}\nroot {}\nkey {}\ntime {}\ncheckpoint\n{}",
            self.counter,
            self.origin,
            self.epoch,
            self.head.size,
            hex::encode(&self.head.hash),
            hex::encode(&self.root),
            self.key,
            self.time.0,
            self.note,
        );
        let mut slot = text::close(text).into_bytes();
        assert!(slot.len() <= SLOT_BYTES, "an anchor fits its slot");
        slot.resize(SLOT_BYTES, 0);
        slot
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = Lines(text::open(text)?);
        lines.exactly(FIRST_LINE)?;
        let counter = lines.number("counter")?;
        let origin = lines.value("origin")?.to_owned();
        let epoch = lines.number("epoch")?;
        let size = lines.number("size")?;
        let hash = lines.hash("head")?;
        let root = lines.hash("root")?;
        let key = parse_key_id(lines.value("key")?)?;
        let time = Instant(lines.number("time")?);
        lines.exactly("checkpoint")?;
        let note = lines.rest().to_owned();
        Some(Self { counter, origin, epoch, head: Head { size, hash }, root, key, time, note })
    }

    /// Checks that the signed checkpoint is by one of our keys and says what the anchor says.
    pub(super) fn check(&self, keys: &Keys) -> Result<[u8; 32], OpenError> {
        let bad = |why: &str| OpenError::BadAnchor { why: why.into() };
        if self.origin != keys.origin() {
            return Err(OpenError::WrongOrigin { path: ANCHOR.into(), expected: keys.origin().into() });
        }
        let key = keys.by_id(self.key).ok_or(OpenError::MissingKey { key: self.key })?;
        let checkpoint =
            Checkpoint::open(&self.note, &[key.verifier()], &self.origin).map_err(|error| bad(&error.to_string()))?;
        if checkpoint.size() != self.head.size || *checkpoint.root() != self.root {
            return Err(bad("its checkpoint is of another size or root"));
        }
        Ok(key.public_key())
    }
}

fn parse_key_id(text: &str) -> Option<KeyId> {
    let id = u32::from_str_radix(text, 16).ok()?;
    let id = KeyId(id.to_be_bytes());
    (id.to_string() == text).then_some(id)
}

/// What lies in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Unwritten,
    Damaged,
    NewerFormat(u32),
    Good(Anchor),
}

impl Slot {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        if end == 0 {
            return Self::Unwritten;
        }
        let Ok(text) = std::str::from_utf8(&bytes[..end]) else {
            return Self::Damaged;
        };
        if bytes.len() != SLOT_BYTES {
            return Self::Damaged;
        }
        match Anchor::parse(text) {
            Some(anchor) => Self::Good(anchor),
            // A whole text of a later version is not damage; half of one might be anything.
            None => match text::version(text, FAMILY) {
                Some(version) if version > VERSION && text::open(text).is_some() => Self::NewerFormat(version),
                _ => Self::Damaged,
            },
        }
    }
}

/// The open anchor file.
pub(super) struct AnchorFile {
    file: Arc<dyn DiskFile>,
    counter: u64,
    next_slot: u64,
}

/// What the anchor file says when the journal is opened.
pub(super) struct FoundAnchor {
    pub(super) anchor: Anchor,
    pub(super) file: AnchorFile,
    /// The other slot is damaged, as by a crash while it was written.
    pub(super) slot_damaged: bool,
}

impl AnchorFile {
    /// Makes the file, with both slots unwritten.
    pub(super) fn create(disk: &dyn Disk) -> io::Result<Self> {
        let file = disk.open(ANCHOR, Access::Create)?;
        file.write_at(&[0; 2 * SLOT_BYTES], 0)?;
        Ok(Self { file, counter: 0, next_slot: 0 })
    }

    /// Finds the slot that counts, to write the next one later. `Ok(None)` if there is no file.
    pub(super) fn open(disk: &dyn Disk) -> Result<Option<FoundAnchor>, OpenError> {
        Self::find(disk, Access::Update)
    }

    /// Finds the slot that counts. `Ok(None)` if there is no file.
    pub(super) fn find(disk: &dyn Disk, access: Access) -> Result<Option<FoundAnchor>, OpenError> {
        use io::ErrorKind::{NotADirectory, NotFound};
        let file = match disk.open(ANCHOR, access) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
            Err(error) => return Err(OpenError::io("opening the anchor")(error)),
        };
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let read = read_full(file.as_ref(), &mut bytes, 0).map_err(OpenError::io("reading the anchor"))?;
        let (first, second) = bytes[..read].split_at(read.min(SLOT_BYTES));
        let slots = [Slot::read(first), Slot::read(second)];
        if let Some(version) = slots.iter().find_map(|slot| match slot {
            Slot::NewerFormat(version) => Some(*version),
            _ => None,
        }) {
            return Err(OpenError::NewerFormat { path: ANCHOR.into(), version });
        }
        let slot_damaged = slots.contains(&Slot::Damaged);
        let newest = slots
            .into_iter()
            .zip(0..)
            .filter_map(|(slot, at)| match slot {
                Slot::Good(anchor) => Some((anchor, at)),
                _ => None,
            })
            .max_by_key(|(anchor, _)| anchor.counter);
        let Some((anchor, slot)) = newest else {
            let why = if slot_damaged { "they are damaged" } else { "they were never written" };
            return Err(OpenError::BadAnchor { why: why.into() });
        };
        let file = Self { file, counter: anchor.counter, next_slot: 1 - slot };
        Ok(Some(FoundAnchor { anchor, file, slot_damaged }))
    }

    /// Whether there is more in the file than its two slots.
    pub(super) fn is_too_long(&self) -> io::Result<bool> {
        Ok(self.file.len()? > 2 * SLOT_BYTES as u64)
    }

    /// Writes the slot whose turn it is; the other one counts until this one is whole.
    /// If it returns `Ok`, the anchor is durable.
    pub(super) fn write(&mut self, mut anchor: Anchor) -> io::Result<()> {
        self.counter += 1;
        anchor.counter = self.counter;
        self.file.write_at(&anchor.encode(), self.next_slot * SLOT_BYTES as u64)?;
        self.file.sync()?;
        self.next_slot = 1 - self.next_slot;
        Ok(())
    }
}
