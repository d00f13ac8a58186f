//! Follows the daemon's events about the node. An event that may create work triggers a heartbeat at once. Without
//! events, the regular heartbeats find the work later.

use leasehold_client::{Client, EventFilter};
use std::time::Duration;

/// The pause after the daemon refused the event stream.
const PAUSE: Duration = Duration::from_secs(60);

/// Kinds that are frequent, or caused by the agent itself, and create no work.
fn is_irrelevant(kind: &str) -> bool {
    matches!(
        kind,
        "lease.granted" | "lease.renewed" | "lease.activity" | "lease.denied" | "node.condition" | "node.put"
    )
}

/// The number of records that the journal has, if it does not have the last one that was seen.
fn size_of_restored_journal(refused: &leasehold_client::Error) -> Option<u64> {
    refused.problem().filter(|problem| problem.code == "beyond_end")?.members.get("size")?.as_u64()
}

/// Calls `wake` with the sequence of each event until it returns false.
pub(crate) async fn watch(client: Client, node: String, mut after: u64, wake: impl Fn(Option<u64>) -> bool) {
    loop {
        let filter = EventFilter { after: Some(after), node: Some(node.clone()), ..EventFilter::default() };
        let refused = match client.events(&filter) {
            Err(error) => error,
            Ok(events) => {
                let mut events = events.on_break(|error, _| tracing::debug!("the event stream ended: {error}"));
                let refused = loop {
                    match events.next().await {
                        Ok(event) if is_irrelevant(&event.kind) => {}
                        Ok(event) if wake(event.sequence) => {}
                        Ok(_) => return,
                        Err(error) => break error,
                    }
                };
                after = events.last_sequence().unwrap_or(after);
                if let Some(size) = size_of_restored_journal(&refused) {
                    tracing::warn!(
                        "the daemon's journal has only {size} records; reading events from there: {refused}"
                    );
                    after = size.saturating_sub(1);
                    if !wake(None) {
                        return;
                    }
                    continue;
                }
                refused
            }
        };
        tracing::warn!("cannot read events from the daemon; using heartbeats only: {refused}");
        tokio::time::sleep(PAUSE).await;
    }
}
