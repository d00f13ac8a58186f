//! What happens to a data directory under a daemon: its lock, its permissions, missing directories, a full disk.

mod common;

use common::daemon::{Daemon, granted};
use common::{leasehold, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SERVE: &str = "--listen 127.0.0.1:0 --data {}/data";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_removed_lock_lets_no_second_daemon_in() {
    let daemon = Daemon::start();
    let data = daemon.path("data").display().to_string();
    fs::remove_file(daemon.path("data/lock")).unwrap();
    let second = leasehold(["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.err.contains("(journal_in_use)"), "{second:?}");
    daemon.run("tenant create physics").ok();
    // Once it has stopped, the next one starts.
    Daemon::serving(daemon.stop().0, SERVE).run("tenant show physics").ok();
}

#[test]
fn a_directory_that_was_replaced_stops_the_daemon() {
    let mut daemon = Daemon::start();
    fs::rename(daemon.path("data"), daemon.path("moved")).unwrap();
    fs::create_dir(daemon.path("data")).unwrap();
    fs::copy(daemon.path("moved/operator.token"), daemon.path("data/operator.token")).unwrap();
    // The next checkpoint would go to the wrong place.
    let mut command = daemon.command("data/operator.token", "tenant create physics");
    // It tries again and again to reach a daemon that has ended, so nobody waits for it.
    let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the daemon stops", || daemon.process.try_wait().unwrap().is_some());
    assert_eq!(daemon.process.wait().unwrap().code(), Some(1));
    let _ = client.kill();
    client.wait().unwrap();
    let log = daemon.log.lock().unwrap().join("\n");
    assert!(log.contains("moved, removed or replaced"), "{log}");
    assert!(!daemon.path("data/journal").exists());
}

#[test]
fn a_missing_directory_of_snapshots_is_created_again() {
    let daemon = Daemon::start();
    daemon.run("tenant create physics").ok();
    let (folder, _) = daemon.stop();
    fs::remove_dir_all(folder.path().join("data/snapshots")).unwrap();
    let daemon = Daemon::serving(folder, SERVE);
    assert!(daemon.path("data/snapshots").is_dir());
    daemon.run("tenant show physics").ok();
    let log = daemon.log.lock().unwrap().join("\n");
    assert!(log.contains("the directory of the snapshots was missing"), "{log}");
}

#[test]
fn everything_is_for_its_owner_and_what_others_may_write_is_refused() {
    let daemon = {
        // As under a careless umask.
        let folder = tempfile::tempdir().unwrap();
        let before = rustix::process::umask(rustix::fs::Mode::empty());
        let daemon = Daemon::serving(folder, SERVE);
        rustix::process::umask(before);
        daemon
    };
    daemon.run("tenant create physics").ok();
    let (folder, _) = daemon.stop();
    let data = folder.path().join("data");
    let mut directories = vec![data.clone()];
    let mut seen = 0;
    while let Some(directory) = directories.pop() {
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700, "{directory:?}");
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            seen += 1;
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}"),
            }
        }
    }
    assert!(seen >= 8, "journal, snapshots, anchor, key, secret, lock, books, token: {seen}");

    // The directory itself, and a file in it that others can reach.
    let segment = data.join("journal/00000001.seg");
    for (directory, file) in [(0o770, 0o600), (0o702, 0o600), (0o750, 0o660), (0o755, 0o602)] {
        mode(&data, directory);
        mode(&segment, file);
        mode(&data.join("journal"), 0o755);
        let other = tempfile::tempdir().unwrap();
        let log = match Daemon::try_serving(other, &format!("--listen 127.0.0.1:0 --data {}", data.display())) {
            Ok(_) => panic!("it started with {directory:o} {file:o}"),
            Err((_, log)) => log.join("\n"),
        };
        assert!(log.contains("(folder_writable)"), "{log}");
        assert!(log.contains(&format!("chmod -R go-w {}", data.display())), "{log}");
        chmod_as_told(&data);
    }
    // What all may read is a warning.
    mode(&data, 0o755);
    let daemon = Daemon::serving(folder, SERVE);
    let log = daemon.log.lock().unwrap().join("\n");
    assert!(log.contains("all users of this machine may look into the data directory"), "{log}");
}

/// What the message says.
fn chmod_as_told(data: &Path) {
    let mut chmod = Command::new("chmod");
    chmod.args(["-R", "go-w"]).arg(data);
    assert_eq!(said(chmod).code, 0);
}

/// A small file system of its own, where this process may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|done| done.status.success());
        mounted.then_some(Self(folder))
    }

    /// Uses up what is free.
    fn fill(&self) {
        use std::io::Write;
        let mut filler = fs::OpenOptions::new().create(true).append(true).open(self.0.path().join("filler")).unwrap();
        for piece in [1 << 20, 4096] {
            while filler.write_all(&vec![1; piece]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_full_disk_is_told_and_survived_by_a_restart() {
    let Some(disk) = SmallDisk::mount() else {
        println!("not tested: this needs the right to mount a file system");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = disk.0.path().join("data");
    let config = format!(
        "data: {}\nlisten: 127.0.0.1:0\nrate:\n  operations_per_second: 0\njournal:\n  segment_bytes: 4MiB\n  \
         snapshot_every: 1000\n",
        data.display()
    );
    fs::write(folder.path().join("config.yaml"), config).unwrap();
    // The helpers look for the token in `data` of the folder.
    std::os::unix::fs::symlink(&data, folder.path().join("data")).unwrap();
    let daemon = Daemon::serving(folder, "--config {}/config.yaml");
    daemon.furnish();
    let lease =
        granted(daemon.run("lease request --gpu 1 --ttl 8h --tenant physics --project lattice --user ada --json"));
    assert_eq!(daemon.http("GET", "/readyz", "").0, 200);

    disk.fill();
    let renew = format!("{{\"lease\":\"{lease}\",\"renew\":{{\"ttl\":\"8h\"}}}}");
    let batch = format!("{{\"operations\":[{}]}}", vec![renew; 5000].join(","));
    // A snapshot that failed gives its space back, so the disk is filled again and again.
    let mut problem = String::new();
    until("commands are refused, and it is not ready", || {
        disk.fill();
        let refused = daemon.http("POST", "/api/v1/leases/batch", &batch).1.contains("journal_full");
        let (status, said) = daemon.http("GET", "/readyz", "");
        problem = said;
        refused && status == 503
    });
    assert!(problem.contains("\"disk_full\"") && problem.contains("No space left"), "{problem}");
    daemon.run(&format!("lease show {lease}")).ok();
    // It is announced at the next attempt to allocate, within a second.
    daemon.until_logged("the disk of the journal is full");
    let (folder, log) = daemon.stop();
    assert_eq!(announced(&log).first(), Some(&"is full"), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("a snapshot failed")), "{log:#?}");

    // Somebody else takes what the stop gave back; the daemon starts all the same, and answers reads.
    disk.fill();
    let daemon = Daemon::serving(folder, "--config {}/config.yaml");
    daemon.run(&format!("lease show {lease}")).ok();
    until("it is not ready", || {
        disk.fill();
        daemon.http("POST", "/api/v1/leases/batch", &batch);
        daemon.http("GET", "/readyz", "").0 == 503
    });
    assert_eq!(daemon.http("GET", "/api/v1/usage?by=tenant", "").0, 200);
    disk.free();
    until("it is ready again", || daemon.http("GET", "/readyz", "").0 == 200);
    daemon.until_logged("the disk of the journal has room again");
    daemon.run(&format!("lease renew {lease} --ttl 1h")).ok();
    let (_, log) = daemon.stop();
    let announced = announced(&log);
    assert_eq!((announced.first(), announced.last()), (Some(&"is full"), Some(&"has room again")), "{log:#?}");
}

/// What the log says about the disk of the journal: one line when it is full, and one when it no longer is.
fn announced(log: &[String]) -> Vec<&'static str> {
    let state = |line: &String| {
        ["is full", "has room again"]
            .into_iter()
            .find(|state| line.contains(&format!("the disk of the journal {state}")))
    };
    let all: Vec<_> = log.iter().filter_map(state).collect();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "said twice: {log:#?}");
    all
}
