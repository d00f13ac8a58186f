//! Signals: the first SIGINT or SIGTERM requests a clean shutdown; the second one ends the process at once.

use crate::problem::Problem;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the flag that the signals set.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>, Problem> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal must not see the flag that it sets itself.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Problem::refused("signals", format!("cannot register signal handlers: {error}")))?;
    }
    Ok(stop)
}
