//! Records that a node has been empty for as long as `engine.idle_node_after` says, so that it can be powered down or
//! sold. The books know since when a node is empty; the engine records each time once.

use crate::app::App;
use leasehold_engine::Command;
use leasehold_engine::command::NoteEmptyNode;
use leasehold_model::{Instant, Span};
use std::sync::Weak;
use std::time::Duration;

/// How often nodes are examined, unless they are to be recorded sooner.
const EVERY_MAX: Duration = Duration::from_secs(60);
const EVERY_MIN: Duration = Duration::from_millis(10);

/// Runs until the daemon ends.
pub(crate) async fn watch(app: Weak<App>, after: Span) {
    let every = Duration::from_nanos(after.0).clamp(EVERY_MIN, EVERY_MAX);
    loop {
        tokio::time::sleep(every).await;
        let Some(app) = app.upgrade() else { return };
        // Recording waits for the disk.
        let noted = tokio::task::spawn_blocking(move || note(&app, after)).await;
        if let Err(error) = noted {
            tracing::error!(%error, "the search for empty nodes failed");
        }
    }
}

fn note(app: &App, after: Span) {
    let since = Instant(app.time().0.saturating_sub(after.0));
    // What the books have not processed yet is found the next time.
    let Ok(found) = app.books.with_books(|books| Ok(books.nodes_empty_since(since))) else { return };
    for (node, since) in found {
        // It is refused if it was recorded before, or if the node is in use by now.
        let _ = app.cell.operate(Command::NoteEmptyNode(NoteEmptyNode { node, since }));
    }
}
