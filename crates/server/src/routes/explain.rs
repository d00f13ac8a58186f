//! Explanations of leases, allocations, nodes and recorded decisions.

use crate::books;
use crate::context::{Answer, Context, json};
use crate::explain::ending::LastAttempt;
use crate::explain::{Explainer, decision};
use crate::scans::explain;
use leasehold_api::codes;
use leasehold_model::LeaseNo;

pub(super) async fn explain_decision(context: Context) -> Answer {
    let sequence = context.subject().parse().map_err(|_| codes::BAD_QUERY.problem("The sequence must be a number."))?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let explanation =
        explain(&app, context.caller(), move |app| decision::explain_record(app, &caller, sequence, None)).await?;
    json(200, &explanation)
}

pub(super) async fn explain_lease(context: Context) -> Answer {
    let number: LeaseNo = super::leases::subject(&context)?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let found = super::leases::find(&context, number).await?;
    let found = found.ok_or_else(|| super::leases::no_lease(context.subject()))?;
    let allocation = found.0.allocation;
    let walltime = books::look_up(&app, context.caller(), move |_, books| {
        let story = allocation.map(|allocation| books.allocation(allocation)).transpose()?.flatten();
        Ok(story.and_then(|story| story.spec.walltime))
    });
    let walltime = walltime.await?;
    let explanation =
        explain(&app, context.caller(), move |app| decision::explain_lease(app, &caller, &found, walltime)).await?;
    json(200, &explanation)
}

pub(super) async fn explain_allocation(context: Context) -> Answer {
    let number = super::allocations::subject(&context)?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let sees = caller.clone();
    let last = books::look_up(&app, context.caller(), move |_, books| {
        let story = books.allocation(number)?;
        let story = story.filter(|story| sees.sees_project(story.outline.tenant, story.outline.project));
        story.map(|story| LastAttempt::of(books, story)).transpose()
    });
    let last = last.await?.ok_or_else(|| super::allocations::no_allocation(context.subject()))?;
    let explanation =
        explain(&app, context.caller(), move |app| decision::explain_allocation(app, &caller, &last)).await?;
    json(200, &explanation)
}

pub(super) async fn explain_node(context: Context) -> Answer {
    let number = super::capacity::find_node(&context)?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let explanation = explain(&app, context.caller(), move |app| {
        let explained = app.now.readers(|state| {
            let explainer = Explainer { app, state, caller: &caller, own: &[] };
            state.view(|view| explainer.node_explained(view, number, state.last_stamp()))
        });
        explained.ok_or_else(|| codes::NOT_FOUND.problem("There is no such node."))
    });
    json(200, &explanation.await?)
}
