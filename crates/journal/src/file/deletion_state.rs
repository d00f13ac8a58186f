//! `deletion.state` in an archive: what was deleted there last, written before each segment is removed.
//!
//! It tells the next run whether sensitive work came before the first segment that is left, and what a run that was killed
//! had deleted. It proves nothing: without a file that fits, what was deleted counts as unknown.

use super::deletion::SensitiveWork;
use super::layout::write_whole;
use super::segment::Header;
use crate::disk::{Access, Disk, read_full};
use crate::text::{self, Lines};
use leasehold_model::record::Hash;
use leasehold_model::{Instant, hex};
use std::io;

const NAME: &str = "deletion.state";
const FIRST_LINE: &str = "leasehold-deletion v1";
/// Far more than the lines can have.
const BYTES_MAX: usize = 4096;

/// Segments in a row that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) first_segment: u32,
    pub(super) last_segment: u32,
    pub(super) first_sequence: u64,
    /// The sequence after the last record.
    pub(super) size: u64,
    pub(super) first_stamp: Instant,
    pub(super) last_stamp: Instant,
    /// Of the last record.
    pub(super) head: Hash,
    pub(super) bytes: u64,
}

impl Stretch {
    /// With the segment after it.
    pub(super) fn and(self, next: Self) -> Self {
        assert_eq!((self.last_segment + 1, self.size), (next.first_segment, next.first_sequence), "oldest first");
        Self {
            first_segment: self.first_segment,
            first_sequence: self.first_sequence,
            first_stamp: self.first_stamp,
            bytes: self.bytes + next.bytes,
            ..next
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeletionState {
    pub(super) origin: String,
    /// The segment that was to be removed next.
    pub(super) last: Stretch,
    /// Up to the end of that segment.
    pub(super) sensitive: SensitiveWork,
    /// What was removed before it and not reported.
    pub(super) before: Option<Stretch>,
    /// Whether the deletion of everything up to here was reported.
    pub(super) reported: bool,
}

/// How a state fits the first segment that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is the one after the last that was removed.
    After,
    /// It is the one that was to be removed.
    At,
}

impl DeletionState {
    pub(super) fn fit(&self, origin: &str, first: &Header) -> Option<Fit> {
        let last = &self.last;
        if self.origin != origin {
            None
        } else if (first.number, first.first_sequence, first.prev) == (last.last_segment + 1, last.size, last.head) {
            Some(Fit::After)
        } else if (first.number, first.first_sequence) == (last.first_segment, last.first_sequence) {
            Some(Fit::At)
        } else {
            None
        }
    }

    /// What was deleted and not reported, if the segment that was to be removed is gone, or is there.
    pub(super) fn unreported(&self, fit: &Fit) -> Option<Stretch> {
        match fit {
            _ if self.reported => None,
            Fit::After => Some(self.before.map_or(self.last, |before| before.and(self.last))),
            Fit::At => self.before,
        }
    }

    /// The file's content; none if there is no such file, or if it is not whole.
    pub(super) fn read(archive: &dyn Disk) -> io::Result<Option<Self>> {
        let file = match archive.open(NAME, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = vec![0; BYTES_MAX];
        let read = read_full(file.as_ref(), &mut bytes, 0)?;
        Ok(std::str::from_utf8(&bytes[..read]).ok().and_then(Self::parse))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = Lines(text::open(text)?);
        lines.exactly(FIRST_LINE)?;
        let origin = lines.value("origin")?.to_owned();
        let sensitive = match lines.value("sensitive")? {
            "none" => SensitiveWork::None,
            "unknown" => SensitiveWork::Unknown,
            since => SensitiveWork::Since(text::parse_number(since)?),
        };
        let reported = match lines.value("reported")? {
            "yes" => true,
            "no" => false,
            _ => return None,
        };
        let last = stretch(&mut lines)?;
        let before = if lines.0.is_empty() { None } else { Some(stretch(&mut lines)?) };
        lines.rest().is_empty().then_some(Self { origin, last, sensitive, before, reported })
    }

    /// Replaces the file. If it returns `Ok`, that is durable.
    pub(super) fn write(&self, archive: &dyn Disk) -> io::Result<()> {
        let sensitive = match self.sensitive {
            SensitiveWork::None => "none".to_owned(),
            SensitiveWork::Unknown => "unknown".to_owned(),
            SensitiveWork::Since(sequence) => sequence.to_string(),
        };
        let reported = if self.reported { "yes" } else { "no" };
        let mut text = format!("{FIRST_LINE}\norigin {}\nsensitive {sensitive}\nreported {reported}\n", self.origin);
        for stretch in std::iter::once(&self.last).chain(&self.before) {
            text.push_str(&format!(
                "segments {}\nto {}\nfirst {}\nsize {}\nfrom {}\nuntil {}\nhead {}\nbytes {}\n",
                stretch.first_segment,
                stretch.last_segment,
                stretch.first_sequence,
                stretch.size,
                stretch.first_stamp.0,
                stretch.last_stamp.0,
                hex::encode(&stretch.head),
                stretch.bytes
            ));
        }
        write_whole(archive, "", NAME, &[text::close(text).as_bytes()])
    }
}

fn stretch(lines: &mut Lines<'_>) -> Option<Stretch> {
    Some(Stretch {
        first_segment: lines.number("segments")?.try_into().ok()?,
        last_segment: lines.number("to")?.try_into().ok()?,
        first_sequence: lines.number("first")?,
        size: lines.number("size")?,
        first_stamp: Instant(lines.number("from")?),
        last_stamp: Instant(lines.number("until")?),
        head: lines.hash("head")?,
        bytes: lines.number("bytes")?,
    })
}
