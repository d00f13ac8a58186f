//! Ctrl-C while a command waits.

use crate::problem::Problem;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the beginning to the end, so that no signal is lost between two waits.
pub(super) struct Interrupt(Signal);

impl Interrupt {
    pub(super) fn listen() -> Result<Self, Problem> {
        let signal = signal(SignalKind::interrupt());
        let refused = |error| Problem::refused("no_signals", format!("signal handlers cannot be installed: {error}"));
        signal.map(Self).map_err(refused)
    }

    /// Waits for Ctrl-C, also one that came since the last wait.
    pub(super) async fn wait(&mut self) {
        self.0.recv().await;
    }
}
