//! Ends the agent together with the demo or test that started it.

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Asks the kernel to send SIGTERM when the parent exits. Returns false if the parent has exited already.
pub(crate) fn end_with(parent: u32) -> bool {
    // If this is not supported, the parent has to end the agent.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let now = getppid().map(|pid| pid.as_raw_nonzero().get());
    now == i32::try_from(parent).ok()
}
