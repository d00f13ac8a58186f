//! What a copy has proved so far, in one small file that is replaced whole (docs/reference/journal-format.md, "A
//! collector's copy").
//!
//! The anchor beside it is for verifiers; this is for going on: it also knows the tree, the key in force and the place
//! in the files, none of which an anchor tells.

use super::layout::write_whole;
use crate::disk::{Access, Disk, read_full};
use crate::error::OpenError;
use crate::fold::Fold;
use crate::provider::{Head, Position};
use crate::text::{self, Lines};
use leasehold_model::Instant;
use leasehold_model::hex;
use leasehold_model::record::Hash;
use leasehold_tlog::Frontier;
use std::fmt::Write;
use std::io;

pub(super) const COLLECTOR: &str = "collector";
const FAMILY: &str = "leasehold-collector";
const FIRST_LINE: &str = "leasehold-collector v1";
const VERSION: u32 = 1;
/// Far more than 62 parts and a note can take.
const BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) origin: String,
    /// What the copy was held against: the caller's own mark for it.
    pub(super) trust: Hash,
    /// The segment that holds the last proved record, and where its batch ends; none before the first.
    pub(super) end: Option<(u32, u64)>,
    pub(super) position: Position,
    /// Of the last proved record.
    pub(super) stamp: Instant,
    /// The key in force there; none before the first record.
    pub(super) key: Option<[u8; 32]>,
    /// The checkpoint that proves it; empty before the first.
    pub(super) note: String,
}

impl State {
    pub(super) fn new(origin: &str, trust: Hash) -> Self {
        Self {
            origin: origin.to_owned(),
            trust,
            end: None,
            position: Position::empty(),
            stamp: Instant(0),
            key: None,
            note: String::new(),
        }
    }

    /// Where verifying goes on.
    pub(super) fn fold(&self) -> Fold {
        let mut fold = Fold::new(&self.origin, self.position.clone(), self.key);
        fold.set_stamp(self.stamp);
        fold
    }

    fn encode(&self) -> String {
        let (segment, offset) = self.end.unwrap_or((0, 0));
        let Head { size, hash } = self.position.head;
        let mut text = format!(
            "{FIRST_LINE}\norigin {}\ntrust {}\nsegment {segment}\noffset {offset}\nsize {size}\nhead {}\nstamp {}\nkey {}\n",
            self.origin,
            hex::encode(&self.trust),
            hex::encode(&hash),
            self.stamp.0,
            hex::encode(&self.key.unwrap_or_default()),
        );
        for part in self.position.tree.parts() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "part {}", hex::encode(part));
        }
        text.push_str("checkpoint\n");
        text.push_str(&self.note);
        text::close(text)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = Lines(text::open(text)?);
        lines.exactly(FIRST_LINE)?;
        let origin = lines.value("origin")?.to_owned();
        let trust = lines.hash("trust")?;
        let segment = u32::try_from(lines.number("segment")?).ok()?;
        let offset = lines.number("offset")?;
        let size = lines.number("size")?;
        let hash = lines.hash("head")?;
        let stamp = Instant(lines.number("stamp")?);
        let key = lines.hash("key")?;
        let parts = (0..size.count_ones()).map(|_| lines.hash("part")).collect::<Option<Vec<_>>>()?;
        lines.exactly("checkpoint")?;
        let note = lines.rest().to_owned();
        let tree = Frontier::from_parts(size, parts).ok()?;
        let begun = size > 0;
        (begun == (segment > 0) && begun != note.is_empty()).then_some(Self {
            origin,
            trust,
            end: begun.then_some((segment, offset)),
            position: Position { head: Head { size, hash }, tree },
            stamp,
            key: begun.then_some(key),
            note,
        })
    }

    /// If it returns `Ok`, the state is durable.
    pub(super) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        write_whole(disk, "", COLLECTOR, &[self.encode().as_bytes()])
    }

    /// What lies in the folder; `Ok(None)` if no copy was begun there.
    pub(super) fn read(disk: &dyn Disk) -> Result<Option<Self>, OpenError> {
        let file = match disk.open(COLLECTOR, Access::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::io("opening what was collected")(error)),
        };
        let mut bytes = vec![0; BYTES_MAX];
        let read = read_full(file.as_ref(), &mut bytes, 0).map_err(OpenError::io("reading what was collected"))?;
        let text = std::str::from_utf8(&bytes[..read]).unwrap_or_default();
        match (Self::parse(text), text::version(text, FAMILY)) {
            (Some(state), _) => Ok(Some(state)),
            (None, Some(version)) if version > VERSION => {
                Err(OpenError::NewerFormat { path: COLLECTOR.into(), version })
            }
            (None, _) => Err(OpenError::BadCopy { why: "the file `collector` is damaged".into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut state = State::new("c.example", [7; 32]);
        assert_eq!(State::parse(&state.encode()), Some(state.clone()));
        for leaf in 0..7 {
            state.position.tree.push([leaf; 32]);
        }
        state.position.head = Head { size: 7, hash: [8; 32] };
        state.end = Some((3, 4711));
        state.stamp = Instant(99);
        state.key = Some([5; 32]);
        state.note = "c.example\n7\nroot\n\n— c.example sig\n".into();
        let text = state.encode();
        assert_eq!(State::parse(&text), Some(state));
        assert_eq!(State::parse(&text.replacen("size 7", "size 3", 1)), None);
        assert_eq!(State::parse(&text::close(text.replacen("segment 3", "segment 0", 1))), None);
    }
}
