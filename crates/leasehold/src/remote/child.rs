//! A command in a process group of its own, so that all of it can be reached.

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

    /// As a shell has it.
    pub(super) fn status(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(number) => number.saturating_add(128),
        }
    }
}

/// A running command. What is left of its group when it is dropped is killed: without its lease nothing may run on.
pub(super) struct Child {
    process: tokio::process::Child,
    group: Pid,
    forwarded: [(Arriving, Signal); 3],
    foreground: Option<Foreground>,
}

impl Child {
    pub(super) fn start(command: &[OsString], variables: &[(&'static str, String)]) -> Result<Self, Problem> {
        let (program, arguments) = command.split_first().expect("clap asks for a command");
        let listen = |kind, signal_sent| {
            let arriving = signal(kind)
                .map_err(|error| Problem::refused("no_signals", format!("signals cannot be listened to: {error}")))?;
            Ok::<_, Problem>((arriving, signal_sent))
        };
        // Before the command starts: a signal in between would end us and not it.
        let forwarded = [
            listen(SignalKind::interrupt(), Signal::INT)?,
            listen(SignalKind::terminate(), Signal::TERM)?,
            listen(SignalKind::hangup(), Signal::HUP)?,
        ];
        let mut process = Command::new(program);
        process.args(arguments).process_group(0);
        process.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let process = process.spawn().map_err(|error| {
            let program = program.to_string_lossy();
            Problem::refused("command_failed", format!("{program} cannot be run: {error}")).advice("check the command")
        })?;
        let id = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = id.expect("a child that was not waited for has an id");
        Ok(Self { process, group, forwarded, foreground: Foreground::hand_to(group) })
    }

    /// Waits for the end; what arrives meanwhile to stop us is passed on. May be given up and called again.
    pub(super) async fn ended(&mut self) -> Result<Ended, Problem> {
        loop {
            let [interrupt, terminate, hangup] = &mut self.forwarded;
            let signal = tokio::select! {
                status = self.process.wait() => {
                    return status.map(Ended::of).map_err(|error| {
                        Problem::refused("command_failed", format!("the command cannot be waited for: {error}"))
                    });
                }
                _ = interrupt.0.recv() => interrupt.1,
                _ = terminate.0.recv() => terminate.1,
                _ = hangup.0.recv() => hangup.1,
                meant = Foreground::stopped(self.foreground.as_ref(), self.group) => {
                    if meant {
                        crate::term::say("leasehold: a command that holds a lease cannot be suspended; it goes on\n");
                    }
                    Signal::CONT
                }
            };
            self.signal(signal);
        }
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        // One that is stopped hears nothing.
        self.signal(Signal::CONT);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
