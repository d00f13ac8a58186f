//! Who else may use the data directory. What the daemon relies on must be written by nobody else, and the journal
//! contains names of users and workloads.

use crate::data_directory::DataDirectoryError;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Write permission of the group and of everybody else.
const WRITABLE: u32 = 0o022;
/// Any permission of everybody else.
const OPEN_TO_ALL: u32 = 0o007;
/// Permission of the group and of everybody else to reach what is inside.
const ENTERED: u32 = 0o011;

/// A data directory that everybody may look into. This is a warning: the start goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenToAll {
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
}

/// Refuses a data directory that others may write to, or a file in it that they can reach.
pub(crate) fn check(data: &Path) -> Result<Option<OpenToAll>, DataDirectoryError> {
    let unreadable = |error: io::Error| {
        DataDirectoryError::new("folder_unusable", data, format!("cannot read the permissions: {error}"))
    };
    let mode = mode_of(data).map_err(unreadable)?;
    let mut writable: Vec<(PathBuf, u32)> = Vec::new();
    if mode & WRITABLE != 0 {
        writable.push((data.to_owned(), mode));
    }
    // Nobody else reaches the files of a directory that they may not enter.
    if mode & ENTERED != 0 {
        collect_writable(data, &mut writable).map_err(unreadable)?;
    }
    match writable.first() {
        Some((path, mode)) => Err(refusal(data, path, *mode, writable.len())),
        None => Ok((mode & OPEN_TO_ALL != 0).then(|| OpenToAll { path: data.to_owned(), mode })),
    }
}

fn mode_of(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
}

/// The directories of the journal and the files of all of them. Others, such as `lost+found`, do not matter.
fn collect_writable(data: &Path, found: &mut Vec<(PathBuf, u32)>) -> io::Result<()> {
    for entry in entries(data)? {
        if entry.file_type()?.is_file() {
            add(entry.path(), found)?;
        }
    }
    for directory in ["journal", "snapshots"].map(|name| data.join(name)) {
        if directory.is_dir() {
            for entry in entries(&directory)? {
                add(entry.path(), found)?;
            }
            add(directory, found)?;
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(directory)?.collect()
}

fn add(path: PathBuf, found: &mut Vec<(PathBuf, u32)>) -> io::Result<()> {
    match mode_of(&path) {
        Ok(mode) if mode & WRITABLE != 0 => found.push((path, mode)),
        // It may be removed meanwhile, as an archiver does it.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(())
}

fn refusal(data: &Path, path: &Path, mode: u32, count: usize) -> DataDirectoryError {
    let others = match count {
        1 => String::new(),
        more => format!(" (and {} more files or directories in it)", more - 1),
    };
    let what = format!(
        "has mode {mode:04o}{others}, so other users may write to it; if nobody did, run: chmod -R go-w {}",
        shell_word(data)
    );
    DataDirectoryError::new("folder_writable", path, what)
}

/// The path as a word of a shell command.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for (path, word) in [("/var/lib/leasehold", "/var/lib/leasehold"), ("/a b", "'/a b'"), ("/o'k", r"'/o'\''k'")] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
