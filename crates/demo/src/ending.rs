//! How a demo ends early: SIGINT or SIGTERM ask for a clean stop; a second one is obeyed at once.

use crate::problem::Problem;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flag that the signals set.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>, Problem> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal only sets the flag, the second finds it set.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Problem::refused("signals", format!("signals cannot be caught: {error}")))?;
    }
    Ok(stop)
}
