//! The peers, each in a separate process: a Python program in a virtual environment queries them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SYSTEMS: [&str; 3] = ["duckdb", "polars", "chdb"];
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/usage.py");

/// The answer of one peer to one query.
pub(super) struct Answer {
    pub(super) system: String,
    pub(super) seconds: f64,
    pub(super) sha256: String,
}

/// The peers with the data set loaded.
pub(super) struct Peers {
    python: PathBuf,
    folder: PathBuf,
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

impl Peers {
    /// Loads the data set, unless an earlier run has loaded it.
    pub(super) fn prepare(leases: u64) -> Self {
        let python = target().join("venv-peers/bin/python");
        assert!(python.exists(), "{} is missing: run this by `make bench`, which installs it", python.display());
        let peers = Self { python, folder: target().join("bench-peers") };
        std::fs::create_dir_all(&peers.folder).expect("the target folder can be written to");
        peers.run(&["prepare", "--leases", &leases.to_string()]);
        peers
    }

    fn run(&self, arguments: &[&str]) -> Vec<Value> {
        let mut command = Command::new(&self.python);
        command.arg(Path::new(PROGRAM)).args(arguments).arg("--dir").arg(&self.folder);
        let said = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("Python runs");
        assert!(said.status.success(), "{arguments:?} failed");
        let lines = String::from_utf8_lossy(&said.stdout);
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    pub(super) fn ask(&self, question: &str, windows: u64, seed: u64) -> Vec<Answer> {
        let (windows, seed) = (windows.to_string(), seed.to_string());
        let figure = if matches!(question, "hourly" | "peak") { "best_s" } else { "median_s" };
        let one = |system: &str| {
            let ask = ["ask", "--system", system, "--question", question, "--windows", &windows, "--seed", &seed];
            let said = self.run(&ask).pop().expect("one line");
            Answer {
                system: system.to_owned(),
                seconds: said[figure].as_f64().expect("a figure"),
                sha256: said["sha256"].as_str().expect("a hash").to_owned(),
            }
        };
        SYSTEMS.iter().map(|system| one(system)).collect()
    }
}
