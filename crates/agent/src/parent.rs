//! An agent that a demo or a test started ends with it, however that ends.

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Has the system send SIGTERM once the parent is gone. Answers whether there is still a parent to end with: it may have
/// ended before the system was told.
pub(crate) fn end_with(parent: u32) -> bool {
    // Where the system cannot do it, whoever started the agent ends it.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let now = getppid().map(|pid| pid.as_raw_nonzero().get());
    now == i32::try_from(parent).ok()
}
