//! A job as a process group. The launcher writes the ID of the group into a file named after the lease before the job
//! starts: `PGID`, or `PGID START` with the leader's start time in ticks (field 22 of `/proc/PGID/stat`), which
//! detects that the number was reused. If there is no file, nothing was started.

use super::failure::Failure;
use super::job::{self, Job};
use super::procfs;
use super::work::LeaseId;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group, test_kill_process_group};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Ends the lease's process group and removes its file.
pub(crate) async fn end(pid_dir: &Path, lease: &LeaseId, term_wait: Duration) -> Result<(), Failure> {
    let path = pid_dir.join(lease.as_str());
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && pid_dir.is_dir() => return Ok(()),
        Err(error) => return Err(Failure::at(&path, &error)),
    };
    let (group, began_ticks) = parse(&text).map_err(|why| Failure(format!("{}: {why}", path.display())))?;
    if is_of_job(group, began_ticks)? {
        job::end(&Group(group), term_wait).await?;
    } else {
        tracing::info!(%lease, group = group.as_raw_nonzero(), "the job has ended; its process ID was reused");
    }
    fs::remove_file(&path).map_err(|error| Failure::at(&path, &error))
}

fn parse(text: &str) -> Result<(Pid, Option<u64>), String> {
    let unreadable = || format!("`{}` is not a process group", text.trim().escape_debug());
    let mut words = text.split_ascii_whitespace();
    let group: i32 = words.next().and_then(|word| word.parse().ok()).ok_or_else(unreadable)?;
    let began = words.next().map(|word| word.parse().map_err(|_| unreadable())).transpose()?;
    if words.next().is_some() {
        return Err(unreadable());
    }
    let own = getpgrp().as_raw_nonzero().get();
    // 0 and 1 have a special meaning for kill(2).
    let group = Some(group).filter(|group| *group > 1 && *group != own).and_then(Pid::from_raw);
    Ok((group.ok_or("not the process group of a job")?, began))
}

/// Whether the group still belongs to the job: its leader is the one in the file, or has exited and left processes.
fn is_of_job(group: Pid, began_ticks: Option<u64>) -> Result<bool, Failure> {
    let Some(noted) = began_ticks else { return Ok(true) };
    let leader = procfs::process(group).map_err(|error| Failure(format!("cannot read /proc: {error}")))?;
    Ok(leader.is_none_or(|leader| leader.began_ticks == noted))
}

struct Group(Pid);

impl Group {
    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        match kill_process_group(self.0, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(self.failure(error)),
        }
    }
    fn failure(&self, error: Errno) -> Failure {
        Failure(format!("cannot signal process group {}: {error}", self.0.as_raw_nonzero()))
    }
}

impl Job for Group {
    /// Zombies do not count: they hold no resources, and only their parent can reap them.
    fn members(&self) -> Result<Vec<i32>, Failure> {
        match test_kill_process_group(self.0) {
            Err(Errno::SRCH) => return Ok(Vec::new()),
            Err(error) => return Err(self.failure(error)),
            Ok(()) => {}
        }
        let all = procfs::processes().map_err(|error| Failure(format!("cannot read /proc: {error}")))?;
        let ours = all.into_iter().filter(|process| process.is_alive && process.group == self.0.as_raw_nonzero().get());
        Ok(ours.map(|process| process.pid.as_raw_nonzero().get()).collect())
    }
    fn terminate(&self, _: &[i32]) -> Result<(), Failure> {
        self.signal(Signal::TERM)
    }
    fn kill(&self, _: &[i32]) -> Result<(), Failure> {
        self.signal(Signal::KILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    fn lease() -> LeaseId {
        LeaseId::new(&"a".repeat(32)).unwrap()
    }

    /// A job in its own process group that has started.
    fn job(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{script}; echo here; while :; do sleep 1000 & wait; done")]);
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut said = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut said).expect("it begins");
        child
    }

    async fn ended(text: &str, term_wait: Duration) -> (Result<(), Failure>, bool) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(lease().as_str());
        fs::write(&file, text).unwrap();
        let done = end(directory.path(), &lease(), term_wait).await;
        (done, file.exists())
    }

    #[tokio::test]
    async fn a_group_gets_sigterm_and_then_sigkill() {
        let mut polite = job("trap : TERM; trap 'exit 7' TERM");
        assert_eq!(ended(&polite.id().to_string(), Duration::from_secs(20)).await, (Ok(()), false));
        // The test had not reaped it: a zombie counts as ended.
        assert_eq!(polite.wait().unwrap().code(), Some(7));
        let mut deaf = job("trap '' TERM");
        assert_eq!(ended(&format!("{}\n", deaf.id()), Duration::from_millis(20)).await, (Ok(()), false));
        assert_eq!(deaf.wait().unwrap().signal(), Some(9));
    }

    #[tokio::test]
    async fn another_process_with_the_same_number_is_left_alone() {
        let mut other = job("true");
        let pid = Pid::from_child(&other);
        let began = procfs::process(pid).unwrap().unwrap().began_ticks;
        assert_eq!(ended(&format!("{} {}", other.id(), began - 1), Duration::ZERO).await, (Ok(()), false));
        assert!(other.try_wait().unwrap().is_none(), "it lives");
        assert_eq!(ended(&format!("{} {began}", other.id()), Duration::ZERO).await, (Ok(()), false));
        assert_eq!(other.wait().unwrap().signal(), Some(9));
    }

    #[tokio::test]
    async fn files_without_a_valid_group_are_errors() {
        let own = getpgrp().as_raw_nonzero().to_string();
        for text in ["", "0", "1", "-5", "12 x", "12 3 4", "everyone", &own] {
            let (done, kept) = ended(text, Duration::ZERO).await;
            assert!(done.is_err() && kept, "{text}");
        }
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(end(directory.path(), &lease(), Duration::ZERO).await, Ok(()), "nothing was started");
        assert!(
            end(&directory.path().join("gone"), &lease(), Duration::ZERO).await.is_err(),
            "the directory is missing"
        );
    }
}
