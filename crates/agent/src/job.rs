//! Ends the processes of a lease: SIGTERM, then SIGKILL, then a check that none is left.

use super::failure::Failure;
use std::time::{Duration, Instant};

/// How long processes may take to exit after SIGKILL. A process can hang in the kernel for longer.
const KILL_WAIT: Duration = Duration::from_secs(10);
const POLL_FIRST: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(200);

/// A set of processes that can be counted and signalled.
pub(crate) trait Job {
    /// The live processes.
    fn members(&self) -> Result<Vec<i32>, Failure>;
    fn terminate(&self, members: &[i32]) -> Result<(), Failure>;
    fn kill(&self, members: &[i32]) -> Result<(), Failure>;
}

/// Returns when no process is left.
pub(crate) async fn end(job: &impl Job, term_wait: Duration) -> Result<(), Failure> {
    let members = job.members()?;
    if members.is_empty() {
        return Ok(());
    }
    if !term_wait.is_zero() {
        job.terminate(&members)?;
        if wait_for_exit(job, term_wait, |_| Ok(())).await?.is_empty() {
            return Ok(());
        }
    }
    // Repeated, because a process that forks while it is killed leaves a child.
    let left = wait_for_exit(job, KILL_WAIT, |members| job.kill(members)).await?;
    if left.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = left.iter().take(8).map(i32::to_string).collect();
    Err(Failure(format!("{} processes did not exit: {}", left.len(), shown.join(", "))))
}

/// Waits until no process is left, or for the given time; returns those that are left.
async fn wait_for_exit(
    job: &impl Job,
    wait: Duration,
    meanwhile: impl Fn(&[i32]) -> Result<(), Failure>,
) -> Result<Vec<i32>, Failure> {
    let deadline = Instant::now() + wait;
    let mut poll_after = POLL_FIRST;
    loop {
        let members = job.members()?;
        if members.is_empty() || Instant::now() >= deadline {
            return Ok(members);
        }
        meanwhile(&members)?;
        tokio::time::sleep(poll_after).await;
        poll_after = (poll_after * 2).min(POLL_MAX);
    }
}
