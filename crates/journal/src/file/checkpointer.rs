//! Signing for what is durable, off the append path, over bytes read back from the file (SEMANTICS 6).

use super::anchor::{Anchor, AnchorFile};
use super::batches::BatchReader;
use super::index::{Index, Stretch};
use super::layout::segment_path;
use super::reader::{next_batch, open_segment};
use super::segment::HEADER_BYTES_U64;
use super::tree_file::TreeFile;
use crate::disk::{Access, Disk, DiskFile, is_full, is_out_of_files};
use crate::error::{Failure, ReadError};
use crate::fold::Fold;
use crate::keyring::Keys;
use crate::provider::SignedCheckpoint;
use leasehold_model::Instant;
use std::io;
use std::sync::{Arc, Mutex};

/// What has been read back so far, and the files that say so.
pub(super) struct Checkpointer {
    pub(super) fold: Fold,
    /// The segment and offset after the last batch folded; none before the first.
    pub(super) at: Option<(u32, u64)>,
    /// The segment that is read back, kept open: reading it must not depend on how many files others have open.
    pub(super) reading: Option<(u32, Arc<dyn DiskFile>)>,
    pub(super) anchor: AnchorFile,
    pub(super) epoch: u64,
    /// Passed and not dealt with yet.
    pub(super) boundaries: Vec<Boundary>,
}

/// Why the records were not read back up to the head.
pub(super) enum Behind {
    /// No file can be opened for now. It may be tried again.
    OutOfFiles(io::Error),
    Failed(Failure),
}

impl From<Failure> for Behind {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Behind {
    /// For a caller that cannot try again.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::OutOfFiles(error) => Failure::new("reading the journal back", &error),
            Self::Failed(failure) => failure,
        }
    }
}

/// A place where one segment ended and the next began.
#[derive(Clone, Debug)]
pub(super) struct Boundary {
    pub(super) ended: u32,
    /// The end of the last batch of the segment that ended.
    pub(super) end: u64,
    /// For the segment that began.
    pub(super) tree: TreeFile,
}

impl Checkpointer {
    /// Reads back everything up to the durable head and compares. The position is then that of the head.
    pub(super) fn catch_up(&mut self, disk: &dyn Disk, index: &Mutex<Index>, keys: &Keys) -> Result<(), Behind> {
        let (target, stretches) = {
            let index = index.lock().expect("the index is whole");
            let from = self.at.map_or(0, |(segment, _)| segment);
            (index.head, index.stretches_from(from))
        };
        for stretch in stretches {
            self.read_back(disk, stretch, keys)?;
        }
        match self.fold.position().head == target {
            true => Ok(()),
            false => Err(Failure::mismatch("the last record has another hash than the writer's").into()),
        }
    }

    /// The segment, opened if it is not the one that was read last.
    fn open(&mut self, disk: &dyn Disk, segment: u32) -> Result<Arc<dyn DiskFile>, Behind> {
        if let Some((open, file)) = &self.reading
            && *open == segment
        {
            return Ok(Arc::clone(file));
        }
        let file = open_segment(disk, segment).map_err(|error| match error {
            ReadError::Io(error) if is_out_of_files(&error) => Behind::OutOfFiles(error),
            error => Failure::mismatch(error).into(),
        })?;
        self.reading = Some((segment, Arc::clone(&file)));
        Ok(file)
    }

    fn read_back(&mut self, disk: &dyn Disk, stretch: Stretch, keys: &Keys) -> Result<(), Behind> {
        // First, so that nothing has changed if it must be tried again.
        let file = self.open(disk, stretch.segment)?;
        let offset = match self.at {
            Some((segment, offset)) if segment == stretch.segment => offset,
            _ => {
                assert_eq!(stretch.first_sequence, self.fold.size(), "segments follow each other");
                self.pass_boundary(stretch, keys)?;
                HEADER_BYTES_U64
            }
        };
        let mut batches = BatchReader::new(file, offset);
        while self.fold.size() < stretch.until {
            let batch = next_batch(&mut batches, stretch.segment, self.fold.size()).map_err(Failure::mismatch)?;
            self.fold.take_batch(batch).map_err(Failure::mismatch)?;
        }
        self.at = Some((stretch.segment, batches.offset()));
        Ok(())
    }

    /// Remembers where a segment ended. The first segment has nothing before it.
    fn pass_boundary(&mut self, began: Stretch, keys: &Keys) -> Result<(), Failure> {
        if let Some((ended, end)) = self.at {
            let (note, _) = self.fold.sign(keys)?;
            self.boundaries.push(Boundary {
                ended,
                end,
                tree: TreeFile { segment: began.segment, position: self.fold.position().clone(), note },
            });
        }
        Ok(())
    }

    /// Signs for the position, makes tree files, anchor and checkpoint durable, and trims the segments passed. `closed`
    /// says that no record will follow: the mark of a clean stop.
    pub(super) fn seal(
        &mut self,
        disk: &dyn Disk,
        keys: &Keys,
        now: Instant,
        closed: bool,
    ) -> Result<SignedCheckpoint, Failure> {
        let position = self.fold.position().clone();
        let (note, key) = self.fold.sign(keys)?;
        let mut passed = std::mem::take(&mut self.boundaries).into_iter();
        while let Some(boundary) = passed.next() {
            match boundary.tree.write(disk) {
                Ok(()) => trim(disk, boundary.ended, boundary.end),
                // No record depends on a tree file: it waits until there is room, and a file to open.
                Err(error) if is_full(&error) || is_out_of_files(&error) => {
                    self.boundaries.push(boundary);
                    self.boundaries.extend(passed);
                    break;
                }
                Err(error) => return Err(Failure::new("writing a tree file", &error)),
            }
        }
        self.anchor
            .write(Anchor {
                counter: 0,
                origin: keys.origin().to_owned(),
                epoch: self.epoch,
                closed,
                head: position.head,
                root: position.tree.root(),
                key: key.verifier().id(),
                time: now,
                note: note.clone(),
            })
            .map_err(|error| Failure::new("writing the anchor", &error))?;
        Ok(SignedCheckpoint { position, note })
    }
}

/// Gives the padding of a finished segment back. It is never trusted, so that it failing or being lost in
/// a crash does no harm.
pub(super) fn trim(disk: &dyn Disk, segment: u32, end: u64) {
    let _ = disk.open(&segment_path(segment), Access::Update).and_then(|file| match file.len()? > end {
        true => file.set_len(end),
        false => Ok(()),
    });
}
