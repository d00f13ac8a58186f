//! Segments that were moved away, read where they are now (the setting `journal.archive`).
//!
//! A segment of the data directory goes before one of an archive. Archives are only read: the last segment, the one
//! that is written to, is always in the data directory.

use super::layout::{JOURNAL, JournalFile};
use crate::disk::{Access, Disk, DiskFile, DiskLock};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// A data directory, and the directories with its older segments.
pub(super) struct WithArchives {
    pub(super) data: Arc<dyn Disk>,
    pub(super) archives: Vec<Arc<dyn Disk>>,
}

/// The directories of an archive that may contain segments: its own, or those of a copied data directory.
const PLACES: [&str; 2] = ["", JOURNAL];

/// The numbers of the segments in the archives. A directory that does not exist, such as one that is not mounted, contains
/// none: whether they are needed shows later.
pub(super) fn archived(archives: &[Arc<dyn Disk>]) -> io::Result<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for (archive, place) in archives.iter().flat_map(|archive| PLACES.map(|place| (archive, place))) {
        let names = match archive.list(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        numbers.extend(names.iter().filter_map(|name| match JournalFile::named(name) {
            JournalFile::Segment(number) => Some(number),
            _ => None,
        }));
    }
    Ok(numbers)
}

impl Disk for WithArchives {
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let name = path.strip_prefix(JOURNAL).and_then(|rest| rest.strip_prefix('/'));
        match (self.data.open(path, access), name) {
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound && access != Access::Create => {
                for (archive, place) in self.archives.iter().flat_map(|archive| PLACES.map(|place| (archive, place))) {
                    let path = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
                    if let Ok(file) = archive.open(&path, Access::Read) {
                        return Ok(file);
                    }
                }
                Err(error)
            }
            (opened, _) => opened,
        }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.data.list(dir)
    }
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.data.create_dir(dir)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.data.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.data.rename(from, to)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.data.sync_dir(dir)
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        self.data.lock(path)
    }
    fn lock_folder(&self) -> io::Result<Option<Box<dyn DiskLock>>> {
        self.data.lock_folder()
    }
}
