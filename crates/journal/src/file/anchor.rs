//! The anchor: the newest head and signed checkpoint, in two slots written in turn
//! (journal-format.md, "Anchor and tree files").

use super::layout::ANCHOR;
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::error::OpenError;
use crate::keyring::Keys;
use crate::provider::Head;
use crate::secret::MacKey;
use crate::text::{self, Lines};
use leasehold_model::Instant;
use leasehold_model::hex;
use leasehold_model::record::Hash;
use leasehold_tlog::{Checkpoint, KeyId};
use std::io;
use std::sync::Arc;

const SLOT_BYTES: usize = 4096;
const FAMILY: &str = "leasehold-anchor";
const VERSION: u32 = 2;

/// What one slot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) counter: u64,
    pub(super) origin: String,
    pub(super) epoch: u64,
    /// The journal was closed after this checkpoint: no record follows it.
    pub(super) closed: bool,
    pub(super) head: Head,
    pub(super) root: Hash,
    pub(super) key: KeyId,
    pub(super) time: Instant,
    /// The signed checkpoint.
    pub(super) note: String,
}

/// Whether this daemon wrote an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Authenticity {
    /// Its MAC is not by the secret at hand, or the reader has no secret.
    Unknown,
    /// It is of version 1, which has no MAC.
    Version1,
    /// Its MAC is right.
    Own,
}

impl Anchor {
    /// With a MAC in version 2; without a key in version 1, as in a collector's copy.
    fn encode(&self, key: Option<&MacKey>) -> Vec<u8> {
        let version = if key.is_some() { VERSION } else { 1 };
        let state = match (version, self.closed) {
            (1, _) => "",
            (_, false) => "state open\n",
            (_, true) => "state closed\n",
        };
        let mut text = format!(
            "{FAMILY} v{version}\ncounter {}\norigin {}\nepoch {}\n{state}size {}\nhead {}\nroot {}\nkey {}\ntime {}\ncheckpoint\n{}",
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
        if let Some(key) = key {
            text = format!("{text}{MAC_WORD}{}\n", hex::encode(&key.mac(&[text.as_bytes()])));
        }
        let mut slot = text::close(text).into_bytes();
        assert!(slot.len() <= SLOT_BYTES, "an anchor fits its slot");
        slot.resize(SLOT_BYTES, 0);
        slot
    }

    fn parse(text: &str, key: Option<&MacKey>) -> Option<(Self, Authenticity)> {
        let version = text::version(text, FAMILY)?;
        let (body, authenticity) = match version {
            1 => (text::open(text)?, Authenticity::Version1),
            VERSION => {
                let (body, mac) = split_mac(text::open(text)?)?;
                let own = key.is_some_and(|key| key.fits(&[body.as_bytes()], &mac));
                (body, if own { Authenticity::Own } else { Authenticity::Unknown })
            }
            _ => return None,
        };
        let mut lines = Lines(body.split_once('\n')?.1);
        let counter = lines.number("counter")?;
        let origin = lines.value("origin")?.to_owned();
        let epoch = lines.number("epoch")?;
        let closed = match version {
            1 => false,
            _ => match lines.value("state")? {
                "open" => false,
                "closed" => true,
                _ => return None,
            },
        };
        let size = lines.number("size")?;
        let hash = lines.hash("head")?;
        let root = lines.hash("root")?;
        let key = parse_key_id(lines.value("key")?)?;
        let time = Instant(lines.number("time")?);
        lines.exactly("checkpoint")?;
        let note = lines.rest().to_owned();
        let anchor = Self { counter, origin, epoch, closed, head: Head { size, hash }, root, key, time, note };
        Some((anchor, authenticity))
    }

    /// Checks that the signed checkpoint is by one of our keys and says what the anchor says.
    pub(super) fn check(&self, keys: &Keys) -> Result<[u8; 32], OpenError> {
        let bad = |why: &str| OpenError::BadAnchor { why: why.into() };
        if self.origin != keys.origin() {
            return Err(OpenError::WrongOrigin { path: ANCHOR.into(), expected: keys.origin().into() });
        }
        let key = keys.verifier(self.key).ok_or(OpenError::MissingKey { key: self.key })?;
        let checkpoint = Checkpoint::open(&self.note, std::slice::from_ref(&key), &self.origin)
            .map_err(|error| bad(&error.to_string()))?;
        if checkpoint.size() != self.head.size || *checkpoint.root() != self.root {
            return Err(bad("its checkpoint is of another size or root"));
        }
        Ok(key.public_key())
    }
}

const MAC_WORD: &str = "mac ";

/// What is before the `mac` line, which must be the last one, and the MAC.
fn split_mac(text: &str) -> Option<(&str, Hash)> {
    let at = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let mac = text[at..].strip_suffix('\n')?.strip_prefix(MAC_WORD)?;
    Some((&text[..at], hex::decode_hash(mac)?))
}

fn parse_key_id(text: &str) -> Option<KeyId> {
    let id = u32::from_str_radix(text, 16).ok()?;
    let id = KeyId(id.to_be_bytes());
    (id.to_string() == text).then_some(id)
}

/// What one slot contains.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Unwritten,
    Damaged,
    NewerFormat(u32),
    Good(Anchor, Authenticity),
}

impl Slot {
    fn read(bytes: &[u8], key: Option<&MacKey>) -> Self {
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
        match Anchor::parse(text, key) {
            Some((anchor, authenticity)) => Self::Good(anchor, authenticity),
            // A complete text of a later version is not damage; half of one might be anything.
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
    /// What authenticates the slots; none in a collector's copy.
    key: Option<MacKey>,
    counter: u64,
    next_slot: u64,
}

/// What the anchor file says when the journal is opened.
pub(super) struct FoundAnchor {
    pub(super) anchor: Anchor,
    pub(super) authenticity: Authenticity,
    pub(super) file: AnchorFile,
    /// The other slot cannot be used: it is damaged, as by a crash while it was written, or was not written by us.
    pub(super) slot_damaged: bool,
}

impl AnchorFile {
    /// Creates the file, with both slots unwritten.
    pub(super) fn create(disk: &dyn Disk, key: Option<MacKey>) -> io::Result<Self> {
        let file = disk.open(ANCHOR, Access::Create)?;
        file.write_at(&[0; 2 * SLOT_BYTES], 0)?;
        Ok(Self { file, key, counter: 0, next_slot: 0 })
    }

    /// Finds the slot that counts, to write the next one later. `Ok(None)` if there is no file.
    pub(super) fn open(disk: &dyn Disk, key: Option<&MacKey>) -> Result<Option<FoundAnchor>, OpenError> {
        Self::find(disk, Access::Update, key)
    }

    /// Finds the slot that counts: one whose MAC is right before any other, then the one with the higher counter.
    /// `Ok(None)` if there is no file.
    pub(super) fn find(
        disk: &dyn Disk,
        access: Access,
        key: Option<&MacKey>,
    ) -> Result<Option<FoundAnchor>, OpenError> {
        use io::ErrorKind::{NotADirectory, NotFound};
        let file = match disk.open(ANCHOR, access) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
            Err(error) => return Err(OpenError::io("opening the anchor")(error)),
        };
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let read = read_full(file.as_ref(), &mut bytes, 0).map_err(OpenError::io("reading the anchor"))?;
        let (first, second) = bytes[..read].split_at(read.min(SLOT_BYTES));
        let slots = [Slot::read(first, key), Slot::read(second, key)];
        if let Some(version) = slots.iter().find_map(|slot| match slot {
            Slot::NewerFormat(version) => Some(*version),
            _ => None,
        }) {
            return Err(OpenError::NewerFormat { path: ANCHOR.into(), version });
        }
        if let [Slot::Good(one, _), Slot::Good(other, _)] = &slots
            && one.counter == other.counter
            && first != second
        {
            return Err(OpenError::BadAnchor { why: "they have the same counter and differ".into() });
        }
        let mut slot_damaged = slots.contains(&Slot::Damaged);
        let good = slots.into_iter().zip(0..).filter_map(|(slot, at)| match slot {
            Slot::Good(anchor, authenticity) => Some((anchor, authenticity, at)),
            _ => None,
        });
        let mut good: Vec<_> = good.collect();
        good.sort_by_key(|(anchor, authenticity, _)| (*authenticity == Authenticity::Own, anchor.counter));
        let Some((anchor, authenticity, slot)) = good.pop() else {
            let why = if slot_damaged { "they are damaged" } else { "they were never written" };
            return Err(OpenError::BadAnchor { why: why.into() });
        };
        // The next one written must have the highest counter of all.
        let other = good.pop();
        let counter = other.as_ref().map_or(anchor.counter, |(other, ..)| other.counter.max(anchor.counter));
        if authenticity == Authenticity::Own {
            slot_damaged |= other.is_some_and(|(_, authenticity, _)| authenticity == Authenticity::Unknown);
        }
        let file = Self { file, key: key.cloned(), counter, next_slot: 1 - slot };
        Ok(Some(FoundAnchor { anchor, authenticity, file, slot_damaged }))
    }

    /// Whether there is more in the file than its two slots.
    pub(super) fn is_too_long(&self) -> io::Result<bool> {
        Ok(self.file.len()? > 2 * SLOT_BYTES as u64)
    }

    /// Writes the slot whose turn it is; the other one counts until this one is whole.
    /// If it returns `Ok`, the anchor is durable.
    pub(super) fn write(&mut self, mut anchor: Anchor) -> io::Result<()> {
        self.counter =
            self.counter.checked_add(1).ok_or_else(|| io::Error::other("the anchor's counter is at its end"))?;
        anchor.counter = self.counter;
        self.file.write_at(&anchor.encode(self.key.as_ref()), self.next_slot * SLOT_BYTES as u64)?;
        self.file.sync()?;
        self.next_slot = 1 - self.next_slot;
        Ok(())
    }
}
