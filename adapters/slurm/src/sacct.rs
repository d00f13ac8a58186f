//! Asks sacct. Times are asked for and printed in UTC, the printed ones as seconds since 1970.

use crate::config::SlurmSection;
use crate::table::{self, Run};
use crate::{comment, window};
use leasehold_terminal::Problem;
use std::collections::BTreeMap;
use std::process::Stdio;
use tokio::process::Command;

/// Jobs that are named in one command.
pub(crate) const JOBS_MAX: usize = 500;
/// How much of what it says about a failure is repeated.
const SAID_CHARS_MAX: usize = 300;

/// Which runs are asked for.
pub(crate) enum Which<'a> {
    /// Those that ran, waited or ended after this second.
    Since(u64),
    /// All runs of these jobs, each with when it was first seen open.
    Jobs(&'a [window::Open]),
}

pub(crate) async fn runs(slurm: &SlurmSection, which: &Which<'_>) -> Result<Vec<Run>, Problem> {
    let mut options = vec![format!("--format={}", table::COLUMNS.join(","))];
    match which {
        Which::Since(second) => options.push(since(*second)),
        Which::Jobs(open) => {
            let jobs: Vec<&str> = open.iter().map(|open| open.job.as_str()).collect();
            options.push(format!("--jobs={}", jobs.join(",")));
            options.push(since(open.iter().map(|open| open.since).min().unwrap_or(0)));
        }
    }
    let text = ask(slurm, &options).await?;
    table::parse(&text, &slurm.cluster).map_err(|why| {
        Problem::refused("sacct_unreadable", why).advice("nothing was reported; check the version of Slurm")
    })
}

/// Correlation IDs by the index of the run.
pub(crate) async fn comments(slurm: &SlurmSection, second: u64) -> Result<BTreeMap<u64, String>, Problem> {
    let text = ask(slurm, &[format!("--format={}", comment::COLUMNS.join(",")), since(second)]).await?;
    comment::parse(&text).map_err(|why| Problem::refused("sacct_unreadable", why))
}

fn since(second: u64) -> String {
    let at = leasehold_model::Instant::from_secs(second).to_string();
    // 2026-11-18T08:00:00 without the zone, which sacct does not take.
    format!("--starttime={}", at.get(..19).unwrap_or(&at))
}

async fn ask(slurm: &SlurmSection, options: &[String]) -> Result<String, Problem> {
    let mut command = Command::new(&slurm.sacct);
    command
        .args(["--allocations", "--allusers", "--duplicates", "--parsable2"])
        .arg(format!("--clusters={}", slurm.cluster))
        .args(options)
        .env("TZ", "UTC")
        .env("SLURM_TIME_FORMAT", "%s")
        .env_remove("SACCT_FORMAT")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let failed = |what: String| {
        Problem::refused("sacct_failed", what).advice("check that slurmdbd runs and that this user may read all jobs")
    };
    let program = slurm.sacct.display();
    let output = match tokio::time::timeout(slurm.sacct_timeout.into(), command.output()).await {
        Err(_) => return Err(failed(format!("{program} did not finish within {}", slurm.sacct_timeout))),
        Ok(Err(error)) => return Err(failed(format!("{program} cannot be run: {error}"))),
        Ok(Ok(output)) => output,
    };
    let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(SAID_CHARS_MAX).collect();
    // Some versions print an error and still exit with 0.
    if !output.status.success() || said.contains("error:") {
        return Err(failed(format!("{program} failed ({}): {said}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(|_| failed(format!("{program} printed something that is not UTF-8")))
}
