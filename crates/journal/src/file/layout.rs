//! Where things lie in the folder (journal-format.md, "The folder").

use crate::disk::{Access, Disk};
use std::io;

pub(super) const JOURNAL: &str = "journal";
pub(super) const SNAPSHOTS: &str = "snapshots";
pub(super) const ANCHOR: &str = "anchor";
pub(super) const LOCK: &str = "lock";
/// What a file is called until it is whole. One that is found at start is the rest of a crash.
const TEMPORARY: &str = ".tmp";

pub(super) fn segment_path(number: u32) -> String {
    format!("{JOURNAL}/{number:08}.seg")
}
pub(super) fn tree_path(number: u32) -> String {
    format!("{JOURNAL}/{number:08}.tree")
}
pub(super) fn snapshot_path(size: u64) -> String {
    format!("{SNAPSHOTS}/{size:020}.snap")
}

/// What a file in the `journal` folder is, by its name.
pub(super) enum JournalFile {
    Segment(u32),
    Tree(u32),
    Temporary,
    Foreign,
}

impl JournalFile {
    pub(super) fn named(name: &str) -> Self {
        let number = |digits: &str| -> Option<u32> {
            let all_digits = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_digit());
            all_digits.then(|| digits.parse().ok()).flatten().filter(|number| *number > 0)
        };
        if let Some(number) = name.strip_suffix(".seg").and_then(number) {
            Self::Segment(number)
        } else if let Some(number) = name.strip_suffix(".tree").and_then(number) {
            Self::Tree(number)
        } else if name.ends_with(TEMPORARY) {
            Self::Temporary
        } else {
            Self::Foreign
        }
    }
}

/// The size in the name of a snapshot.
pub(super) fn snapshot_named(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".snap")?;
    let all_digits = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten()
}

/// Bytes between syncs. A snapshot has tens of megabytes: synced all at once, they would hold up the
/// journal's own syncs for as long as the disk takes for them.
const STRETCH: usize = 256 * 1024;

/// Writes a file that is either there whole or not at all. If it returns `Ok`, the file is durable.
pub(super) fn write_whole(disk: &dyn Disk, dir: &str, path: &str, pieces: &[&[u8]]) -> io::Result<()> {
    let temporary = format!("{path}{TEMPORARY}");
    let written = (|| {
        let file = disk.open(&temporary, Access::Create)?;
        let mut at = 0;
        let mut unsynced = 0;
        for stretch in pieces.iter().flat_map(|piece| piece.chunks(STRETCH)) {
            file.write_at(stretch, at)?;
            at += stretch.len() as u64;
            unsynced += stretch.len();
            if unsynced >= STRETCH {
                file.sync()?;
                unsynced = 0;
            }
        }
        file.sync()?;
        disk.rename(&temporary, path)?;
        disk.sync_dir(dir)
    })();
    if written.is_err() {
        // The disk may be full of it. If this fails too, the next start removes it.
        let _ = disk.remove(&temporary);
    }
    written
}

/// Removes what a crash left half-written in `dir`.
pub(super) fn remove_temporaries(disk: &dyn Disk, dir: &str) -> io::Result<()> {
    for name in disk.list(dir)? {
        if name.ends_with(TEMPORARY) {
            disk.remove(&format!("{dir}/{name}"))?;
        }
    }
    Ok(())
}
