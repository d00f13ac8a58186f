//! Runs the real binary and captures its output.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod daemon;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_leasehold");

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
    /// Each line as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

/// No command of these tests takes nearly as long: one that does hangs, and is killed so that the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn leasehold<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Said {
    let mut command = Command::new(BINARY);
    command.args(args);
    said(command)
}

/// Runs a command to its end.
pub(crate) fn said(mut command: Command) -> Said {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary runs");
    let id = Pid::from_child(&child);
    let (ended, watched) = channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if watched.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            // It may have ended in the meantime.
            let _ = kill_process(id, Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("it ends");
    drop(ended);
    watchdog.join().expect("the watchdog ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    let code = output.status.code().unwrap_or_else(|| panic!("{command:?} did not end by itself: {err}"));
    Said { code, out, err }
}

/// Runs a command line: words are separated by spaces, and `{}` is replaced by the path.
pub(crate) fn on(path: &Path, line: &str) -> Said {
    let path = path.to_str().expect("a path in UTF-8");
    leasehold(line.split(' ').map(|word| word.replace("{}", path)))
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => match fs::copy(entry.path(), target) {
                // A temporary file of a daemon that runs got its name in the meantime.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.expect("a copy")),
            },
        }
    }
}
