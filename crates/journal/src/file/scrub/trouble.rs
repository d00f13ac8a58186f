//! What keeps a scrub from reading on: damage, missing files, and where checking goes on after it.

use super::super::layout::{segment_path, tree_path};
use super::super::segment::{HEADER_BYTES, Header, HeaderFlaw};
use super::super::tree_file::{TreeRead, read_signed_tree};
use super::{Scrub, ScrubDamage, ScrubStep};
use crate::disk::{Access, Disk, DiskFile, read_full};
use crate::fold::Fold;
use crate::provider::Position;
use std::io;
use std::sync::Arc;

/// Why a step did not read on.
pub(super) enum Trouble {
    Damage { segment: u32, offset: u64, why: String },
    Tree { segment: u32, why: &'static str },
    Missing,
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Scrub {
    /// Turns trouble into damage, and finds out where checking can go on.
    pub(super) fn report(&mut self, trouble: Trouble) -> io::Result<ScrubStep> {
        let sequence = self.fold.size();
        let (file, segment, offset, why) = match trouble {
            Trouble::Io(error) => return Err(error),
            Trouble::Missing if self.was_moved_away() => {
                // With none left up to the checkpoint, the pass has ended.
                let next = self.skip(self.place.segment + 1)?.unwrap_or(sequence);
                return Ok(ScrubStep::MovedAway { next });
            }
            Trouble::Missing => {
                let segment = self.place.segment;
                (segment_path(segment), segment, 0, "the file is missing; bring it back".to_owned())
            }
            Trouble::Damage { segment, offset, why } => (segment_path(segment), segment, offset, why),
            Trouble::Tree { segment, why } => (tree_path(segment), segment, 0, why.to_owned()),
        };
        let resumed_at = match &self.open {
            _ if self.ended => None,
            // Only its tree file is wrong: the segment itself can be read.
            Some(_) => Some(sequence),
            None => self.skip(segment + 1)?,
        };
        Ok(ScrubStep::Damaged(ScrubDamage { file, segment, offset, sequence, why, resumed_at }))
    }

    /// Segments are moved away oldest first: if the one before is gone as well, this one was not lost.
    fn was_moved_away(&self) -> bool {
        let before = self.place.segment - 1;
        before < self.place.first_segment || open_segment(self.disk.as_ref(), before).is_err()
    }

    /// Goes on with the next segment that has a tree file signed by a key of the journal.
    fn skip(&mut self, from: u32) -> io::Result<Option<u64>> {
        for segment in from..=self.last_known {
            let file = match open_segment(self.disk.as_ref(), segment) {
                Ok(file) => file,
                Err(Trouble::Io(error)) => return Err(error),
                Err(_) => continue,
            };
            let Ok(header) = read_header(file.as_ref(), segment) else { continue };
            if header.first_sequence >= self.target.size() {
                break;
            }
            // A rotation may be in what could not be read: any key of the journal counts.
            let fold = std::mem::replace(&mut self.fold, Fold::new(self.keys.origin(), Position::empty(), None));
            let tree = match read_signed_tree(self.disk.as_ref(), segment)? {
                TreeRead::Whole(tree) if self.signer(&tree).is_some() => tree,
                _ => {
                    self.fold = fold;
                    continue;
                }
            };
            let first = self.place.first;
            self.begin_at(tree);
            self.place.first = first;
            (self.place.segment, self.place.offset, self.open) = (segment, 0, None);
            return Ok(Some(self.fold.size()));
        }
        self.ended = true;
        Ok(None)
    }
}

pub(super) fn open_segment(disk: &dyn Disk, number: u32) -> Result<Arc<dyn DiskFile>, Trouble> {
    disk.open(&segment_path(number), Access::Read).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Trouble::Missing,
        _ => Trouble::Io(error),
    })
}

pub(super) fn read_header(file: &dyn DiskFile, segment: u32) -> Result<Header, Trouble> {
    let mut bytes = [0; HEADER_BYTES];
    let read = read_full(file, &mut bytes, 0).map_err(|error| read_trouble(error, segment, 0))?;
    Header::parse(&bytes[..read]).map_err(|flaw| {
        let why = match flaw {
            HeaderFlaw::Damaged => "its header is damaged".to_owned(),
            HeaderFlaw::NewerFormat(version) => format!("its header has the unknown format version {version}"),
        };
        Trouble::Damage { segment, offset: 0, why }
    })
}

/// A disk that cannot read what is there is damage; being out of file descriptors is not.
pub(super) fn read_trouble(error: io::Error, segment: u32, offset: u64) -> Trouble {
    /// EIO, EBADMSG and EUCLEAN on Linux.
    const UNREADABLE: [i32; 3] = [5, 74, 117];
    match error.raw_os_error() {
        Some(code) if UNREADABLE.contains(&code) => {
            Trouble::Damage { segment, offset, why: format!("the disk cannot read it: {error}") }
        }
        _ => Trouble::Io(error),
    }
}
