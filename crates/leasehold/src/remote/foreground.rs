//! The terminal's foreground: a command in a group of its own can only be typed to if the terminal is handed to it.

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, WaitId, WaitIdOptions, getpgrp, waitid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::io::{IsTerminal, stdin};
use std::time::Duration;

/// How often a command on a terminal is looked at: whether Ctrl-Z has stopped it.
const EVERY: Duration = Duration::from_millis(200);

/// The terminal is the command's; dropping takes it back.
pub(super) struct Foreground {
    ours: Pid,
}

impl Foreground {
    /// Hands the terminal to a group, if there is one and it is ours.
    pub(super) fn hand_to(group: Pid) -> Option<Self> {
        let ours = getpgrp();
        if !stdin().is_terminal() || tcgetpgrp(stdin()).ok()? != ours {
            return None;
        }
        tcsetpgrp(stdin(), group).ok()?;
        Some(Self { ours })
    }

    /// Resolves when the command was stopped from its terminal, with whether somebody meant it: it is also stopped for
    /// reading before the terminal was its own. Never resolves without a terminal.
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
        // Whoever is not in the foreground is stopped for taking it, unless this signal is held back.
        let mut held_back = SigSet::empty();
        held_back.add(Signal::SIGTTOU);
        if held_back.thread_block().is_ok() {
            // A terminal that is gone cannot be taken back.
            let _ = tcsetpgrp(stdin(), self.ours);
            let _ = held_back.thread_unblock();
        }
    }
}
