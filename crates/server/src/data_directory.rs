//! The data directory, with the signing key and the journal: created, or opened as a shutdown or a crash left it.

use leasehold_cell::Clock;
use leasehold_journal::{
    FileJournal, KeyringError, Keys, Local, OpenError, Options, RealDisk, Recovered, Secret, SecretError,
};
use leasehold_model::Name;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of one journal.
#[derive(Clone, Debug)]
pub struct DataDirectory {
    pub data: PathBuf,
}

/// Why a data directory cannot be used; printed as `what; advice`.
#[derive(Debug)]
pub struct DataDirectoryError {
    code: &'static str,
    what: String,
}

impl DataDirectoryError {
    pub(crate) fn new(code: &'static str, path: &Path, what: impl fmt::Display) -> Self {
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
    /// Creates the directory if it does not exist; a new one can be read only by its owner.
    pub fn prepare(data: &Path) -> Result<Self, DataDirectoryError> {
        let cannot = |error: io::Error| {
            DataDirectoryError::new(
                "folder_unusable",
                data,
                format!("cannot use the data directory: {error}; choose a directory that you may write to"),
            )
        };
        if !data.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(cannot)?;
        }
        // Absolute, so that printed commands work from any directory.
        Ok(Self { data: data.canonicalize().map_err(cannot)? })
    }

    fn key(&self) -> PathBuf {
        self.data.join("key")
    }
    /// The trust file for auditors, if somebody writes one.
    pub fn trust(&self) -> PathBuf {
        self.data.join("trust")
    }
    /// The file of the books. It is computed from the journal and rebuilt if it is missing.
    pub fn books(&self) -> PathBuf {
        self.data.join("books.redb")
    }
    /// What `leasehold journal archive` needs to know of the daemon.
    pub fn archive_state(&self) -> PathBuf {
        self.data.join("archive.state")
    }
    pub fn operator_token(&self) -> PathBuf {
        self.data.join("operator.token")
    }

    /// The keys of this journal. An empty directory gets new ones, named `new_origin`. An existing journal keeps its
    /// origin: `origin` must be absent or the same.
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
            Ok(keys) => Err(self.foreign(&format!("the data directory belongs to the journal {:?}", keys.origin()))),
            Err(KeyringError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                if !self.is_unused().map_err(|error| key_error(error.into()))? {
                    return Err(self.foreign("the data directory is not empty and contains no journal key"));
                }
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(|error| self.no_randomness("a key", error))?;
                let keys = Keys::new(new_origin, &seed).map_err(key_error)?;
                keys.save(&self.key()).map_err(key_error)?;
                Ok(keys)
            }
            Err(error) => Err(key_error(error)),
        }
    }

    /// The secret in the data directory, if it is there. It may be a systemd credential, which only the daemon can read.
    pub fn own_secret(&self) -> Result<Option<Secret>, DataDirectoryError> {
        let path = self.data.join(SECRET);
        Secret::load(&path).map_err(|error| secret_error(&path, &error))
    }

    /// The data directory's secret: the systemd credential of that name, or the file here, which is created where there
    /// is none. In a directory that has a journal that means that the secret was lost.
    pub fn secret(&self) -> Result<Secret, DataDirectoryError> {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        for path in credentials.map(|credentials| credentials.join(SECRET)).into_iter().chain([self.data.join(SECRET)])
        {
            let loaded = Secret::load(&path).map_err(|error| secret_error(&path, &error))?;
            if let Some(secret) = loaded {
                return Ok(secret);
            }
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| self.no_randomness("a secret", error))?;
        let secret = Secret::new(bytes);
        let path = self.data.join(SECRET);
        secret.save(&path).map_err(|error| secret_error(&path, &error))?;
        Ok(secret)
    }

    fn no_randomness(&self, what: &str, error: getrandom::Error) -> DataDirectoryError {
        let what = format!("the system provides no random bytes for {what}: {error}");
        DataDirectoryError::new("no_randomness", &self.data, what)
    }

    /// Whether the directory is empty, except for a temporary key file that a crash may have left.
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
            format!("{what}; choose an empty directory or the data directory of this journal"),
        )
    }

    /// Opens the journal in the directory, or creates it.
    pub fn open_journal(
        &self,
        keys: Arc<Keys>,
        options: Options,
        local: Local,
        clock: &dyn Clock,
    ) -> Result<(FileJournal, Option<Recovered>), DataDirectoryError> {
        let disk = Arc::new(RealDisk::new(&self.data));
        let opened = match FileJournal::open(disk.clone(), options, Arc::clone(&keys), local.clone(), clock.wall()) {
            Ok((journal, recovered)) => Ok((journal, Some(recovered))),
            Err(OpenError::NoJournal) => {
                FileJournal::create(disk, options, keys, local, clock.wall()).map(|new| (new, None))
            }
            Err(error) => Err(error),
        };
        opened.map_err(|error| DataDirectoryError::new(error.code(), &self.data, &error))
    }
}

const SECRET: &str = "local.secret";

fn secret_error(path: &Path, error: &SecretError) -> DataDirectoryError {
    let code = match error {
        SecretError::TooOpen { .. } => "secret_too_open",
        SecretError::Malformed => "secret_malformed",
        SecretError::Io(_) => "secret_unreadable",
    };
    DataDirectoryError::new(code, path, error)
}

/// The name of this program in the records that it writes.
pub fn software() -> Name {
    Name::new(concat!("leasehold ", env!("CARGO_PKG_VERSION"))).expect("a valid name")
}
