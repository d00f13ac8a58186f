//! The data directory of a demo: that of a daemon, in a directory of the user or a temporary one.

use crate::problem::Problem;
use leasehold_cell::Clock;
use leasehold_journal::{FileJournal, Keys, Local, Options, Recovered};
use leasehold_server::DataDirectoryError;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use leasehold_server::software;

pub(crate) struct DemoDirectory {
    inner: leasehold_server::DataDirectory,
    pub(crate) temporary: bool,
}

impl DemoDirectory {
    pub(crate) fn prepare(data: Option<&Path>) -> Result<Self, Problem> {
        let (data, temporary) = match data {
            Some(data) => (data.to_owned(), false),
            None => (new_temporary_directory()?, true),
        };
        let inner = leasehold_server::DataDirectory::prepare(&data).map_err(|error| problem(&error))?;
        Ok(Self { inner, temporary })
    }

    pub(crate) fn data(&self) -> &Path {
        &self.inner.data
    }
    pub(crate) fn trust(&self) -> PathBuf {
        self.inner.trust()
    }
    pub(crate) fn operator_token(&self) -> PathBuf {
        self.inner.operator_token()
    }

    /// A path next to the data directory, for files of the demo that are not the daemon's.
    pub(crate) fn beside(&self, extension: &str) -> PathBuf {
        let mut path = self.data().as_os_str().to_owned();
        path.push(extension);
        path.into()
    }

    /// The signing keys of the journal; creates them in an empty directory.
    pub(crate) fn keys(&self, origin: &str) -> Result<Arc<Keys>, Problem> {
        self.inner.keys(Some(origin), origin).map(Arc::new).map_err(|error| problem(&error))
    }

    /// Opens the journal, or creates it.
    pub(crate) fn open_journal(
        &self,
        keys: Arc<Keys>,
        segment_bytes: u64,
        clock: &dyn Clock,
    ) -> Result<(FileJournal, Option<Recovered>), Problem> {
        let options = Options { segment_bytes, ..Options::default() };
        let local = Local::new(self.inner.secret().map_err(|error| problem(&error))?);
        self.inner.open_journal(keys, options, local, clock).map_err(|error| problem(&error))
    }
}

fn problem(error: &DataDirectoryError) -> Problem {
    Problem::told(error.code(), error)
}

/// Creates a directory that only its owner can access.
fn new_temporary_directory() -> Result<PathBuf, Problem> {
    let base = std::env::temp_dir();
    let created = (0..100).find_map(|_| {
        let data = base.join(format!("leasehold-demo-{:09}", crate::dice::fresh_seed()));
        fs::DirBuilder::new().mode(0o700).create(&data).is_ok().then_some(data)
    });
    created.ok_or_else(|| {
        Problem::refused("folder_unusable", "cannot create a temporary directory")
            .at(&base)
            .advice("choose a directory with --data")
    })
}
