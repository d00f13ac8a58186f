//! Small files that only their owner may read: written beside their place, made durable, then put there, so that a crash
//! leaves either the old file or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces the file. If it returns `Ok`, the new one is durable.
pub fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    put(path, parts, |temporary| fs::rename(temporary, path))
}

/// Writes the file unless there is one already, which is left as it is.
pub fn create(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    put(path, parts, |temporary| {
        // Unlike a rename, a link does not replace a file.
        let linked = fs::hard_link(temporary, path);
        fs::remove_file(temporary)?;
        linked.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
    })
}

fn put(path: &Path, parts: &[&[u8]], into_place: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    // One that a crash has left may be readable by others: the mode given here applies to new files only.
    if let Err(error) = fs::remove_file(&temporary)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()?;
    into_place(&temporary)?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_owner_may_read_it_and_a_left_over_file_changes_nothing() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, left) = (folder.path().join("secret"), folder.path().join("secret.tmp"));
        fs::write(&left, "of a crash").expect("written");
        fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).expect("ours");
        replace(&path, &[b"one ", b"part"]).expect("written");
        replace(&path, &[b"two"]).expect("replaced");
        create(&path, &[b"three"]).expect("left as it is");
        create(&folder.path().join("new"), &[b"three"]).expect("written");
        assert_eq!(fs::read(&path).expect("readable"), b"two");
        assert_eq!(fs::read(folder.path().join("new")).expect("readable"), b"three");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("a directory").count(), 2, "nothing temporary is left");
    }
}
