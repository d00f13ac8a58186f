//! Runs one hook command: in its own process group, with a timeout, its output in the log.

use super::failure::Failure;
use super::work::Work;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::task::AbortHandle;

/// Identifies the agent that runs a hook, so that its next run finds hooks that survived a crash.
pub(crate) const AGENT_VARIABLE: &str = "LEASEHOLD_AGENT";
pub(crate) const LEASE_VARIABLE: &str = "LEASEHOLD_LEASE";

/// How long output is read after the command has exited; a process that it left running can keep the pipe open.
const OUTPUT_WAIT: Duration = Duration::from_millis(500);
/// How long a command may take to exit after it was killed.
const KILL_WAIT: Duration = Duration::from_secs(5);
const LINE_BYTES_MAX: usize = 1024;
/// Lines of each stream that are logged; the rest is discarded.
const LINES_MAX: usize = 500;

/// Who runs the hooks.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    pub(crate) node: String,
    pub(crate) instance: String,
}

/// Kills the process group of a command when dropped.
struct GroupGuard(Option<Pid>);

impl GroupGuard {
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // The group may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
impl Drop for GroupGuard {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command for a lease, or for the whole node if `work` is absent. Dropping the future kills the command and
/// its process group.
pub(crate) async fn run(
    hook: &'static str,
    command: &[String],
    limit: Duration,
    work: Option<&Work>,
    runner: &Runner,
) -> Result<(), Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| Failure(format!("{hook}: the command is empty")))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LEASEHOLD_NODE", &runner.node)
        .env(AGENT_VARIABLE, &runner.instance)
        // Not for hooks.
        .env_remove("LEASEHOLD_TOKEN")
        .env_remove("NOTIFY_SOCKET")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(work) = work {
        let devices: Vec<String> = work.devices.iter().map(u32::to_string).collect();
        command
            .env(LEASE_VARIABLE, work.lease.as_str())
            .env("LEASEHOLD_CLASS", &work.class)
            .env("LEASEHOLD_QUANTITY", &work.quantity)
            .env("LEASEHOLD_DEVICES", devices.join(","));
    }
    let mut child = command.spawn().map_err(|error| Failure(format!("{hook}: cannot run {program}: {error}")))?;
    let mut guard = GroupGuard(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
    let output = [
        child.stdout.take().map(|stream| tokio::spawn(log(stream, hook, work.cloned()))),
        child.stderr.take().map(|stream| tokio::spawn(log(stream, hook, work.cloned()))),
    ];
    let _guards: Vec<AbortOnDrop> = output.iter().flatten().map(|task| AbortOnDrop(task.abort_handle())).collect();
    let Ok(ended) = tokio::time::timeout(limit, child.wait()).await else {
        guard.kill();
        let vanished = tokio::time::timeout(KILL_WAIT, child.wait()).await;
        let how = if vanished.is_ok() { "was killed" } else { "could not be killed" };
        return Err(Failure(format!("{hook}: timed out after {limit:?}; it {how}")));
    };
    // It has been reaped: its process ID can be reused from now on.
    guard.0 = None;
    let remaining_output = async {
        for task in output.into_iter().flatten() {
            // These tasks do not panic and are not aborted before this.
            let _ = task.await;
        }
    };
    // A stream that is still open belongs to a process that the command left running.
    let _ = tokio::time::timeout(OUTPUT_WAIT, remaining_output).await;
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure(format!("{hook}: {program} failed: {status}"))),
        Err(error) => Err(Failure(format!("{hook}: cannot wait for {program}: {error}"))),
    }
}

/// Aborts a task when dropped.
struct AbortOnDrop(AbortHandle);
impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn log(mut stream: impl AsyncRead + Unpin, hook: &'static str, work: Option<Work>) {
    let write = |line: &str| match &work {
        Some(work) => tracing::info!(lease = %work.lease, class = work.class, hook, "{line}"),
        None => tracing::info!(hook, "{line}"),
    };
    let mut lines = Lines::default();
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        lines.push(&bytes[..count], write);
    }
    lines.finish(write);
}

/// Splits output into lines, up to a maximum number.
#[derive(Default)]
struct Lines {
    partial: Vec<u8>,
    count: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut write: impl FnMut(&str)) {
        for byte in bytes {
            match byte {
                b'\n' => self.emit(&mut write),
                byte => {
                    self.partial.push(*byte);
                    if self.partial.len() == LINE_BYTES_MAX {
                        self.emit(&mut write);
                    }
                }
            }
        }
    }

    fn emit(&mut self, write: &mut impl FnMut(&str)) {
        let line = std::mem::take(&mut self.partial);
        if self.count < LINES_MAX {
            // Without control characters, a hook cannot forge log lines.
            let text: String =
                String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control() || *c == '\t').collect();
            write(text.trim_end());
        }
        self.count += 1;
    }

    fn finish(&mut self, mut write: impl FnMut(&str)) {
        if !self.partial.is_empty() {
            self.emit(&mut write);
        }
        if self.count > LINES_MAX {
            write(&format!("… and {} more lines", self.count - LINES_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::LeaseId;
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    async fn sh(script: &str, limit: Duration) -> Result<(), Failure> {
        let lease = LeaseId::new(&"a".repeat(32)).unwrap();
        let work = Work { lease, class: "h100".into(), quantity: "2".into(), devices: vec![3, 5], teardown_by: None };
        let runner = Runner { node: "node-1".into(), instance: "me".into() };
        let command = ["sh", "-c", script].map(str::to_owned);
        run("wipe", &command, limit, Some(&work), &runner).await
    }

    fn is_gone(pid: &Path) -> bool {
        let pid = fs::read_to_string(pid).expect("it was written").trim().parse().ok().and_then(Pid::from_raw);
        super::super::procfs::process(pid.expect("a pid")).unwrap().is_none_or(|process| !process.is_alive)
    }

    #[tokio::test]
    async fn a_command_knows_its_lease() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("seen");
        let say = "$LEASEHOLD_LEASE $LEASEHOLD_CLASS $LEASEHOLD_QUANTITY $LEASEHOLD_DEVICES $LEASEHOLD_NODE";
        sh(&format!("echo {say} > {}; echo done; echo oh >&2", file.display()), LONG).await.expect("it succeeds");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{} h100 2 3,5 node-1\n", "a".repeat(32)));
    }

    #[tokio::test]
    async fn a_command_that_fails_is_reported() {
        let failure = |result: Result<(), Failure>| result.expect_err("it fails").to_string();
        assert_eq!(failure(sh("exit 3", LONG).await), "wipe: sh failed: exit status: 3");
        assert_eq!(failure(sh("kill -9 $$", LONG).await), "wipe: sh failed: signal: 9 (SIGKILL)");
        let work = Work {
            lease: LeaseId::new(&"a".repeat(32)).unwrap(),
            class: String::new(),
            quantity: String::new(),
            devices: vec![],
            teardown_by: None,
        };
        let runner = Runner { node: String::new(), instance: String::new() };
        let missing = run("teardown", &["/nowhere/hook".into()], LONG, Some(&work), &runner).await;
        assert!(failure(missing).starts_with("teardown: cannot run /nowhere/hook: "));
    }

    #[tokio::test]
    async fn at_its_limit_a_command_goes_with_its_group() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", pid.display());
        let began = Instant::now();
        // It writes its child's number long before; a machine where it does not is looked at again.
        let mut limit = Duration::from_millis(300);
        while !pid.exists() {
            let failure = sh(&script, limit).await.expect_err("it is killed");
            assert!(failure.to_string().ends_with("it was killed"), "{failure}");
            limit *= 2;
        }
        assert!(began.elapsed() < LONG);
        while !is_gone(&pid) {
            assert!(began.elapsed() < LONG, "the child goes too");
        }
    }

    #[tokio::test]
    async fn what_a_command_leaves_running_does_not_hold_it_up() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let began = Instant::now();
        sh(&format!("sleep 1000 & echo $! > {}", pid.display()), LONG).await.expect("it succeeds");
        assert!(began.elapsed() < LONG / 2);
        assert!(!is_gone(&pid), "and it is left alone");
        let left = fs::read_to_string(&pid).unwrap().trim().parse().ok().and_then(Pid::from_raw);
        rustix::process::kill_process(left.expect("a pid"), Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn a_command_that_is_given_up_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", pid.display());
        let began = Instant::now();
        let running = tokio::spawn(async move { sh(&script, LONG).await });
        while !pid.exists() {
            assert!(began.elapsed() < LONG);
            tokio::task::yield_now().await;
        }
        running.abort();
        assert!(running.await.expect_err("it was given up").is_cancelled());
        while !is_gone(&pid) {
            assert!(began.elapsed() < LONG);
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn output_has_its_limits() {
        let mut written = Vec::new();
        let mut lines = Lines::default();
        lines.push(b"one\r\ntw", |line| written.push(line.to_owned()));
        lines.push(b"o\x1b[31m\nthree", |line| written.push(line.to_owned()));
        lines.finish(|line| written.push(line.to_owned()));
        assert_eq!(written, ["one", "two[31m", "three"]);
        let (mut count, mut last) = (0, String::new());
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; LINE_BYTES_MAX * (LINES_MAX + 2)], |_| count += 1);
        lines.finish(|line| last = line.to_owned());
        assert_eq!((count, last.as_str()), (LINES_MAX, "… and 2 more lines"));
    }
}
