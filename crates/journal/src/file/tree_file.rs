//! Tree files: the state of chain and tree at the beginning of a segment, so that what lies before may be moved
//! away (journal-format.md, "Anchor and tree files").

use super::layout::{JOURNAL, tree_path, write_whole};
use crate::disk::{Access, Disk, read_full};
use crate::provider::{Head, Position};
use crate::text::{self, Lines};
use leasehold_model::hex;
use leasehold_tlog::{Checkpoint, Frontier, Note};
use std::fmt::Write;
use std::io;

const FIRST_LINE: &str = "leasehold-tree v1";
/// Far more than 62 parts and a note can take.
const BYTES_MAX: usize = 64 * 1024;

/// One tree file that is to be written.
#[derive(Clone, Debug)]
pub(super) struct TreeFile {
    pub(super) segment: u32,
    pub(super) position: Position,
    pub(super) note: String,
}

impl TreeFile {
    fn encode(&self) -> String {
        let mut text =
            format!("{FIRST_LINE}\nsize {}\nhead {}\n", self.position.head.size, hex::encode(&self.position.head.hash));
        for part in self.position.tree.parts() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "part {}", hex::encode(part));
        }
        text.push_str("checkpoint\n");
        text.push_str(&self.note);
        text::close(text)
    }

    pub(super) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        let path = tree_path(self.segment);
        write_whole(disk, JOURNAL, &path, &[self.encode().as_bytes()])
    }
}

/// A tree file that is whole, with its signed note.
pub(super) struct SignedTree {
    pub(super) position: Position,
    pub(super) note: Note,
}

/// What was found in the place of a tree file.
pub(super) enum TreeRead {
    Absent,
    Malformed,
    Whole(SignedTree),
}

/// Reads the tree file of a segment. `Ok(None)` if it is not there or not whole; whether it is true shows when
/// the records after it lead to a signed root.
pub(super) fn read_tree(disk: &dyn Disk, segment: u32) -> io::Result<Option<Position>> {
    Ok(match read_signed_tree(disk, segment)? {
        TreeRead::Whole(tree) => Some(tree.position),
        TreeRead::Absent | TreeRead::Malformed => None,
    })
}

/// Reads the tree file of a segment. Its checkpoint is of its size and root; the signature is not checked.
pub(super) fn read_signed_tree(disk: &dyn Disk, segment: u32) -> io::Result<TreeRead> {
    let file = match disk.open(&tree_path(segment), Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TreeRead::Absent),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; BYTES_MAX];
    let read = read_full(file.as_ref(), &mut bytes, 0)?;
    let whole = std::str::from_utf8(&bytes[..read]).ok().and_then(parse);
    Ok(whole.map_or(TreeRead::Malformed, TreeRead::Whole))
}

fn parse(text: &str) -> Option<SignedTree> {
    let mut lines = Lines(text::open(text)?);
    lines.exactly(FIRST_LINE)?;
    let size = lines.number("size")?;
    let hash = lines.hash("head")?;
    let parts = (0..size.count_ones()).map(|_| lines.hash("part")).collect::<Option<Vec<_>>>()?;
    lines.exactly("checkpoint")?;
    let tree = Frontier::from_parts(size, parts).ok()?;
    let note = Note::parse(lines.rest()).ok()?;
    let checkpoint = Checkpoint::from_body(note.text()).ok()?;
    let position = Position { head: Head { size, hash }, tree };
    let fits = checkpoint.size() == size && *checkpoint.root() == position.tree.root();
    fits.then_some(SignedTree { position, note })
}
