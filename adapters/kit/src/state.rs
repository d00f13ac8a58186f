//! The state directory: a lock, what was settled and what the adapter remembers (`state.json`), and a line for each
//! record that was refused (`refused.jsonl`).
//!
//! The state saves work and nothing else: if it is lost, everything since `begin` is sent again under the same IDs.

use leasehold_client::api::NewUsageRecord;
use leasehold_terminal::Problem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    /// The newest version that was accepted; 0 if none was.
    pub(crate) version: u32,
    /// The fingerprint of the content that was last sent.
    pub(crate) digest: String,
    /// When the usage ended, in seconds since 1970.
    pub(crate) ended: u64,
    /// Whether this content was refused for good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refused: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept<M> {
    format: u32,
    /// What the adapter of this runtime remembers.
    pub(crate) memory: M,
    /// By key.
    pub(crate) settled: BTreeMap<String, Settled>,
    /// The app instance as it was last registered: it can be deleted before all of its usage was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registered: Option<Registered>,
}

/// What the registry said about the app instance in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registered {
    /// As the configuration names it.
    pub(crate) name: String,
    /// As JSON, which a later version of this program can read whatever it has besides.
    pub(crate) instance: serde_json::Value,
}

impl<M: Default> Default for Kept<M> {
    fn default() -> Self {
        Self { format: FORMAT, memory: M::default(), settled: BTreeMap::new(), registered: None }
    }
}

pub(crate) struct StateDirectory {
    directory: PathBuf,
    /// Held while the adapter runs; the kernel releases it when the process ends.
    _lock: File,
}

impl StateDirectory {
    /// Locks the directory; creates it if it is missing.
    pub(crate) fn open(directory: &Path) -> Result<Self, Problem> {
        let unusable = |error: io::Error| unusable(directory, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unusable)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join("lock"));
        let lock = lock.map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Problem::refused("state_in_use", "another adapter uses this directory")
                    .at(directory)
                    .advice("stop it first; a second adapter needs its own state directory"))
            }
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.join("state.json")
    }

    /// What an earlier pass left. A file that cannot be read is an error: it may be of a later version.
    pub(crate) fn load<M: DeserializeOwned + Default>(&self) -> Result<Kept<M>, Problem> {
        let text = match fs::read(self.file()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
            Err(error) => return Err(unusable(&self.directory, &error)),
        };
        let damaged = |what: String| {
            Problem::refused("state_damaged", what)
                .at(&self.file())
                .advice("remove it: everything since `begin` is sent again, and counted once")
        };
        let kept: Kept<M> = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if kept.format == FORMAT { Ok(kept) } else { Err(damaged(format!("it has the format {}", kept.format))) }
    }

    /// Replaces the state. It is on the disk when this returns, or the old one still is.
    pub(crate) fn save<M: Serialize>(&self, kept: &Kept<M>) -> Result<(), Problem> {
        let unfinished = self.directory.join("state.json.new");
        let write = || {
            let text = serde_json::to_vec(kept).map_err(io::Error::other)?;
            let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&unfinished)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&unfinished, self.file())?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| unusable(&self.directory, &error))
    }

    /// Keeps a record that was refused, with the reason. Durable when this returns.
    pub(crate) fn refused(&self, record: &NewUsageRecord, why: &impl Serialize) -> Result<(), Problem> {
        let line = serde_json::json!({ "record": record, "answer": why });
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(self.refused_file())?;
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error| unusable(&self.directory, &error))
    }

    pub(crate) fn refused_file(&self) -> PathBuf {
        self.directory.join("refused.jsonl")
    }
}

fn unusable(directory: &Path, error: &io::Error) -> Problem {
    Problem::refused("state_unusable", error.to_string())
        .at(directory)
        .advice("choose a directory that the adapter can write, with `leasehold.state`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_kept_and_one_adapter_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(folder.path()).unwrap();
        assert_eq!(state.load::<u64>().unwrap(), Kept::default());
        let mut kept = Kept { memory: 7u64, ..Kept::default() };
        let settled = Settled { version: 1, digest: "ab".into(), ended: 12, refused: false };
        kept.settled.insert("slurm/box/1/job_hours".into(), settled);
        state.save(&kept).unwrap();
        assert_eq!(state.load::<u64>().unwrap(), kept);
        let second = StateDirectory::open(folder.path()).map(|_| ()).unwrap_err();
        assert!(second.to_string().contains("(state_in_use)"), "{second}");
    }

    #[test]
    fn a_damaged_state_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(folder.path()).unwrap();
        for text in ["{", r#"{"format":2,"memory":0,"settled":{}}"#] {
            fs::write(folder.path().join("state.json"), text).unwrap();
            let problem = state.load::<u64>().unwrap_err().to_string();
            assert!(problem.contains("(state_damaged); remove it"), "{problem}");
        }
    }
}
