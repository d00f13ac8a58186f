//! `archive.state`: what the daemon tells `leasehold journal archive`, which works on the files and cannot ask it.
//!
//! The books are in a database that only the daemon has open, so that it writes here how many records they have
//! committed. The file may be behind, never ahead: it is written after each commit. It proves nothing, and a start does
//! not read it.

use leasehold_journal::private_file;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FIRST_LINE: &str = "leasehold-archive-state v1";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveState {
    /// Records that the books have committed.
    pub books: u64,
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
        let archives = lines.map(|line| line.strip_prefix("archive ").map(PathBuf::from)).collect::<Option<_>>()?;
        Some(Self { books, archives })
    }

    /// Replaces the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\nbooks {}\n", self.books);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("archive.state");
        assert_eq!(ArchiveState::read(&path).expect("readable"), None);
        let state = ArchiveState { books: 4711, archives: vec!["/a b".into(), "/c".into()] };
        state.write(&path).expect("written");
        assert_eq!(ArchiveState::read(&path).expect("readable"), Some(state));
        let whole = fs::read_to_string(&path).expect("text");
        for cut in 0..whole.len() {
            assert_eq!(ArchiveState::parse(&whole[..cut]), None, "cut at {cut}");
        }
    }
}
