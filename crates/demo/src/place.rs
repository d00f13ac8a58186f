//! The folder of a demo: the daemon's own sort of folder, or a temporary one.

use crate::problem::Problem;
use leasehold_cell::Clock;
use leasehold_journal::{FileJournal, Keys, Options, Recovered};
use leasehold_server::DataDirectoryError;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use leasehold_server::software;

/// Where a journal of our own lives.
pub(crate) struct Place {
    folder: leasehold_server::DataDirectory,
    pub(crate) temporary: bool,
}

impl Place {
    pub(crate) fn prepare(data: Option<&Path>) -> Result<Self, Problem> {
        let (data, temporary) = match data {
            Some(data) => (data.to_owned(), false),
            None => (new_temporary_folder()?, true),
        };
        let folder = leasehold_server::DataDirectory::prepare(&data).map_err(|error| told(&error))?;
        Ok(Self { folder, temporary })
    }

    pub(crate) fn data(&self) -> &Path {
        &self.folder.data
    }
    pub(crate) fn trust(&self) -> PathBuf {
        self.folder.trust()
    }
    pub(crate) fn operator_token(&self) -> PathBuf {
        self.folder.operator_token()
    }

    /// A folder beside this one, for what belongs to it and is not of the journal.
    pub(crate) fn beside(&self, extension: &str) -> PathBuf {
        let mut path = self.data().as_os_str().to_owned();
        path.push(extension);
        path.into()
    }

    /// The keys of the journal here; new ones in an empty folder.
    pub(crate) fn keys(&self, origin: &str) -> Result<Arc<Keys>, Problem> {
        self.folder.keys(Some(origin), origin).map(Arc::new).map_err(|error| told(&error))
    }

    /// Opens the journal in the folder, or makes it.
    pub(crate) fn open_journal(
        &self,
        keys: Arc<Keys>,
        segment_bytes: u64,
        clock: &dyn Clock,
    ) -> Result<(FileJournal, Option<Recovered>), Problem> {
        let options = Options { segment_bytes, ..Options::default() };
        self.folder.open_journal(keys, options, clock).map_err(|error| told(&error))
    }
}

fn told(error: &DataDirectoryError) -> Problem {
    Problem::told(error.code(), error)
}

/// A new folder that only its owner may look into.
fn new_temporary_folder() -> Result<PathBuf, Problem> {
    let base = std::env::temp_dir();
    let made = (0..100).find_map(|_| {
        let data = base.join(format!("leasehold-demo-{:09}", crate::dice::fresh_seed()));
        fs::DirBuilder::new().mode(0o700).create(&data).is_ok().then_some(data)
    });
    made.ok_or_else(|| {
        Problem::refused("folder_unusable", "no temporary folder could be made")
            .at(&base)
            .advice("name one with --data")
    })
}
