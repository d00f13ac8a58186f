//! Secrets that are shown once: on stdout, or in a new file that only its owner can read.

use crate::output::print;
use crate::problem::Problem;
use crate::term;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where a secret goes. The file is made before the secret: if it cannot be written, none is made that would be lost.
pub(super) struct SecretFile {
    path: PathBuf,
    file: File,
}

impl SecretFile {
    pub(super) fn create(path: &Path) -> Result<Self, Problem> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
            Problem::refused("output_failed", format!("the file cannot be created: {error}"))
                .at(path)
                .advice("choose a file that does not exist yet")
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the empty file: there is no secret.
    pub(super) fn abandon(self) {
        let _ = std::fs::remove_file(self.path);
    }

    /// `lost` says what to do if the secret could not be written.
    pub(super) fn write(mut self, secret: &str, lost: impl FnOnce() -> String) -> Result<(), Problem> {
        let written = writeln!(self.file, "{secret}").and_then(|()| self.file.sync_all());
        written.map_err(|error| {
            Problem::refused("output_failed", format!("the secret could not be written: {error}"))
                .at(&self.path)
                .advice(lost())
        })
    }
}

/// Prints a secret to stdout, alone, and what belongs to it to stderr.
pub(super) fn show_once(about: &str, what: &str, secret: &str) -> Result<(), Problem> {
    term::say(about);
    term::say(&format!("The {what} is shown only once. Store it safely:\n"));
    print(&format!("{secret}\n"))
}
