//! The files `statements/2026-11` in the data directory: how things stood before the first record of the range of a month,
//! so that its statements need not be made from the first record of the journal on.
//!
//! Each file is authenticated as a whole, with the month that it belongs to, and names the record before it by its hash.
//! What does not fit, or belongs to another history of the journal, is passed over.

use leasehold_bill::Fold;
use leasehold_journal::{Journal, MacKey, private_file};
use leasehold_model::{Hash, Month};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"LHSTATE1";
const MAC_BYTES: usize = 32;
/// Files that are kept: older months are rarely proved, and can be computed from the journal.
const KEPT: usize = 24;

#[derive(Debug)]
pub(super) struct SavedFolds {
    folder: PathBuf,
    key: MacKey,
}

impl SavedFolds {
    pub(super) fn new(data: &Path, key: MacKey) -> Self {
        Self { folder: data.join("statements"), key }
    }

    /// Saves the fold at the start of the range of a month. If it returns `Ok`, the file is durable.
    pub(super) fn save(&self, fold: &Fold, month: Month, journal: &dyn Journal) -> io::Result<()> {
        let before =
            hash_before(fold.next_sequence(), journal).ok_or_else(|| io::Error::other("no record before it"))?;
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let (name, bytes) = (month.to_string(), fold.to_bytes());
        let mac = self.key.mac(&[MAGIC, name.as_bytes(), &before, &bytes]);
        private_file::replace(&self.folder.join(&name), &[MAGIC, name.as_bytes(), &before, &bytes, &mac])?;
        for (_, path) in self.files().into_iter().rev().skip(KEPT) {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// The newest fold at the start of a month or of an earlier one, of this history, and not after `cut`.
    pub(super) fn newest(&self, month: Month, cut: u64, journal: &dyn Journal) -> Option<Fold> {
        let files = self.files().into_iter().rev().filter(|(of, _)| *of <= month);
        for (of, path) in files {
            match self.read(of, &path) {
                Ok((fold, before)) => {
                    let next = fold.next_sequence();
                    if next <= cut && hash_before(next, journal) == Some(before) {
                        return Some(fold);
                    }
                    tracing::warn!(path = %path.display(), "the file belongs to another history of the journal");
                }
                Err(why) => tracing::warn!(path = %path.display(), why, "the file is not used for statements"),
            }
        }
        None
    }

    /// The files and their months, in order. What is not a file of ours is left alone.
    fn files(&self) -> Vec<(Month, PathBuf)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = |path: PathBuf| Some((path.file_name()?.to_str()?.parse().ok()?, path));
        let mut files: Vec<(Month, PathBuf)> = entries.filter_map(|entry| named(entry.path())).collect();
        files.sort();
        files
    }

    fn read(&self, month: Month, path: &Path) -> Result<(Fold, Hash), String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let (body, mac) = bytes.split_last_chunk::<MAC_BYTES>().ok_or("it is too short")?;
        if !self.key.fits(&[body], mac) {
            return Err("its MAC is not by local.secret: the file was altered, or the secret was replaced".into());
        }
        let unknown = || "it was written by another version, or for another month".to_owned();
        let rest = body.strip_prefix(MAGIC).ok_or_else(unknown)?;
        let rest = rest.strip_prefix(month.to_string().as_bytes()).ok_or_else(unknown)?;
        let (before, fold) = rest.split_first_chunk().ok_or_else(unknown)?;
        let fold = Fold::from_bytes(fold).map_err(|error| error.to_string())?;
        Ok((fold, *before))
    }
}

/// The hash of the record before a sequence; of zeroes before the first one.
fn hash_before(sequence: u64, journal: &dyn Journal) -> Option<Hash> {
    let Some(last) = sequence.checked_sub(1) else { return Some([0; 32]) };
    let stored = journal.record(last).ok()??;
    Some(stored.raw().hash())
}
