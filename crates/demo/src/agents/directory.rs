//! The directory of one agent: its configuration, token, state, log, and the hook that it runs.

use serde_json::Value;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The teardown hook. No processes run on the demo's nodes, so there is nothing to end. The hook hangs while the file
/// named by its first argument exists, unless its agent is gone.
const HOOK: &str = r#"#!/bin/sh
while [ -e "$1" ]; do
    kill -0 "$PPID" 2>/dev/null || exit 1
    sleep 0.1
done
echo "$LEASEHOLD_QUANTITY of $LEASEHOLD_CLASS wiped"
"#;

const HOOK_FILE: &str = "teardown.sh";

/// Creates the directory of all agents, or continues with one that a crash left. Fails if the directory is not ours.
pub(super) fn prepare_common(root: &Path) -> io::Result<()> {
    let hook = root.join(HOOK_FILE);
    match DirBuilder::new().mode(0o700).create(root) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && hook.exists() => {}
        created => created?,
    }
    fs::write(hook, HOOK)
}

/// Removes the directory if it is empty.
pub(super) fn remove_common(root: &Path) -> io::Result<()> {
    fs::remove_file(root.join(HOOK_FILE))?;
    fs::remove_dir(root)
}

pub(super) struct AgentDirectory(PathBuf);

impl AgentDirectory {
    pub(super) fn fill(root: &Path, node: &str, url: &str) -> io::Result<Self> {
        let directory = root.join(node);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let hook = root.join(HOOK_FILE);
        let directory = Self(directory);
        // A crash may have left the file.
        directory.hang(false);
        fs::write(directory.config(), directory.configuration(node, url, &hook))?;
        Ok(directory)
    }

    fn configuration(&self, node: &str, url: &str, hook: &Path) -> String {
        // A JSON string is a valid YAML string.
        let text = |text: &str| Value::from(text).to_string();
        let path = |path: &Path| text(&path.to_string_lossy());
        format!(
            "node: {}\nurl: {}\ntoken_file: {}\nstate: {}\n# Short, so that the demo ends quickly.\nstop_timeout: 2s\n\
             hooks:\n  gpu-h100:\n    builtin: none\n    teardown: {{ command: [/bin/sh, {}, {}], timeout: 3s }}\n  \
             # Cores, memory and network need no teardown.\n  \"*\": {{ builtin: none }}\n",
            text(node),
            text(url),
            path(&self.token()),
            path(&self.0.join("state")),
            path(hook),
            path(&self.hanging()),
        )
    }

    pub(super) fn config(&self) -> PathBuf {
        self.0.join("agent.yaml")
    }
    pub(super) fn token(&self) -> PathBuf {
        self.0.join("token")
    }
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.0)
    }
    fn hanging(&self) -> PathBuf {
        self.0.join("hang")
    }

    pub(super) fn log(&self) -> io::Result<Stdio> {
        Ok(OpenOptions::new().create(true).append(true).open(log_in(&self.0))?.into())
    }

    /// Makes the hook hang, or continue.
    pub(super) fn hang(&self, hangs: bool) {
        let file = self.hanging();
        if hangs != file.exists() {
            // If this fails, it is tried again in the next round.
            let _ = if hangs { File::create(file).map(drop) } else { fs::remove_file(file) };
        }
    }
}

pub(super) fn log_in(directory: &Path) -> PathBuf {
    directory.join("log")
}
