//! `archive.state`: what the daemon tells `leasehold journal archive` and `delete`, which work on the files and cannot ask
//! it.
//!
//! The books and the progress of deliveries are in databases that only the daemon has open, so that it writes here how many
//! records the books have committed, and which record deliveries need next. The file may be behind, never ahead: it is
//! written after each commit of the books. It proves nothing, and a start does not read it.

use crate::deliveries::DeliveryHook;
use leasehold_journal::private_file;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const FIRST_LINE: &str = "leasehold-archive-state v1";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveState {
    /// Records that the books have committed.
    pub books: u64,
    /// The first record that an enabled webhook still has to read, if there is one.
    pub deliveries: Option<u64>,
    /// The directories of `journal.archive` with which the daemon was started.
    pub archives: Vec<PathBuf>,
}

impl ArchiveState {
    /// The file's content; `None` if there is no such file, or if it is not complete.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix("\nend\n")?.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let books = lines.next()?.strip_prefix("books ")?.parse().ok()?;
        let mut lines = lines.peekable();
        let deliveries = lines.next_if(|line| line.starts_with("deliveries "));
        let deliveries = match deliveries {
            Some(line) => Some(line["deliveries ".len()..].parse().ok()?),
            None => None,
        };
        let archives = lines.map(|line| line.strip_prefix("archive ").map(PathBuf::from)).collect::<Option<_>>()?;
        Some(Self { books, deliveries, archives })
    }

    /// Replaces the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\nbooks {}\n", self.books);
        if let Some(next) = self.deliveries {
            let _ = writeln!(text, "deliveries {next}");
        }
        for archive in &self.archives {
            // A path that is not one line of UTF-8 is left out: the archiver then says that the daemon does not know it.
            if let Some(archive) = archive.to_str().filter(|archive| !archive.contains('\n')) {
                let _ = writeln!(text, "archive {archive}");
            }
        }
        text.push_str("end\n");
        private_file::replace(path, &[text.as_bytes()])
    }
}

/// Writes the file.
pub(crate) struct ArchiveReporter {
    path: PathBuf,
    archives: Vec<PathBuf>,
    /// None if there are no deliveries.
    deliveries: Option<Arc<DeliveryHook>>,
    /// What deliveries needed when the file was written last.
    needed: Mutex<Option<u64>>,
}

impl ArchiveReporter {
    pub(crate) fn new(path: PathBuf, archives: Vec<PathBuf>, deliveries: Option<Arc<DeliveryHook>>) -> Self {
        Self { path, archives, deliveries, needed: Mutex::default() }
    }

    /// Tells which directories this daemon reads, before it serves. How far books and deliveries are is what the last run
    /// said, until they are open.
    pub(crate) fn introduce(&self) {
        let before = ArchiveState::read(&self.path).ok().flatten().unwrap_or_default();
        *self.needed.lock().unwrap_or_else(PoisonError::into_inner) = before.deliveries;
        self.tell(before.books);
    }

    /// The books have committed this many records.
    pub(crate) fn tell(&self, books: u64) {
        let deliveries = self.deliveries.as_ref().and_then(|hook| self.deliveries(hook));
        let state = ArchiveState { books, deliveries, archives: self.archives.clone() };
        if let Err(error) = state.write(&self.path) {
            tracing::debug!(%error, "cannot write archive.state; old segments can be archived later");
        }
    }

    /// What deliveries needed at the last commit as well: their progress of the last second may not be durable.
    fn deliveries(&self, hook: &DeliveryHook) -> Option<u64> {
        let mut needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(now) = hook.needs_from() else { return *needed };
        let before = std::mem::replace(&mut *needed, now);
        now.map(|now| before.map_or(now, |before| before.min(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("archive.state");
        assert_eq!(ArchiveState::read(&path).expect("readable"), None);
        let mut state = ArchiveState { books: 4711, deliveries: None, archives: vec!["/a b".into(), "/c".into()] };
        state.write(&path).expect("written");
        assert_eq!(ArchiveState::read(&path).expect("readable"), Some(state.clone()));
        state.deliveries = Some(4000);
        state.write(&path).expect("written");
        assert_eq!(ArchiveState::read(&path).expect("readable"), Some(state));
        let whole = fs::read_to_string(&path).expect("text");
        for cut in 0..whole.len() {
            assert_eq!(ArchiveState::parse(&whole[..cut]), None, "cut at {cut}");
        }
    }
}
