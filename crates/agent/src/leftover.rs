//! Kills hooks that a crashed agent left running, so that they do not use the same devices as the hooks of this run.

use super::hook::{AGENT_VARIABLE, LEASE_VARIABLE};
use super::procfs::{self, Process};
use super::work::LeaseId;
use rustix::process::{Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// How long they may take to exit after SIGKILL.
const WAIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// Kills hooks for these leases that an earlier run of this agent started; returns their number.
pub(crate) fn end(instance: &str, leases: &BTreeSet<LeaseId>) -> io::Result<usize> {
    if leases.is_empty() {
        return Ok(0);
    }
    // A hook leads its own process group, and its environment names the agent and the lease.
    let leads = |process: &Process| process.is_alive && process.group == process.pid.as_raw_nonzero().get();
    let left: Vec<Process> = procfs::processes()?
        .into_iter()
        .filter(|process| leads(process) && is_hook(process, instance, leases))
        .collect();
    for process in &left {
        // The process may have exited already.
        let _ = kill_process_group(process.pid, Signal::KILL);
    }
    let deadline = Instant::now() + WAIT;
    for process in &left {
        let is_there = || {
            let now = procfs::process(process.pid)?;
            Ok::<_, io::Error>(now.is_some_and(|now| now.is_alive && now.began_ticks == process.began_ticks))
        };
        while is_there()? {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("process {} does not exit", process.pid.as_raw_nonzero())));
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(left.len())
}

/// A process whose environment cannot be read is not ours.
fn is_hook(process: &Process, instance: &str, leases: &BTreeSet<LeaseId>) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", process.pid.as_raw_nonzero())).unwrap_or_default();
    let value = |name: &str| {
        let mut entries = environment.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
        entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
    };
    value(AGENT_VARIABLE) == Some(instance)
        && value(LEASE_VARIABLE).and_then(LeaseId::new).is_some_and(|lease| leases.contains(&lease))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    fn hook(instance: &str, lease: &LeaseId) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").env(AGENT_VARIABLE, instance).env(LEASE_VARIABLE, lease.as_str()).process_group(0);
        command.spawn().expect("it runs")
    }

    #[test]
    fn only_hooks_of_this_agent_and_these_leases_are_ended() {
        let instance = format!("{:032x}", std::process::id());
        let lease = |digit: &str| LeaseId::new(&digit.repeat(32)).unwrap();
        let mut left = hook(&instance, &lease("a"));
        let mut others = [hook("someone else", &lease("a")), hook(&instance, &lease("b"))];
        assert_eq!(end(&instance, &BTreeSet::new()).unwrap(), 0);
        assert_eq!(end(&instance, &BTreeSet::from([lease("a")])).unwrap(), 1);
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        for other in &mut others {
            assert!(other.try_wait().unwrap().is_none(), "it lives");
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
}
