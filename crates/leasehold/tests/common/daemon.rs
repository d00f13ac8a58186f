//! A real daemon, and the command line against it.

use super::{BINARY, Said, said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A daemon with its own port and data directory.
pub(crate) struct Daemon {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    pub(crate) process: Child,
    /// What it has logged so far.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    pub(crate) fn start() -> Self {
        Self::listening_on("127.0.0.1:0").0
    }

    /// A daemon on this address, and what it logged during startup.
    pub(crate) fn listening_on(address: &str) -> (Self, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let daemon = Self::serving(folder, &format!("--listen {address} --data {{}}/data"));
        let logged = daemon.logged();
        (daemon, logged)
    }

    /// A daemon with this configuration file, which may have at most so many files open.
    pub(crate) fn configured(config: &str, files: Option<u32>) -> Self {
        let folder = new_folder();
        let file = folder.path().join("leasehold.yaml");
        fs::write(&file, config.replace("{}", folder.path().to_str().expect("UTF-8"))).unwrap();
        let mut command = Command::new("sh");
        let limit = files.map_or_else(String::new, |files| format!("ulimit -n {files}; "));
        command.args(["-c", &format!("{limit}exec \"$0\" \"$@\""), BINARY]);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join("data"));
        command.arg("--config").arg(file);
        Self::running(folder, command).unwrap_or_else(|(_, log)| panic!("it did not start: {log:#?}"))
    }

    /// A daemon with these options of `serve`, in which `{}` is the path of the folder.
    pub(crate) fn serving(folder: TempDir, options: &str) -> Self {
        Self::try_serving(folder, options).unwrap_or_else(|(_, log)| panic!("it did not start: {log:#?}"))
    }

    /// Like `serving`; if the daemon refuses to start, the folder and what it said.
    pub(crate) fn try_serving(folder: TempDir, options: &str) -> Result<Self, (TempDir, Vec<String>)> {
        let at = folder.path().to_str().expect("UTF-8");
        fs::create_dir_all(folder.path().join("home")).unwrap();
        let mut command = Command::new(BINARY);
        command.arg("serve").args(options.split(' ').map(|word| word.replace("{}", at)));
        Self::running(folder, command)
    }

    fn running(folder: TempDir, mut command: Command) -> Result<Self, (TempDir, Vec<String>)> {
        command.env_remove("NOTIFY_SOCKET").env_remove("LEASEHOLD_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the daemon starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let url = loop {
            let Some(line) = lines.next() else {
                let _ = process.wait();
                let log = std::mem::take(&mut *log.lock().unwrap());
                return Err((folder, log));
            };
            let line = line.expect("UTF-8");
            let url = line
                .split_once("listening ")
                .and_then(|(_, rest)| rest.split_once("http"))
                .map(|(_, url)| format!("http{}", url.split(['"', ' ', '\x1b']).next().expect("an address")));
            log.lock().unwrap().push(line);
            if let Some(url) = url.filter(|url| url.contains("://")) {
                break url;
            }
        };
        // Keep reading, so that the pipe does not fill up.
        let more = Arc::clone(&log);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| more.lock().unwrap().push(line)));
        Ok(Self { folder, url, process, log })
    }

    /// What it has logged so far.
    pub(crate) fn logged(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Waits until a line of the log contains these words.
    pub(crate) fn until_logged(&self, words: &str) -> String {
        let began = Instant::now();
        loop {
            if let Some(line) = self.logged().iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            assert!(began.elapsed() < Duration::from_secs(30), "no {words:?} in {:#?}", self.logged());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it as systemd does, and returns its folder and everything it logged.
    pub(crate) fn stop(mut self) -> (TempDir, Vec<String>) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("it runs");
        assert!(self.process.wait().expect("it ends").success(), "{:#?}", self.log.lock().unwrap());
        let empty = tempfile::tempdir().expect("a folder");
        (std::mem::replace(&mut self.folder, empty), self.logged())
    }

    /// Kills the daemon with SIGKILL, and starts another one in the same data directory.
    pub(crate) fn kill_and_restart(&mut self, between: impl FnOnce(&Path)) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        between(&self.path("data"));
        let empty = tempfile::tempdir().expect("a folder");
        let folder = std::mem::replace(&mut self.folder, empty);
        *self = Self::serving(folder, "--listen 127.0.0.1:0 --data {}/data");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command with this token, which finds the daemon through environment variables.
    pub(crate) fn command(&self, token: &str, line: &str) -> Command {
        let mut command = Command::new(BINARY);
        let at = self.folder.path().to_str().expect("UTF-8");
        command
            .args(line.split(' ').map(|word| word.replace("{}", at)))
            .env("HOME", self.path("home"))
            .env("LEASEHOLD_URL", &self.url)
            .env("LEASEHOLD_TOKEN_FILE", self.path(token))
            .env_remove("LEASEHOLD_TOKEN");
        command
    }

    pub(crate) fn by(&self, token: &str, line: &str) -> Said {
        said(self.command(token, line))
    }

    /// Runs a command as the operator.
    pub(crate) fn run(&self, line: &str) -> Said {
        self.by("data/operator.token", line)
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).ok().json()
    }

    /// Waits until a signed checkpoint covers more records than that.
    pub(crate) fn until_signed_beyond(&self, size: u64) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while self.json("audit checkpoint")["size"].as_u64().unwrap_or(0) <= size {
            assert!(std::time::Instant::now() < deadline, "no new checkpoint");
        }
    }

    /// The body of a GET as the operator, over plain HTTP.
    pub(crate) fn get(&self, path: &str) -> String {
        let (status, body) = self.http("GET", path, "");
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The status and the body of a request as the operator, over plain HTTP.
    pub(crate) fn http(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let token = fs::read_to_string(self.path("data/operator.token")).expect("a token");
        http(&self.url, token.trim(), method, path, body)
    }

    /// The lines that a GET as the operator is answered with, as they come: for streams of events.
    pub(crate) fn stream(&self, path: &str) -> impl Iterator<Item = String> {
        let token = fs::read_to_string(self.path("data/operator.token")).expect("a token");
        let stream = asked(&self.url, token.trim(), "GET", path, "");
        BufReader::new(stream).lines().map_while(Result::ok)
    }

    /// A GPU class and a memory class, a node with 4 GPUs and 64 GiB and immediate teardown, a tenant, a project and a user.
    pub(crate) fn with_cluster() -> Self {
        let daemon = Self::start();
        daemon.furnish();
        daemon
    }

    /// Creates what `with_cluster` says.
    pub(crate) fn furnish(&self) {
        for line in [
            "class create gpu-h100 --kind gpu --tier h100 --premium",
            "class create mem-dram --kind mem",
            "pool create training --strategy bin-pack --ttl-max standard=8h --grace 2s",
            "node create gpu-1 --pool training --rack r7 --class gpu-h100=4 --class mem-dram=64GiB --teardown immediate",
            "tenant create physics --accounting-tag cost-4711",
            "project create lattice --tenant physics",
            "user create ada --tenant physics",
            "token issue ci --role project-member --tenant physics --project lattice --out {}/ci.token",
        ] {
            self.run(line).ok();
        }
    }
}

/// The status and the body of a request over plain HTTP.
pub(crate) fn http(url: &str, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut answer = String::new();
    asked(url, token, method, path, body).read_to_string(&mut answer).expect("an answer");
    let status = answer.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
}

fn asked(url: &str, token: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let address = url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let head = format!("{head}authorization: Bearer {token}\r\n");
    let head = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    write!(stream, "{head}\r\n{body}").expect("a request");
    stream
}

fn new_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("home")).unwrap();
    folder
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended may have left its number to another process.
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
            let _ = self.process.wait();
        }
    }
}

#[track_caller]
pub(crate) fn refuses(said: &Said, exit: i32, code: &str) {
    assert_eq!(said.code, exit, "{said:?}");
    assert!(said.err.contains(&format!("({code})")), "no ({code}) in {said:?}");
    assert!(said.err.lines().any(|line| line.starts_with("leasehold: ")), "{said:?}");
    assert_eq!(said.out, "", "data beside an error");
}

pub(crate) fn tells(said: &Said, words: &[&str]) {
    for word in words {
        assert!(said.out.contains(word), "no {word:?} in {said:?}");
    }
}

/// The short name of the first lease of a grant.
pub(crate) fn granted(said: Said) -> String {
    let said = said.ok();
    said.json()["leases"][0]["id"].as_str().expect("an id").to_owned()
}

/// The number in the ID of an allocation.
pub(crate) trait AllocationNumber {
    fn allocation(&self) -> u64;
}

impl AllocationNumber for Value {
    #[track_caller]
    fn allocation(&self) -> u64 {
        let number = self.as_str().and_then(|id| id.strip_prefix("alloc-")?.parse().ok());
        number.unwrap_or_else(|| panic!("{self} is not the ID of an allocation"))
    }
}
