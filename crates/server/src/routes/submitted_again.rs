//! Submitting an allocation again under its idempotency key: one that had to wait is answered as it is now.

use crate::access::Caller;
use crate::app::App;
use crate::books;
use crate::show_allocations::Ended;
use leasehold_api::Problem;
use leasehold_cell::Sealed;
use leasehold_model::{AllocationNo, Body};
use std::sync::Arc;

/// How the allocations of repeated submissions ended, for those that have.
pub(super) async fn look_up<'a>(
    app: &Arc<App>,
    caller: &Caller,
    answered: impl Iterator<Item = &'a Sealed>,
) -> Result<Ended, Problem> {
    let again = answered.filter(|sealed| sealed.repeated).map(Sealed::first);
    let again = again.filter(|record| matches!(record.body, Body::AllocationSubmitted(_)));
    let numbers: Vec<AllocationNo> = again.map(|record| AllocationNo(record.sequence)).collect();
    if numbers.is_empty() {
        return Ok(Ended::new());
    }
    let over: Vec<AllocationNo> =
        app.now.read(|state| numbers.into_iter().filter(|number| state.allocation(*number).is_none()).collect());
    if over.is_empty() {
        return Ok(Ended::new());
    }
    books::look_up(app, caller, move |_, books| {
        let mut ended = Ended::new();
        for number in over {
            ended.extend(books.allocation(number)?.map(|story| (number, story.outline.state)));
        }
        Ok(ended)
    })
    .await
}
