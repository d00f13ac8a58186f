//! A folder with a key and a journal in it: made anew, or found as a stop or a crash left it.

use leasehold_cell::Clock;
use leasehold_journal::{FileJournal, KeyringError, Keys, OpenError, Options, RealDisk, Recovered};
use leasehold_model::Name;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a journal of our own lives.
#[derive(Clone, Debug)]
pub struct DataDirectory {
    pub data: PathBuf,
}

/// Why a folder cannot be used; prints as `what; advice`.
#[derive(Debug)]
pub struct DataDirectoryError {
    code: &'static str,
    what: String,
}

impl DataDirectoryError {
    fn new(code: &'static str, path: &Path, what: impl fmt::Display) -> Self {
        Self { code, what: format!("{}: {what}", path.display()) }
    }
    pub fn code(&self) -> &'static str {
        self.code
    }
}
impl fmt::Display for DataDirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}
impl std::error::Error for DataDirectoryError {}

impl DataDirectory {
    /// The folder, made if it is not there; only its owner may look into a new one.
    pub fn prepare(data: &Path) -> Result<Self, DataDirectoryError> {
        let cannot = |error: io::Error| {
            DataDirectoryError::new(
                "folder_unusable",
                data,
                format!("the folder cannot be used: {error}; name one that you may write to"),
            )
        };
        if !data.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(cannot)?;
        }
        // Printed commands shall work from anywhere.
        Ok(Self { data: data.canonicalize().map_err(cannot)? })
    }

    fn key(&self) -> PathBuf {
        self.data.join("key")
    }
    /// Where the trust file for auditors is put by those who write one.
    pub fn trust(&self) -> PathBuf {
        self.data.join("trust")
    }
    /// The books: made from the journal, and made anew when missing.
    pub fn books(&self) -> PathBuf {
        self.data.join("books.redb")
    }
    pub fn operator_token(&self) -> PathBuf {
        self.data.join("operator.token")
    }

    /// The keys of the journal here; new ones, of that origin, in an empty folder. A journal that exists keeps its
    /// origin: `origin` must then be absent or the same.
    pub fn keys(&self, origin: Option<&str>, new_origin: &str) -> Result<Keys, DataDirectoryError> {
        let key_error = |error: KeyringError| {
            let code = match &error {
                KeyringError::TooOpen { .. } => "key_too_open",
                KeyringError::Malformed | KeyringError::BadOrigin(_) => "key_malformed",
                KeyringError::Io(_) => "key_unreadable",
            };
            DataDirectoryError::new(code, &self.key(), error)
        };
        match Keys::load(&self.key()) {
            Ok(keys) if origin.is_none_or(|origin| origin == keys.origin()) => Ok(keys),
            Ok(keys) => Err(self.foreign(&format!("the folder belongs to the journal of {:?}", keys.origin()))),
            Err(KeyringError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                if !self.is_unused().map_err(|error| key_error(error.into()))? {
                    return Err(self.foreign("the folder is not empty, and has no key of a journal"));
                }
                let mut seed = [0; 32];
                let no_randomness = |error| {
                    DataDirectoryError::new(
                        "no_randomness",
                        &self.data,
                        format!("the system gives no randomness for a key: {error}"),
                    )
                };
                getrandom::fill(&mut seed).map_err(no_randomness)?;
                let keys = Keys::new(new_origin, &seed).map_err(key_error)?;
                keys.save(&self.key()).map_err(key_error)?;
                Ok(keys)
            }
            Err(error) => Err(key_error(error)),
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

    fn foreign(&self, what: &str) -> DataDirectoryError {
        DataDirectoryError::new(
            "folder_foreign",
            &self.data,
            format!("{what}; name an empty folder, or the one of this journal"),
        )
    }

    /// Opens the journal in the folder, or makes it.
    pub fn open_journal(
        &self,
        keys: Arc<Keys>,
        options: Options,
        clock: &dyn Clock,
    ) -> Result<(FileJournal, Option<Recovered>), DataDirectoryError> {
        let disk = Arc::new(RealDisk::new(&self.data));
        let opened = match FileJournal::open(disk.clone(), options, Arc::clone(&keys), clock.wall()) {
            Ok((journal, recovered)) => Ok((journal, Some(recovered))),
            Err(OpenError::NoJournal) => FileJournal::create(disk, options, keys, clock.wall()).map(|new| (new, None)),
            Err(error) => Err(error),
        };
        opened.map_err(|error| DataDirectoryError::new(error.code(), &self.data, &error))
    }
}

/// What the records say of this program.
pub fn software() -> Name {
    Name::new(concat!("leasehold ", env!("CARGO_PKG_VERSION"))).expect("a valid name")
}
