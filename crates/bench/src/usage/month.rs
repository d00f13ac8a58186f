//! The journal of ten million leases in a data directory, which the queries and the closing of a month share: to write
//! it takes longer than most measurements.

use super::{LEASES, prepare};
use crate::scratch;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

static KEPT: Mutex<Option<TempDir>> = Mutex::new(None);

fn kept(change: impl FnOnce(&mut Option<TempDir>) -> Option<TempDir>) -> Option<TempDir> {
    change(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The data directory: a new one, unless another benchmark has kept it.
pub(crate) fn take_month() -> TempDir {
    kept(Option::take).unwrap_or_else(|| {
        let folder = scratch::folder();
        eprintln!("  writing a journal of {LEASES} leases");
        prepare(folder.path(), LEASES);
        folder
    })
}

/// Leaves it to the next benchmark.
pub(crate) fn keep_month(folder: TempDir) {
    kept(|kept| kept.replace(folder));
}

/// Removes it.
pub(crate) fn forget_month() {
    kept(Option::take);
}
