//! `leasehold node reserve`, `node windows` and `node unreserve`.

use super::details::or_dash;
use super::failure::Failed;
use super::select::placed;
use super::session::Session;
use crate::cli::window::{NodeReserveArgs, NodeUnreserveArgs};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{NewWindow, NodeWindow, Window, WindowPut};

pub(super) async fn reserve(session: &Session, args: NodeReserveArgs) -> Result<(), Failed> {
    let nodes = selected(session, &args).await?;
    let from = session.times.future("--from", args.from.as_ref())?;
    let until = session.times.future("--until", Some(&args.until))?.expect("it was given");
    let new = NewWindow { nodes, from, until, reason: args.reason };
    session.change(session.client.reserve_nodes(&new), &args.change, reserved).await
}

pub(super) async fn unreserve(session: &Session, args: NodeUnreserveArgs) -> Result<(), Failed> {
    let call = session.client.unreserve_nodes(&args.window);
    session.change(call, &args.change, |_| format!("maintenance window {} was cancelled\n", args.window)).await
}

pub(super) async fn list(session: &Session) -> Result<(), Failed> {
    session.list(session.client.list_windows(), table).await
}

/// The nodes that were named, or those that the options select.
async fn selected(session: &Session, args: &NodeReserveArgs) -> Result<Vec<String>, Failed> {
    if !args.nodes.is_empty() {
        return Ok(args.nodes.clone());
    }
    let nodes: Vec<String> = placed(session, &args.place).await?.into_iter().map(|node| node.name).collect();
    if nodes.is_empty() {
        return Err(Problem::refused("no_nodes", "no node matches the selection").into());
    }
    Ok(nodes)
}

fn reserved(put: &WindowPut) -> String {
    let Some(window) = &put.window else { return "the maintenance window has ended\n".to_owned() };
    let (from, until) = (time_format::to_the_second(window.from), time_format::to_the_second(window.until));
    let holders = match window.leases {
        0 => String::new(),
        1 => "; the holder of 1 lease was told".to_owned(),
        leases => format!("; the holders of {leases} leases were told"),
    };
    let count = window.nodes.len();
    let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
    format!("maintenance window {}: {nodes} from {from} until {until}{holders}\n", window.id)
}

/// The window of a node, for its details.
pub(super) fn in_words(window: &NodeWindow) -> String {
    let (from, until) = (time_format::to_the_second(window.from), time_format::to_the_second(window.until));
    let reason = window.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("window {}, from {from} until {until}{reason}", window.id)
}

fn table(windows: &[Window]) -> Table {
    let mut table = Table::new(&[
        ("window", Align::Left),
        ("state", Align::Left),
        ("from", Align::Left),
        ("until", Align::Left),
        ("leases", Align::Right),
        ("nodes", Align::Left),
        ("reason", Align::Left),
    ]);
    for window in windows {
        let (state, style) = if window.begun { ("begun", Style::Yellow) } else { ("planned", Style::Plain) };
        let plain = |text: String| (text, Style::Plain);
        table.styled(vec![
            (window.id.to_string(), Style::Bold),
            (state.to_owned(), style),
            plain(time_format::to_the_second(window.from)),
            plain(time_format::to_the_second(window.until)),
            plain(window.leases.to_string()),
            plain(window.nodes.join(",")),
            plain(or_dash(window.reason.clone())),
        ]);
    }
    table
}
