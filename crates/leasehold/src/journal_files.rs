//! The journal of a data directory, opened read-only, also while a daemon writes to it.

use crate::problem::Problem;
use leasehold_journal::disk::Disk;
use leasehold_journal::{Entry, OpenError, ReadOnly, RealDisk, Scanned, SignedHead};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct JournalFiles {
    data: PathBuf,
    journal: ReadOnly,
}

/// Called with each record; a `Break` ends the scan.
type Visit<'v> = dyn FnMut(&Entry<'_>) -> Result<ControlFlow<()>, Problem> + 'v;

impl JournalFiles {
    pub(crate) fn open(data: &Path, archives: &[PathBuf]) -> Result<Self, Problem> {
        let disk = |path: &PathBuf| -> Arc<dyn Disk> { Arc::new(RealDisk::new(path)) };
        let journal = ReadOnly::open(disk(&data.to_owned()), archives.iter().map(disk).collect());
        Ok(Self { journal: journal.map_err(|error| open_problem(data, &error))?, data: data.to_owned() })
    }

    pub(crate) fn signed(&self) -> &SignedHead {
        self.journal.signed()
    }

    /// Visits every available record; see [`ReadOnly::scan`].
    pub(crate) fn scan(&self, visit: &mut Visit<'_>) -> Result<Scanned, Problem> {
        let mut problem = None;
        let scanned = self.journal.scan(&mut |entry| keep_problem(&mut problem, visit(entry)));
        problem.map_or_else(|| scanned.map_err(|error| open_problem(&self.data, &error)), Err)
    }

    /// Like [`Self::scan`], but fails if the first record is not available.
    pub(crate) fn scan_from_genesis(&self, visit: &mut Visit<'_>) -> Result<Scanned, Problem> {
        let mut problem = None;
        let scanned = self.journal.scan_from_genesis(&mut |entry| keep_problem(&mut problem, visit(entry)));
        problem.map_or_else(|| scanned.map_err(|error| open_problem(&self.data, &error)), Err)
    }
}

/// Ends the scan at a problem, and stores it.
fn keep_problem(problem: &mut Option<Problem>, visited: Result<ControlFlow<()>, Problem>) -> ControlFlow<()> {
    visited.unwrap_or_else(|found| {
        *problem = Some(found);
        ControlFlow::Break(())
    })
}

fn open_problem(data: &Path, error: &OpenError) -> Problem {
    let problem = Problem::told(error.code(), error).at(data);
    match error {
        OpenError::MissingSegment { .. } => problem.advice("if it was archived, give its directory with --archive"),
        _ if error.is_damage() => problem.is_not_verified(),
        _ => problem,
    }
}
