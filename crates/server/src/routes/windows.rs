//! Maintenance windows of nodes.

use super::page::page;
use super::tenancy::changed;
use crate::context::{Answer, Context, json};
use crate::names;
use leasehold_api::{NewWindow, Problem, When, Window, WindowList, WindowPut};
use leasehold_engine::{Command, State, command};
use leasehold_model::WindowNo;

fn show(state: &State, window: &leasehold_engine::Window) -> Window {
    let nodes = || window.nodes.iter().filter_map(|node| state.node(*node));
    Window {
        id: window.number.0,
        nodes: nodes().map(|node| node.name.as_str().to_owned()).collect(),
        from: When(window.from),
        until: When(window.until),
        reason: window.reason.as_ref().map(|reason| reason.as_str().to_owned()),
        begun: window.is_open,
        leases: nodes().map(|node| state.leases_on(node.number).len() as u64).sum(),
    }
}

pub(super) async fn list_windows(context: Context) -> Answer {
    let listed = context
        .app
        .now
        .read(|state| page(&context, state.windows().map(|window| (u64::from(window.number.0), show(state, window)))));
    let (windows, next_cursor) = listed?;
    json(200, &WindowList { windows, next_cursor })
}

pub(super) async fn reserve_nodes(context: Context) -> Answer {
    let new: NewWindow = context.body()?;
    let nodes = context.app.now.read(|state| {
        new.nodes.iter().map(|text| names::node_for_request(state, text)).collect::<Result<Vec<_>, Problem>>()
    })?;
    let reason = names::optional_text("reason", new.reason.as_deref())?;
    let (from, until) = (new.from.map(|When(from)| from), new.until.0);
    let sealed = context.seal(Command::ReserveNodes(command::ReserveNodes { nodes, from, until, reason })).await?;
    let made = sealed.records.first().map(|record| &record.body);
    let Some(leasehold_model::Body::WindowPut(put)) = made else {
        unreachable!("the first record is that of the window")
    };
    let window = context.app.now.read(|state| state.window(put.window).map(|window| show(state, window)));
    json(201, &WindowPut { sequence: sealed.sequence(), window })
}

pub(super) async fn unreserve_nodes(context: Context) -> Answer {
    let text = context.subject().to_owned();
    let digits = text.strip_prefix("window-").unwrap_or(&text);
    let window = digits.parse().ok().map(WindowNo);
    let window = window.ok_or_else(|| names::not_found("window", &text, std::iter::empty()));
    changed(&context, window.map(Command::UnreserveNodes)).await
}
