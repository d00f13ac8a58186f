//! Running the real binary and looking at what it says.
#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_leasehold");

/// What a command said.
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
    /// Each line on its own.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

pub(crate) fn leasehold<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Said {
    let output = Command::new(BINARY).args(args).stdin(Stdio::null()).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    Said { code: output.status.code().expect("it ended by itself"), out: text(output.stdout), err: text(output.stderr) }
}

/// A command line written as one: words are parted by spaces, `{}` stands for the path.
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
            false => drop(fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}
