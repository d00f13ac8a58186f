//! The state directory: a lock, the agent's instance ID, and the progress of each teardown.
//!
//! A teardown writes `begun` before its first hook and `done` after its last; both are durable before the next step.
//! Only their existence matters; their contents are for people.

use super::plan::Found;
use super::work::{LeaseId, Work};
use leasehold_terminal::Problem;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const BEGUN: &str = "begun";
const DONE: &str = "done";

pub(crate) struct State {
    teardowns: PathBuf,
    instance: String,
    /// Held while the agent runs; the kernel releases it when the process ends.
    _lock: File,
}

impl State {
    /// Locks the directory; creates it if it is missing.
    pub(crate) fn open(directory: &Path) -> Result<Self, Problem> {
        let unusable = |error: io::Error| {
            Problem::refused("state_unusable", error.to_string())
                .at(directory)
                .advice("choose a directory that the agent can write, with --state or `state`")
        };
        let teardowns = directory.join("teardowns");
        DirBuilder::new().recursive(true).mode(0o700).create(&teardowns).map_err(unusable)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join("lock"));
        let lock = lock.map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Problem::refused("state_in_use", "another agent uses this directory")
                    .at(directory)
                    .advice("stop it first; a second agent on one machine needs its own state directory"));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let instance = instance(directory).map_err(unusable)?;
        Ok(Self { teardowns, instance, _lock: lock })
    }

    /// 32 hexadecimal digits that identify this agent; generated once.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    fn path(&self, lease: &LeaseId, mark: &str) -> PathBuf {
        self.teardowns.join(format!("{lease}.{mark}"))
    }

    /// Records that the hooks of a lease are about to run.
    pub(crate) fn begin(&self, work: &Work) -> io::Result<()> {
        let (class, quantity) = (&work.class, &work.quantity);
        let text = serde_json::json!({ "class": class, "quantity": quantity, "devices": work.devices });
        put(&self.path(&work.lease, BEGUN), &format!("{text}\n"))
    }

    /// Records that all hooks of a lease have succeeded.
    pub(crate) fn done(&self, lease: &LeaseId) -> io::Result<()> {
        put(&self.path(lease, DONE), "")
    }

    /// Removes both files. `done` first, because `done` alone would count as finished.
    pub(crate) fn forget(&self, lease: &LeaseId) -> io::Result<()> {
        for mark in [DONE, BEGUN] {
            match fs::remove_file(self.path(lease, mark)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What an earlier run left.
    pub(crate) fn found(&self) -> io::Result<Found> {
        let mut found = Found::default();
        for entry in fs::read_dir(&self.teardowns)? {
            let name = entry?.file_name();
            let parts = name.to_str().and_then(|name| name.split_once('.'));
            let Some((lease, mark)) = parts.and_then(|(lease, mark)| Some((LeaseId::new(lease)?, mark))) else {
                continue;
            };
            match mark {
                BEGUN => drop(found.begun.insert(lease)),
                DONE => drop(found.done.insert(lease)),
                _ => {}
            }
        }
        found.begun.retain(|lease| !found.done.contains(lease));
        Ok(found)
    }
}

/// A file that is on the disk when this returns, name and all.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    sync_directory(path)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path.parent().expect("the file has a parent directory"))?.sync_all()
}

fn instance(directory: &Path) -> io::Result<String> {
    let path = directory.join("instance");
    match fs::read_to_string(&path) {
        Ok(text) => {
            let text = text.trim();
            let unreadable =
                || io::Error::other(format!("{} does not contain 32 hexadecimal digits; remove it", path.display()));
            return LeaseId::new(text).map(|_| text.to_owned()).ok_or_else(unreadable);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let made = format!("{:032x}", u128::from_be_bytes(bytes));
    let unfinished = directory.join("instance.new");
    put(&unfinished, &format!("{made}\n"))?;
    fs::rename(unfinished, &path)?;
    sync_directory(&path)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn work(digit: char) -> Work {
        let lease = LeaseId::new(&digit.to_string().repeat(32)).expect("an id");
        Work { lease, class: "gpu".into(), quantity: "1".into(), devices: vec![], teardown_by: None }
    }

    /// Opens a directory again after its lock was released. A process that another test is just starting can hold the
    /// lock for a moment.
    fn opened_again(directory: &Path) -> State {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match State::open(directory) {
                Ok(state) => return state,
                Err(problem) => {
                    assert!(problem.to_string().contains("(state_in_use)") && Instant::now() < deadline, "{problem}");
                }
            }
        }
    }

    #[test]
    fn one_agent_at_a_time_and_the_same_one_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let first = State::open(directory.path()).expect("a new directory");
        assert_eq!(first.instance().len(), 32);
        let second = State::open(directory.path()).map(|_| ()).expect_err("it is taken");
        assert!(second.to_string().contains("(state_in_use)"), "{second}");
        let instance = first.instance().to_owned();
        drop(first);
        assert_eq!(opened_again(directory.path()).instance(), instance);
    }

    #[test]
    fn an_invalid_instance_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("instance"), "rubbish").unwrap();
        let wrong = State::open(directory.path()).map(|_| ()).expect_err("that is nobody");
        assert!(wrong.to_string().contains("(state_unusable)"), "{wrong}");
    }

    #[test]
    fn the_progress_of_teardowns_is_restored() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(directory.path()).unwrap();
        let (a, b, c) = (work('a'), work('b'), work('c'));
        for work in [&a, &b, &c] {
            state.begin(work).unwrap();
        }
        state.done(&b.lease).unwrap();
        state.done(&c.lease).unwrap();
        state.forget(&c.lease).unwrap();
        state.forget(&c.lease).expect("twice is as good as once");
        fs::write(directory.path().join("teardowns/notes.txt"), "").unwrap();
        drop(state);
        let found = opened_again(directory.path()).found().unwrap();
        let set = |lease: LeaseId| std::collections::BTreeSet::from([lease]);
        assert_eq!(found, Found { begun: set(a.lease), done: set(b.lease) });
    }
}
