//! A journal's folder, read and never touched: no lock, no secret key, nothing written.
//!
//! In: segment files and the anchor, also while a cell is writing them. Out: the newest signed checkpoint, and every
//! record in order with its hash, checked against the record before it and against the anchor.
//!
//! What lies after the last good batch is not there yet, or never will be (journal-format.md, "A torn end"): reading
//! ends before it. Whether a journal may be believed is for `leasehold audit verify` to say.

mod anchor;
mod scan;
mod segments;

pub(crate) use anchor::Anchor;
pub(crate) use scan::Scanned;

use crate::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};

/// A folder with an anchor.
pub(crate) struct Folder {
    data: PathBuf,
    archives: Vec<PathBuf>,
    anchor: Anchor,
}

impl Folder {
    /// Reads the anchor. The records may be ahead of it, never behind: it is read first.
    pub(crate) fn open(data: &Path, archives: &[PathBuf]) -> Result<Self, Problem> {
        let anchor = Anchor::read(data)?;
        Ok(Self { data: data.to_owned(), archives: archives.to_vec(), anchor })
    }

    pub(crate) fn anchor(&self) -> &Anchor {
        &self.anchor
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Problem {
    Problem::refused("journal_io", format!("it cannot be read: {error}"))
        .at(path)
        .advice("check the path and that you may read it")
}
