//! The daemon's events about the node: each that may change what is to be done asks for a heartbeat at once. Without
//! them the heartbeats alone find out, later.

use leasehold_client::{Client, EventFilter};
use std::time::Duration;

/// Before a stream that the daemon would not open is asked for again.
const PAUSE: Duration = Duration::from_secs(60);

/// What happens all the time, or was said by the agent itself, and asks nothing of it.
fn is_idle(kind: &str) -> bool {
    matches!(
        kind,
        "lease.granted" | "lease.renewed" | "lease.activity" | "lease.denied" | "node.condition" | "node.put"
    )
}

/// Calls `wake` with the sequence of each event, for as long as it says that someone listens.
pub(crate) async fn watch(client: Client, node: String, mut after: u64, wake: impl Fn(Option<u64>) -> bool) {
    loop {
        let filter = EventFilter { after: Some(after), node: Some(node.clone()), ..EventFilter::default() };
        let refused = match client.events(&filter) {
            Err(error) => error,
            Ok(events) => {
                let mut events = events.on_break(|error, _| tracing::debug!("the event stream broke off: {error}"));
                let refused = loop {
                    match events.next().await {
                        Ok(event) if is_idle(&event.kind) => {}
                        Ok(event) if wake(event.sequence) => {}
                        Ok(_) => return,
                        Err(error) => break error,
                    }
                };
                after = events.last_sequence().unwrap_or(after);
                refused
            }
        };
        tracing::warn!("no events from the daemon, heartbeats go on: {refused}");
        tokio::time::sleep(PAUSE).await;
    }
}
