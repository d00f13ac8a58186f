//! Settles the losses of nodes: names what ended there after the node was last seen, so that it is billed to that
//! instant only (SEMANTICS 11, "Lost nodes"). The books know what ended; the engine records it.

use crate::app::App;
use leasehold_books::{EndedClaim, EndedOnNode, Row};
use leasehold_engine::command::{self, SettleLoss};
use leasehold_engine::{Command, OpenLoss};
use leasehold_model::body::BelongsTo;
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use std::sync::Weak;
use std::time::Duration;

/// How often open losses are looked for.
const EVERY: Duration = Duration::from_millis(500);

/// Runs until the daemon ends. A loss that is open when the daemon stops is settled after the next start.
pub(crate) async fn watch(app: Weak<App>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(app) = app.upgrade() else { return };
        // Recording waits for the disk.
        let settled = tokio::task::spawn_blocking(move || settle_all(&app)).await;
        if let Err(error) = settled {
            tracing::error!(%error, "settling the loss of a node failed");
        }
    }
}

fn settle_all(app: &App) {
    let open: Vec<(u64, OpenLoss)> = app.now.read(|state| state.open_losses().collect());
    for (loss, of) in open {
        // What is meant had ended before the loss, so that the books know all of it once they have processed the loss.
        if app.books.size() <= loss {
            continue;
        }
        while settle_some(app, loss, of) {}
    }
}

/// Names as much as fits one command. Returns whether something is left.
fn settle_some(app: &App, loss: u64, of: OpenLoss) -> bool {
    let found = app.books.with_books(|books| books.ended_after(loss, of.node, of.last_seen));
    let Ok(EndedOnNode { leases, claims }) = found else { return false };
    let complete = leases.len() <= LEASES_PER_RECORD_MAX && claims.len() <= LEASES_PER_RECORD_MAX;
    let settle = SettleLoss {
        loss,
        leases: leases.iter().take(LEASES_PER_RECORD_MAX).map(ended_lease).collect(),
        claims: claims.iter().take(LEASES_PER_RECORD_MAX).map(ended_claim).collect(),
        complete,
    };
    let named = (settle.leases.len(), settle.claims.len());
    match app.cell.operate(Command::SettleLoss(settle)) {
        Ok(_) if complete => {
            tracing::info!(
                loss,
                leases = named.0,
                claims = named.1,
                "what ended after a lost node was last seen is settled"
            );
            false
        }
        // The books must have processed this part before the next one is looked for.
        Ok(sealed) => wait_for(app, sealed.sequence()),
        Err(error) => {
            tracing::warn!(loss, ?error, "the loss of a node could not be settled; this is tried again");
            false
        }
    }
}

/// Waits until the books have processed a record. Returns whether they have.
fn wait_for(app: &App, sequence: u64) -> bool {
    (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        app.books.size() > sequence
    })
}

fn ended_lease(row: &Row) -> command::EndedLease {
    command::EndedLease {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        user: row.user,
        workload: row.workload.clone(),
        belongs_to: BelongsTo { allocation: row.allocation, correlation: row.correlation() },
    }
}

fn ended_claim(ended: &EndedClaim) -> command::EndedClaim {
    let EndedClaim { claim, tenant, project, user, .. } = *ended;
    command::EndedClaim { claim, tenant, project, user }
}
