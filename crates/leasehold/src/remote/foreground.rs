//! The foreground of the terminal: a process group can only read from the terminal while it is in the foreground.

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, WaitId, WaitIdOptions, getpgrp, waitid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::io::{IsTerminal, stdin};
use std::time::Duration;

/// How often to check whether Ctrl-Z has stopped the command.
const EVERY: Duration = Duration::from_millis(200);

/// Keeps the command's group in the foreground; dropping it restores our own.
pub(super) struct Foreground {
    ours: Pid,
}

impl Foreground {
    /// Puts a group in the foreground, if there is a terminal and we are in its foreground.
    pub(super) fn hand_to(group: Pid) -> Option<Self> {
        let ours = getpgrp();
        if !stdin().is_terminal() || tcgetpgrp(stdin()).ok()? != ours {
            return None;
        }
        tcsetpgrp(stdin(), group).ok()?;
        Some(Self { ours })
    }

    /// Resolves when the command was stopped, with whether the user did it: the command is also stopped if it reads before
    /// it is in the foreground. Never resolves without a terminal.
    pub(super) async fn stopped(this: Option<&Self>, process: Pid) -> bool {
        if this.is_none() {
            return std::future::pending().await;
        }
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            tokio::time::sleep(EVERY).await;
            if let Ok(Some(status)) = waitid(WaitId::Pid(process), options)
                && status.stopped()
            {
                return status.stopping_signal() != Some(rustix::process::Signal::TTIN.as_raw());
            }
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // A background process that changes the foreground is stopped, unless it blocks this signal.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        if blocked.thread_block().is_ok() {
            // The terminal may be gone.
            let _ = tcsetpgrp(stdin(), self.ours);
            let _ = blocked.thread_unblock();
        }
    }
}
