//! Checks of the repository itself: the code that its tests share.
//!
//! In: the files of the working tree. Out: their paths and texts, and the list of exceptions, which may only shrink.
//! Never: a change to a file, except that `UPDATE_TIDY=1` shortens that list.

mod allowed;
mod markdown;
mod named_tests;
mod rust;

pub use allowed::{check_allowed, counts_of};
pub use markdown::{Fenced, anchors, code_blocks, inline_code, is_too_long, links, prose};
pub use named_tests::{NamedTest, named_tests, tests_in};
pub use rust::catch_alls;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// Every file below the root with this extension, by its path from the root, sorted. Build outputs and hidden
/// files are left out.
pub fn files(extension: &str) -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &root, &mut found);
    found.retain(|path| Path::new(path).extension().is_some_and(|found| found == extension));
    found.sort();
    found
}

/// Every file below the root.
pub fn all_files() -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &root, &mut found);
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder that can be read").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" || name == "__pycache__" {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            let path = path.strip_prefix(root).expect("below the root");
            found.push(path.to_string_lossy().into_owned());
        }
    }
}

/// The text of a file, by its path from the root.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
