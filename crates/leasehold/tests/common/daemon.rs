//! A real daemon, and the command line against it.

use super::{BINARY, Said, said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
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
        let folder = new_folder();
        let mut command = Command::new(BINARY);
        command.args(["serve", "--listen", address, "--data"]).arg(folder.path().join("data"));
        let daemon = Self::running(folder, command);
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
        Self::running(folder, command)
    }

    fn running(folder: TempDir, mut command: Command) -> Self {
        command.env_remove("NOTIFY_SOCKET").env_remove("LEASEHOLD_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the daemon starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let url = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it says where it listens: {log:?}")).expect("UTF-8");
            if let Some((_, rest)) = line.split_once("LEASEHOLD_URL=") {
                break rest.split_whitespace().next().expect("an address").to_owned();
            }
            log.lock().unwrap().push(line);
        };
        // Keep reading, so that the pipe does not fill up.
        let more = Arc::clone(&log);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| more.lock().unwrap().push(line)));
        Self { folder, url, process, log }
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

fn new_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("home")).unwrap();
    folder
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
