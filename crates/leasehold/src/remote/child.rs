//! A command in a process group of its own, so that signals reach all its processes.

use super::foreground::Foreground;
use crate::problem::Problem;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::signal::unix::{Signal as Arriving, SignalKind, signal};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(u8),
    Signalled(u8),
}

impl Ended {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(number)) => Self::Signalled(u8::try_from(number).unwrap_or(u8::MAX)),
            (None, None) => Self::Exited(u8::MAX),
        }
    }

    /// The exit status as a shell reports it.
    pub(super) fn status(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(number) => number.saturating_add(128),
        }
    }
}

/// A running command. Dropping it kills the rest of its process group: nothing may run without its lease.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Pid,
    forwarded: [(Arriving, Signal); 3],
    foreground: Option<Foreground>,
}

impl Child {
    pub(super) fn start(command: &[OsString], variables: &[(&'static str, String)]) -> Result<Self, Problem> {
        let (program, arguments) = command.split_first().expect("clap requires a command");
        let listen = |kind, signal_sent| {
            let arriving = signal(kind).map_err(|error| {
                Problem::refused("no_signals", format!("signal handlers cannot be installed: {error}"))
            })?;
            Ok::<_, Problem>((arriving, signal_sent))
        };
        // Installed before the command starts: a signal in between would end this process and not the command.
        let forwarded = [
            listen(SignalKind::interrupt(), Signal::INT)?,
            listen(SignalKind::terminate(), Signal::TERM)?,
            listen(SignalKind::hangup(), Signal::HUP)?,
        ];
        let mut process = Command::new(program);
        // The job may be someone else's program; it gets the lease and not the right to act for its holder.
        process.args(arguments).process_group(0).env_remove("LEASEHOLD_TOKEN");
        process.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let process = process.spawn().map_err(|error| {
            let program = program.to_string_lossy();
            Problem::refused("command_failed", format!("{program} cannot be started: {error}"))
                .advice("check that the program exists and is executable")
        })?;
        let id = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = id.expect("a child that was not waited for has an id");
        Ok(Self { process, group, forwarded, foreground: Foreground::hand_to(group) })
    }

    /// Waits for the command to end, and forwards signals to it. Cancel safe.
    pub(super) async fn ended(&mut self) -> Result<Ended, Problem> {
        loop {
            let [interrupt, terminate, hangup] = &mut self.forwarded;
            let signal = tokio::select! {
                status = self.process.wait() => {
                    return status.map(Ended::of).map_err(|error| {
                        Problem::refused("command_failed", format!("waiting for the command failed: {error}"))
                    });
                }
                _ = interrupt.0.recv() => interrupt.1,
                _ = terminate.0.recv() => terminate.1,
                _ = hangup.0.recv() => hangup.1,
                suspended = Foreground::stopped(self.foreground.as_ref(), self.group) => {
                    if suspended {
                        crate::term::say("leasehold: a command that holds a lease cannot be suspended; it continues\n");
                    }
                    Signal::CONT
                }
            };
            self.signal(signal);
        }
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        // A stopped process does not handle SIGTERM.
        self.signal(Signal::CONT);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // The group may have ended already.
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
