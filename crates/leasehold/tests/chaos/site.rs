//! One daemon with its data directory on a small disk of its own, and the ways to start, stop and disturb it.

use super::BINARY;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Enough for the segments, the snapshots and the books of a few rounds.
const DISK_BYTES: &str = "size=192m";
/// The files that the daemon may open: sockets, segments, books.
pub(crate) const FILES_MAX: usize = 256;
/// A start that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon that may be stopped at the moment.
pub(crate) struct Site {
    folder: TempDir,
    /// Whether the data directory lies on a disk of its own, which only root can mount.
    own_disk: bool,
    address: String,
    wall_clock: File,
    running: Option<Child>,
    /// Errors and warnings that the daemon has logged since its last start.
    log: Mutex<Option<Receiver<String>>>,
}

impl Site {
    /// A site whose daemon has not been started yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("disk");
        let archive = folder.path().join("archive");
        for path in [&disk, &archive] {
            fs::create_dir(path).expect("a folder");
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("ours");
        }
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK_BYTES, "tmpfs"]).arg(&disk).status();
        let own_disk = mounted.is_ok_and(|status| status.success());
        if !own_disk {
            println!("no disk can be mounted here: the disk is never full in this run (it takes root)");
        }
        // A port that is free now and was not used before: the daemon comes back to the same address.
        let address =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").to_string();
        let offset = folder.path().join("offset");
        fs::write(&offset, 0i64.to_ne_bytes()).expect("written");
        let wall_clock = File::options().write(true).open(&offset).expect("just written");
        preload(folder.path());
        let site = Self { folder, own_disk, address, wall_clock, running: None, log: Mutex::new(None) };
        let config = format!(
            "data: {}\nlisten: {}\njournal:\n  segment_bytes: 4MiB\n  snapshot_every: 3000\n  archive: [{}]\n\
             limits:\n  header_timeout: 2s\n  body_timeout: 2s\n",
            site.data().display(),
            site.address,
            archive.display()
        );
        fs::write(site.path("leasehold.yaml"), config).expect("written");
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("disk/data")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.path("archive")
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn operator_token(&self) -> String {
        fs::read_to_string(self.data().join("operator.token")).expect("a token").trim().to_owned()
    }

    /// Starts the daemon; the error is what it said when it refused.
    pub(crate) fn start(&mut self, options: &[&str]) -> Result<(), String> {
        assert!(self.running.is_none(), "it runs already");
        let mut process = Command::new("prlimit")
            .arg(format!("--nofile={FILES_MAX}:{FILES_MAX}"))
            .arg(BINARY)
            .args(["serve", "--config"])
            .arg(self.path("leasehold.yaml"))
            .args(options)
            .env("LD_PRELOAD", self.path("wall_clock.so"))
            .env("WALL_CLOCK_OFFSET", self.path("offset"))
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the daemon runs");
        let (told, log) = channel();
        let lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| told.send(line)));
        let mut said = Vec::new();
        let until = Instant::now() + PATIENCE;
        loop {
            match log.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains("LEASEHOLD_URL=") || line.contains("listening") => break,
                Ok(line) => said.push(line),
                Err(_) => {
                    let _ = process.kill();
                    let status = process.wait().expect("it ended");
                    return Err(format!("{status}: {}", said.join("\n")));
                }
            }
        }
        *self.log.lock().expect("no panic") = Some(log);
        self.running = Some(process);
        // It listens before it serves.
        while self.get("/readyz").is_err() {
            assert!(Instant::now() < until, "the daemon listens and does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts the daemon, which must not refuse.
    pub(crate) fn restart(&mut self) {
        self.start(&[]).unwrap_or_else(|said| panic!("the daemon does not start: {said}"));
    }

    fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        let mut process = self.running.take().expect("it runs");
        let early = process.try_wait().expect("it can be asked");
        assert!(early.is_none(), "the daemon ended by itself: {early:?}\n{}", self.logged().join("\n"));
        kill_process(Pid::from_child(&process), signal).expect("it runs");
        process.wait().expect("it ended")
    }

    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    pub(crate) fn stop(&mut self) {
        let status = self.end(Signal::TERM);
        assert!(status.success(), "a clean stop: {status}\n{}", self.logged().join("\n"));
    }

    /// Lines that the daemon has logged since the last call.
    pub(crate) fn logged(&self) -> Vec<String> {
        let log = self.log.lock().expect("no panic");
        log.as_ref().map(|lines| lines.try_iter().collect()).unwrap_or_default()
    }

    /// Steps the wall clock of the daemon this far from the machine's.
    pub(crate) fn set_wall_clock(&self, offset_s: i64) {
        self.wall_clock.write_all_at(&offset_s.to_ne_bytes(), 0).expect("written");
    }

    /// Fills the disk, or fills it again, to the last byte; returns whether there is a disk to fill.
    pub(crate) fn fill_disk(&self) -> bool {
        if !self.own_disk {
            return false;
        }
        let filler = File::options().create(true).append(true).open(self.path("disk/filler"));
        let mut filler = filler.expect("a file");
        let block = vec![1; 64 << 10];
        let full = loop {
            if let Err(error) = filler.write_all(&block) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
        true
    }

    pub(crate) fn empty_disk(&self) {
        fs::remove_file(self.path("disk/filler")).expect("it was filled");
    }

    /// The status and the body of a GET by the operator, if the daemon answers.
    pub(crate) fn get(&self, path: &str) -> io::Result<(u16, String)> {
        let token = fs::read_to_string(self.data().join("operator.token")).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {}\r\n\r\n",
            self.address,
            token.trim()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        Ok((status, body.to_owned()))
    }

    /// Runs a command of the command line against the daemon, or on the data directory; it must succeed.
    pub(crate) fn run(&self, line: &str) -> String {
        let output = Command::new(BINARY)
            .args(line.split(' ').map(|word| word.replace("{}", self.folder.path().to_str().expect("UTF-8"))))
            .env("HOME", self.folder.path())
            .env("LEASEHOLD_URL", format!("http://{}", self.address))
            .env("LEASEHOLD_TOKEN_FILE", self.data().join("operator.token"))
            .env_remove("LEASEHOLD_TOKEN")
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

/// The library that is loaded into the daemon, so that its wall clock can be stepped.
fn preload(folder: &Path) {
    let library = folder.join("wall_clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos/wall_clock.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(built.expect("cc, which links Rust programs too").success(), "wall_clock.c compiles");
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut process) = self.running.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if self.own_disk {
            let _ = Command::new("umount").arg("--lazy").arg(self.path("disk")).status();
        }
    }
}
