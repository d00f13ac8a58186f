//! Releasing a lease that was released before: the answer is that of the first release (SEMANTICS 11).

use crate::access::Caller;
use crate::app::App;
use crate::books;
use leasehold_api::{LeaseState, Problem, Released, When};
use leasehold_books::{End, Row};
use leasehold_model::LeaseNo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a release that was refused with this code may be a repetition. The engine remembers only the last leases that
/// were closed.
pub(super) fn may_be_repeated(code: &str) -> bool {
    ["lease_released", "lease_not_found"].contains(&code)
}

/// The answers to the first releases of these leases, for those that the caller has released or could have released.
pub(super) async fn look_up(
    app: &Arc<App>,
    caller: &Caller,
    leases: Vec<LeaseNo>,
) -> Result<BTreeMap<LeaseNo, Released>, Problem> {
    if leases.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sees = caller.clone();
    books::look_up(app, caller, move |app, books| {
        let mut answers = BTreeMap::new();
        for lease in leases {
            let found = books.lease(lease)?.filter(|(row, _)| sees.sees_lease(row.tenant, Some(row.project), row.node));
            answers.extend(found.and_then(|(row, _)| Some((lease, first_answer(app, &row)?))));
        }
        Ok(answers)
    })
    .await
}

fn first_answer(app: &App, row: &Row) -> Option<Released> {
    let ending =
        row.life.ending.filter(|_| matches!(row.end, End::Released | End::ReleasedEvicted | End::ReleasedByOwn))?;
    let ended_at = row.held.to;
    // Without an agent the lease is closed by the record that releases it.
    let at_once = row.life.closed_at == Some(ended_at);
    Some(Released {
        sequence: ending.sequence,
        id: row.lease.to_string(),
        uid: app.lease_uid(row.lease),
        state: if at_once { LeaseState::Closed } else { LeaseState::Releasing },
        ended_at: When(ended_at),
        activity_problem: None,
    })
}
