//! A folder with a key and a journal in it: made anew, or found as a stop or a crash left it.

use crate::problem::Problem;
use leasehold_cell::{Clock, SystemClock};
use leasehold_journal::{FileJournal, KeyringError, Keys, OpenError, Options, RealDisk, Recovered};
use leasehold_model::Name;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a journal of our own lives.
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    pub(crate) temporary: bool,
}

impl Place {
    pub(crate) fn prepare(data: Option<&Path>) -> Result<Self, Problem> {
        let Some(data) = data else {
            return temporary().map(|data| Self { data, temporary: true });
        };
        let cannot = |error: &io::Error| {
            Problem::refused("folder_unusable", format!("the folder cannot be used: {error}"))
                .at(data)
                .advice("name a folder that you may write to")
        };
        fs::create_dir_all(data).map_err(|error| cannot(&error))?;
        // Printed commands shall work from anywhere.
        let data = data.canonicalize().map_err(|error| cannot(&error))?;
        Ok(Self { data, temporary: false })
    }

    fn key(&self) -> PathBuf {
        self.data.join("key")
    }
    pub(crate) fn trust(&self) -> PathBuf {
        self.data.join("trust")
    }

    /// The keys of the journal here; new ones in an empty folder.
    pub(crate) fn keys(&self, origin: &str) -> Result<Keys, Problem> {
        match Keys::load(&self.key()) {
            Ok(keys) if keys.origin() == origin => Ok(keys),
            Ok(keys) => Err(self.foreign(&format!("the folder belongs to the journal of {:?}", keys.origin()))),
            Err(KeyringError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                if !self.is_unused().map_err(|error| key_problem(&error.into(), &self.data))? {
                    return Err(self.foreign("the folder is not empty, and nothing in it is of a demo"));
                }
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(|error| {
                    Problem::refused("no_randomness", format!("the system gives no randomness for a key: {error}"))
                })?;
                let keys = Keys::new(origin, &seed).map_err(|error| key_problem(&error, &self.data))?;
                keys.save(&self.key()).map_err(|error| key_problem(&error, &self.key()))?;
                Ok(keys)
            }
            Err(error) => Err(key_problem(&error, &self.key())),
        }
    }

    /// Nothing is here, or only what a crash left of writing the key.
    fn is_unused(&self) -> io::Result<bool> {
        let mut others = fs::read_dir(&self.data)?
            .filter(|entry| entry.as_ref().map_or(true, |entry| entry.file_name() != "key.tmp"));
        match others.next() {
            None => Ok(true),
            Some(entry) => entry.map(|_| false),
        }
    }

    fn foreign(&self, what: &str) -> Problem {
        Problem::refused("folder_foreign", what)
            .at(&self.data)
            .advice("name an empty folder, or one of an earlier demo")
    }
}

fn key_problem(error: &KeyringError, path: &Path) -> Problem {
    let code = match error {
        KeyringError::TooOpen { .. } => "key_too_open",
        KeyringError::Malformed | KeyringError::BadOrigin(_) => "key_malformed",
        KeyringError::Io(_) => "key_unreadable",
    };
    Problem::told(code, error).at(path)
}

/// A new folder that only its owner may look into.
fn temporary() -> Result<PathBuf, Problem> {
    use std::os::unix::fs::DirBuilderExt;
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

/// Opens the journal in the folder, or makes it.
pub(crate) fn open_journal(
    place: &Place,
    keys: Arc<Keys>,
    segment_bytes: u64,
    clock: &SystemClock,
) -> Result<(FileJournal, Option<Recovered>), Problem> {
    let disk = Arc::new(RealDisk::new(&place.data));
    let options = Options { segment_bytes, ..Options::default() };
    let opened = match FileJournal::open(disk.clone(), options, Arc::clone(&keys), clock.wall()) {
        Ok((journal, recovered)) => Ok((journal, Some(recovered))),
        Err(OpenError::NoJournal) => FileJournal::create(disk, options, keys, clock.wall()).map(|new| (new, None)),
        Err(error) => Err(error),
    };
    opened.map_err(|error| Problem::told(error.code(), &error).at(&place.data))
}

/// What the records say of this program.
pub(crate) fn software() -> Name {
    Name::new(concat!("leasehold ", env!("CARGO_PKG_VERSION"))).expect("a valid name")
}
