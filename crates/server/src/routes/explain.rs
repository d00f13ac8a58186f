//! Why: of a lease, an allocation, a node, or any sealed decision.

use crate::context::{Answer, Context, json};
use crate::explain::{Teller, decision};
use crate::history::scan;
use leasehold_api::codes;
use leasehold_model::LeaseNo;

pub(super) async fn explain_decision(context: Context) -> Answer {
    let sequence =
        context.subject().parse().map_err(|_| codes::BAD_QUERY.problem("A record is named by its sequence."))?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let told = scan(&app, move |app| decision::explain_record(app, &caller, sequence, None)).await?;
    json(200, &told)
}

pub(super) async fn explain_lease(context: Context) -> Answer {
    let number: LeaseNo = super::leases::subject(&context)?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let missing = super::leases::no_lease(context.subject());
    let told = scan(&app, move |app| decision::explain_lease(app, &caller, number, missing)).await?;
    json(200, &told)
}

pub(super) async fn explain_allocation(context: Context) -> Answer {
    let number = super::allocations::subject(&context)?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let subject = context.subject().to_owned();
    let missing = move || super::allocations::no_allocation(&subject);
    let told = scan(&app, move |app| decision::explain_allocation(app, &caller, number, missing)).await?;
    json(200, &told)
}

pub(super) async fn explain_node(context: Context) -> Answer {
    let number = super::capacity::find_node(&context)?;
    let (app, caller) = (&context.app, context.caller());
    let told = app.now.readers(|state| {
        let teller = Teller { app, state, caller, own: &[] };
        state.view(|view| teller.node_explained(view, number, state.last_stamp()))
    });
    json(200, &told.ok_or_else(|| codes::NOT_FOUND.problem("There is no such node here."))?)
}
