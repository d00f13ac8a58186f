//! A real daemon, and the command line against it.

use super::{BINARY, Said, said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A daemon with its own port and data directory.
pub(crate) struct Daemon {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    pub(crate) process: Child,
}

impl Daemon {
    pub(crate) fn start() -> Self {
        Self::listening_on("127.0.0.1:0").0
    }

    /// A daemon on this address, and what it logged during startup.
    pub(crate) fn listening_on(address: &str) -> (Self, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("home")).unwrap();
        let (process, url, logged) = Self::launch(&folder.path().join("data"), address, "LEASEHOLD_URL=");
        (Self { folder, url, process }, logged)
    }

    /// Kills the daemon with SIGKILL, and starts another one in the same data directory.
    pub(crate) fn kill_and_restart(&mut self, between: impl FnOnce(&Path)) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        let data = self.path("data");
        between(&data);
        // Only the first start prints how to connect.
        (self.process, self.url, _) = Self::launch(&data, "127.0.0.1:0", " url=");
    }

    /// The process, its URL, and what it logged during startup.
    fn launch(data: &Path, address: &str, mark: &str) -> (Child, String, Vec<String>) {
        let mut process = Command::new(BINARY)
            .args(["serve", "--listen", address, "--data"])
            .arg(data)
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the daemon starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let mut logged = Vec::new();
        let url = loop {
            let line = lines.next().expect("the daemon says where it listens").expect("UTF-8");
            if let Some((_, rest)) = line.split_once(mark) {
                break rest.split_whitespace().next().expect("an address").trim_matches('"').to_owned();
            }
            logged.push(line);
        };
        // Keep reading, so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        (process, url, logged)
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

    /// The body of a GET as the operator, over plain HTTP.
    pub(crate) fn get(&self, path: &str) -> String {
        let token = fs::read_to_string(self.path("data/operator.token")).expect("a token");
        let address = self.url.strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(address).expect("a connection");
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        write!(stream, "{head}authorization: Bearer {}\r\n\r\n", token.trim()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    /// A GPU class and a memory class, a node with 4 GPUs and 64 GiB and immediate teardown, a tenant, a project and a user.
    pub(crate) fn with_cluster() -> Self {
        let daemon = Self::start();
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
            daemon.run(line).ok();
        }
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

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
    let id = said.json()["leases"][0]["id"].as_str().expect("an id").to_owned();
    format!("lease-{}", u64::from_str_radix(&id[16..], 16).expect("hex"))
}
