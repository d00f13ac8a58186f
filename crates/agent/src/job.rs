//! Ending a lease's processes: asked first, then made to, then looked whether they are gone.

use super::failure::Failure;
use std::time::{Duration, Instant};

/// How long processes may take to vanish once they are killed. One that hangs in the kernel longer is not gone.
const KILL_WAIT: Duration = Duration::from_secs(10);
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_MAX: Duration = Duration::from_millis(200);

/// A set of processes that can be counted and signalled.
pub(crate) trait Job {
    /// Those that are alive.
    fn members(&self) -> Result<Vec<i32>, Failure>;
    fn ask(&self, members: &[i32]) -> Result<(), Failure>;
    fn kill(&self, members: &[i32]) -> Result<(), Failure>;
}

/// Returns once none is left.
pub(crate) async fn end(job: &impl Job, term_wait: Duration) -> Result<(), Failure> {
    let members = job.members()?;
    if members.is_empty() {
        return Ok(());
    }
    if !term_wait.is_zero() {
        job.ask(&members)?;
        if gone(job, term_wait, |_| Ok(())).await?.is_empty() {
            return Ok(());
        }
    }
    // Again and again: one that forks while it is being killed leaves a child behind.
    let left = gone(job, KILL_WAIT, |members| job.kill(members)).await?;
    if left.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = left.iter().take(8).map(i32::to_string).collect();
    Err(Failure(format!("{} processes do not end: {}", left.len(), shown.join(", "))))
}

/// Waits until none is left or the time is over; returns those that are.
async fn gone(
    job: &impl Job,
    wait: Duration,
    meanwhile: impl Fn(&[i32]) -> Result<(), Failure>,
) -> Result<Vec<i32>, Failure> {
    let deadline = Instant::now() + wait;
    let mut look_after = LOOK_FIRST;
    loop {
        let members = job.members()?;
        if members.is_empty() || Instant::now() >= deadline {
            return Ok(members);
        }
        meanwhile(&members)?;
        tokio::time::sleep(look_after).await;
        look_after = (look_after * 2).min(LOOK_MAX);
    }
}
