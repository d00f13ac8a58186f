//! A data folder that is only read, also while a daemon is writing it; what the journal says is wrong with it, as a
//! problem of the command.

use crate::problem::Problem;
use leasehold_journal::disk::Disk;
use leasehold_journal::{Entry, OpenError, ReadOnly, RealDisk, Scanned, SignedHead};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct Folder {
    data: PathBuf,
    journal: ReadOnly,
}

/// Is handed each record; a `Break` ends the reading.
type Visit<'v> = dyn FnMut(&Entry<'_>) -> Result<ControlFlow<()>, Problem> + 'v;

impl Folder {
    pub(crate) fn open(data: &Path, archives: &[PathBuf]) -> Result<Self, Problem> {
        let disk = |path: &PathBuf| -> Arc<dyn Disk> { Arc::new(RealDisk::new(path)) };
        let journal = ReadOnly::open(disk(&data.to_owned()), archives.iter().map(disk).collect());
        Ok(Self { journal: journal.map_err(|error| told(data, &error))?, data: data.to_owned() })
    }

    pub(crate) fn signed(&self) -> &SignedHead {
        self.journal.signed()
    }

    /// Hands out every record at hand; see [`ReadOnly::scan`].
    pub(crate) fn scan(&self, visit: &mut Visit<'_>) -> Result<Scanned, Problem> {
        let mut problem = None;
        let scanned = self.journal.scan(&mut |entry| noting(&mut problem, visit(entry)));
        problem.map_or_else(|| scanned.map_err(|error| told(&self.data, &error)), Err)
    }

    /// As [`Self::scan`], for those who need the journal from its first record on.
    pub(crate) fn scan_from_genesis(&self, visit: &mut Visit<'_>) -> Result<Scanned, Problem> {
        let mut problem = None;
        let scanned = self.journal.scan_from_genesis(&mut |entry| noting(&mut problem, visit(entry)));
        problem.map_or_else(|| scanned.map_err(|error| told(&self.data, &error)), Err)
    }
}

/// Breaks off at a problem, and notes it.
fn noting(problem: &mut Option<Problem>, visited: Result<ControlFlow<()>, Problem>) -> ControlFlow<()> {
    visited.unwrap_or_else(|found| {
        *problem = Some(found);
        ControlFlow::Break(())
    })
}

fn told(data: &Path, error: &OpenError) -> Problem {
    let problem = Problem::told(error.code(), error).at(data);
    match error {
        OpenError::MissingSegment { .. } => problem.advice("if it was moved away, name its folder with --archive"),
        _ if error.is_damage() => problem.is_not_verified(),
        _ => problem,
    }
}
