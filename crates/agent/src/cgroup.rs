//! A job as a cgroup: a directory named after the lease under `cgroup_root`, with everything below it. If there is no
//! directory, nothing was started. For cgroup v2; without `cgroup.kill`, processes are killed one by one.

use super::failure::Failure;
use super::job::{self, Job};
use super::work::LeaseId;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ends the processes of the lease's cgroup and removes it.
pub(crate) async fn end(cgroup_root: &Path, lease: &LeaseId, term_wait: Duration) -> Result<(), Failure> {
    if !cgroup_root.join("cgroup.procs").exists() {
        return Err(Failure(format!("{} is not a cgroup", cgroup_root.display())));
    }
    let cgroup = Cgroup(cgroup_root.join(lease.as_str()));
    if !cgroup.0.try_exists().map_err(|error| Failure::at(&cgroup.0, &error))? {
        return Ok(());
    }
    job::end(&cgroup, term_wait).await?;
    cgroup.remove();
    Ok(())
}

struct Cgroup(PathBuf);

impl Cgroup {
    /// This cgroup and all below it, the deepest first.
    fn tree(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut all = vec![self.0.clone()];
        let mut visited = 0;
        while visited < all.len() {
            let directory = all[visited].clone();
            visited += 1;
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Failure::at(&directory, &error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| Failure::at(&directory, &error))?;
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    all.push(entry.path());
                }
            }
        }
        all.reverse();
        Ok(all)
    }

    /// Removes the cgroup. Failures are only logged: it contains no processes any more.
    fn remove(&self) {
        for directory in self.tree().unwrap_or_default() {
            if let Err(error) = fs::remove_dir(&directory) {
                tracing::warn!("cannot remove the empty cgroup {}: {error}", directory.display());
            }
        }
    }

    fn signal(members: &[i32], signal: Signal) -> Result<(), Failure> {
        // Members of another PID namespace are shown as 0.
        for pid in members.iter().filter(|pid| **pid > 0).filter_map(|pid| Pid::from_raw(*pid)) {
            match kill_process(pid, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => {
                    return Err(Failure(format!("cannot signal process {}: {error}", pid.as_raw_nonzero())));
                }
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // The cgroup was removed while its file was open.
        Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(None),
        Err(error) => Err(Failure::at(path, &error)),
    }
}

impl Job for Cgroup {
    /// The kernel does not list zombies in `cgroup.procs`.
    fn members(&self) -> Result<Vec<i32>, Failure> {
        let mut members = Vec::new();
        for directory in self.tree()? {
            let path = directory.join("cgroup.procs");
            for line in read(&path)?.unwrap_or_default().lines() {
                let pid = line
                    .trim()
                    .parse()
                    .map_err(|_| Failure(format!("{}: `{line}` is not a process ID", path.display())))?;
                members.push(pid);
            }
        }
        if members.contains(&rustix::process::getpid().as_raw_nonzero().get()) {
            return Err(Failure(format!("the agent itself is in {}", self.0.display())));
        }
        // Where available, the kernel's summary of the whole tree must agree.
        let events = read(&self.0.join("cgroup.events"))?.unwrap_or_default();
        if members.is_empty() && events.lines().any(|line| line == "populated 1") {
            members.push(0);
        }
        Ok(members)
    }

    fn terminate(&self, members: &[i32]) -> Result<(), Failure> {
        Self::signal(members, Signal::TERM)
    }

    fn kill(&self, members: &[i32]) -> Result<(), Failure> {
        let switch = self.0.join("cgroup.kill");
        if switch.exists() {
            return fs::write(&switch, "1").map_err(|error| Failure::at(&switch, &error));
        }
        Self::signal(members, Signal::KILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    fn lease() -> LeaseId {
        LeaseId::new(&"c".repeat(32)).unwrap()
    }

    /// A new directory in a cgroup file system, if the test may create one.
    fn cgroup_root() -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next()? == "cgroup2").then(|| PathBuf::from(place))
        })?;
        let root = mount.join(format!("leasehold-test-{}", std::process::id()));
        fs::create_dir(&root).ok().map(|()| root)
    }

    fn within(cgroup: &Path, script: &str) -> Child {
        fs::create_dir_all(cgroup).expect("a cgroup");
        let script = format!("echo $$ > {}/cgroup.procs || exit 9; {script}", cgroup.display());
        Command::new("sh").args(["-c", &script]).spawn().expect("a shell")
    }

    fn wait_for_members(cgroup: &Path, count: usize) {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let members = || Cgroup(cgroup.to_owned()).members().expect("they can be read").len();
        while members() < count {
            assert!(std::time::Instant::now() < deadline, "{count} processes are in the cgroup");
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn nested_cgroups_are_ended() {
        let Some(root) = cgroup_root() else {
            println!("skipped: no writable cgroup file system");
            return;
        };
        let cgroup = root.join(lease().as_str());
        let mut deaf = within(&cgroup, "trap '' TERM; sleep 1000 & wait; wait");
        let mut below = within(&cgroup.join("below"), "exec sleep 1000");
        wait_for_members(&cgroup, 3);
        end(&root, &lease(), Duration::from_millis(20)).await.expect("they end");
        assert!(!cgroup.exists());
        assert_eq!(deaf.wait().unwrap().signal(), Some(9));
        assert_eq!(below.wait().unwrap().signal(), Some(15));
        end(&root, &lease(), Duration::ZERO).await.expect("nothing was started");
        fs::remove_dir(&root).unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_is_not_a_cgroup_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(end(directory.path(), &lease(), Duration::ZERO).await.is_err());
        fs::write(directory.path().join("cgroup.procs"), "").unwrap();
        assert_eq!(end(directory.path(), &lease(), Duration::ZERO).await, Ok(()));
        let cgroup = directory.path().join(lease().as_str());
        fs::create_dir(&cgroup).unwrap();
        fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        let own = end(directory.path(), &lease(), Duration::ZERO).await.expect_err("the agent does not end itself");
        assert!(own.to_string().contains("the agent itself"), "{own}");
    }
}
