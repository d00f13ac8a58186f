//! `leasehold node …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::figures::amounts;
use super::pairs::by_key;
use super::patch::{patch, something};
use super::select::{self, Change, Changed, apply, keyed_for};
use super::session::Session;
use super::tenancy::{gone, made};
use super::units::Classes;
use super::watch::watch;
use crate::cli::capacity::{NodeCommand, NodeCreateArgs, NodeField, NodeListArgs, NodeSetArgs};
use crate::cli::remote::ChangeOneArgs;
use crate::cli::select::{NodesArgs, YesArgs};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{
    CustodyState, FailedStart, Level, LoseNode, NewNode, Node, NodeCapacity, NodeChange, NodeList, NodePut, Quantity,
    ReportWipe,
};
use leasehold_client::{Call, Json};

pub(super) async fn run(session: &Session, command: NodeCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        NodeCommand::List(args) => list(session, &args).await,
        NodeCommand::Show(one) => show(session, client.show_node(&one.name)).await,
        NodeCommand::Explain(one) => {
            let classes = if session.json { Classes::none() } else { Classes::load(client).await? };
            session
                .show(client.explain_node(&one.name), |explanation| {
                    super::explain::node(session, explanation, &classes)
                })
                .await
        }
        NodeCommand::Create(args) => {
            let call = client.create_node(&new(&args)?);
            session.change(call, &args.change, |put| made("node", &put.node.name, put.node.id)).await
        }
        NodeCommand::Set(args) => {
            let call = client.change_node(&args.node, &changed(&args)?);
            session.change(call, &args.change, |put| is("changed", put)).await
        }
        NodeCommand::Delete(args) => {
            let call = client.delete_node(&args.name);
            session.change(call, &args.change, |_| gone("node", &args.name)).await
        }
        NodeCommand::Drain(args) => {
            let reason = args.reason.body();
            change_some(session, &args, true, |name| client.drain_node(name, &reason)).await
        }
        NodeCommand::Resume(args) => {
            let reason = args.reason.body();
            change_some(session, &args, false, |name| client.resume_node(name, &reason)).await
        }
        NodeCommand::Reserve(args) => super::window::reserve(session, *args).await,
        NodeCommand::Windows => super::window::list(session).await,
        NodeCommand::Unreserve(args) => super::window::unreserve(session, args).await,
        NodeCommand::Lose(args) => {
            let last_seen = session.times.past("--last-seen", args.last_seen.as_ref())?;
            let call = client.lose_node(&args.name, &LoseNode { last_seen });
            session.change(call, &args.change, |put| is("declared lost", put)).await
        }
        NodeCommand::FailedStart(args) => {
            let failed = FailedStart { allocation: args.allocation, generation: None };
            let call = client.report_failed_start(&args.name, &failed);
            session.change(call, &args.change, |put| format!("{} has failed\n", put.id)).await
        }
        NodeCommand::Return(args) => {
            session.change(client.return_node(&args.name), &args.change, |put| is("no longer lost", put)).await
        }
        NodeCommand::Wiped(args) => report_wipe(session, &args, true).await,
        NodeCommand::WipeFailed(args) => report_wipe(session, &args, false).await,
        NodeCommand::ClearQuarantine(args) => {
            session
                .change(client.clear_quarantine(&args.name), &args.change, |put| is("available to everyone", put))
                .await
        }
        NodeCommand::DetachAgent(args) => {
            let call = client.detach_agent(&args.name);
            session.change(call, &args.change, |done| format!("the agent of node {} was detached\n", done.node)).await
        }
    }
}

/// Drains or resumes nodes: one by its name, or several. Without `--state`, those are selected that are not so yet.
async fn change_some(
    session: &Session,
    args: &NodesArgs,
    drain: bool,
    call: impl Fn(&str) -> Call<Json<NodePut>>,
) -> Result<(), Failed> {
    let done = if drain { "drained" } else { "no longer drained" };
    if let [name] = &args.names[..] {
        return session.change(call(name), &args.change, |put| is(done, put)).await;
    }
    let change = Change { noun: "node", done: if drain { "drained" } else { "resumed" }, also: "" };
    let make = async |name: &str, number: &str| {
        let put = keyed_for(call(name), &args.change, number, true).await?;
        Ok(Changed { sequence: put.sequence, names: vec![put.node.name] })
    };
    if !args.names.is_empty() {
        let at_once = YesArgs { yes: true };
        let table = |_: &[String]| Table::new(&[]);
        return apply(session, &change, &args.names, at_once, Clone::clone, table, async |name| make(name, name).await)
            .await;
    }
    let mut chosen = select::nodes(session, args).await?;
    chosen.retain(|node| args.state.is_some() || node.drained != drain);
    let classes = if session.json { Classes::none() } else { Classes::load(&session.client).await? };
    let table = |chosen: &[Node]| nodes(chosen, &classes);
    let make = async |node: &Node| make(&node.name, &node.id.to_string()).await;
    apply(session, &change, &chosen, args.yes, |node| node.name.clone(), table, make).await
}

async fn report_wipe(session: &Session, args: &ChangeOneArgs, clean: bool) -> Result<(), Failed> {
    let call = session.client.report_wipe(&args.name, &ReportWipe { clean, generation: None });
    session.change(call, &args.change, |put| is(&super::claim::in_words(&put.node.custody), put)).await
}

fn is(what: &str, put: &NodePut) -> String {
    format!("node {} is {what}\n", put.node.name)
}

fn new(args: &NodeCreateArgs) -> Result<NewNode, Problem> {
    Ok(NewNode {
        name: args.name.clone(),
        pool: args.pool.clone(),
        rack: args.rack.clone(),
        zone: args.zone.clone(),
        labels: by_key("--label", &args.labels, String::clone)?,
        teardown: args.teardown,
        capacity: by_key("--class", &args.capacity, |text| Quantity(text.clone()))?,
    })
}

fn changed(args: &NodeSetArgs) -> Result<NodeChange, Problem> {
    let labels = by_key("--label", &args.labels, String::clone)?;
    let labels = patch((!labels.is_empty()).then_some(labels), &args.clear, NodeField::Labels)?;
    let capacity = by_key("--class", &args.capacity, |text| Quantity(text.clone()))?;
    something(NodeChange {
        name: args.name.clone(),
        pool: args.pool.clone(),
        rack: patch(args.rack.clone(), &args.clear, NodeField::Rack)?,
        zone: patch(args.zone.clone(), &args.clear, NodeField::Zone)?,
        // The labels replace all earlier ones; clearing them sets an empty list.
        labels: labels.nested().map(Option::unwrap_or_default),
        teardown: args.teardown,
        capacity: (!capacity.is_empty()).then_some(capacity),
    })
}

async fn list(session: &Session, args: &NodeListArgs) -> Result<(), Failed> {
    let call: Call<Json<NodeList>> =
        session.client.list_nodes().maybe("pool", args.pool.as_ref()).maybe("empty_for", args.empty_for);
    if session.json && !args.watch.watch {
        return session.list(call, |_| unreachable!("JSON is asked for")).await;
    }
    if args.empty_for.is_some() && !args.watch.watch {
        return session.list(call, empty).await;
    }
    let classes = Classes::load(&session.client).await?;
    if args.watch.watch {
        let call = call.query("limit", leasehold_api::limits::PAGE_MAX);
        return watch(session, async || Ok(nodes(&call.clone().all().await?, &classes))).await;
    }
    session.list(call, |items| nodes(items, &classes)).await
}

/// Empty nodes, the longest empty first.
fn empty(nodes: &[Node]) -> Table {
    let headings = [
        ("node", Align::Left),
        ("pool", Align::Left),
        ("state", Align::Left),
        ("empty since", Align::Left),
        ("for", Align::Right),
        ("could have earned", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["pool", "state", "empty since"]);
    let now = time_format::now();
    let mut found: Vec<_> = nodes.iter().filter_map(|node| Some((node, node.empty.as_ref()?))).collect();
    found.sort_by_key(|(node, empty)| (empty.since.0, node.id));
    for (node, empty) in found {
        let (state, style) = state(node);
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            (node.name.clone(), Style::Bold),
            plain(node.pool.clone()),
            (state, style),
            plain(time_format::to_the_second(empty.since)),
            plain(time_format::span(now.since(empty.since.0))),
            plain(amounts(&empty.could_have_earned)),
        ]);
    }
    table
}

/// The state of a node, and its problems.
fn state(node: &Node) -> (String, Style) {
    let mut words = Vec::new();
    let mut style = Style::Green;
    if node.lost {
        words.push("lost");
        style = Style::Red;
    }
    if node.drained {
        words.push("drained");
        style = if node.lost { Style::Red } else { Style::Yellow };
    }
    match node.custody.state {
        CustodyState::Open => {}
        CustodyState::Claimed => words.push("claimed"),
        CustodyState::Wiping => {
            words.push("being wiped");
            style = if node.lost { Style::Red } else { Style::Yellow };
        }
        CustodyState::Quarantined => {
            words.push("quarantined");
            style = Style::Red;
        }
    }
    if words.is_empty() {
        words.push("ready");
    }
    let condition = &node.condition;
    let troubled = [(condition.load, "load"), (condition.errors, "errors")];
    words.extend(troubled.into_iter().filter(|(level, _)| *level != Level::Normal).map(|(_, what)| what));
    if condition.throttled {
        words.push("throttled");
    }
    let hot = format!("heat {}", node.heat);
    if node.heat > 0 {
        words.push(&hot);
    }
    if words.len() > 1 && style == Style::Green {
        style = Style::Yellow;
    }
    (words.join(", "), style)
}

/// A part of a node's capacity: its name, and its size in quanta.
type Part = (&'static str, fn(&NodeCapacity) -> u64);

const PARTS: [Part; 6] = [
    ("held", |c| c.held),
    ("tearing down", |c| c.tearing_down),
    ("reserved", |c| c.reserved),
    ("fenced", |c| c.fenced),
    ("offline", |c| c.offline),
    ("idle", |c| c.idle),
];

fn nodes(nodes: &[Node], classes: &Classes) -> Table {
    let mut headings = vec![
        ("node", Align::Left),
        ("pool", Align::Left),
        ("state", Align::Left),
        ("class", Align::Left),
        ("capacity", Align::Right),
    ];
    headings.extend(PARTS.iter().map(|(name, _)| (*name, Align::Right)));
    let mut table = Table::new(&headings).shrink_first(&[
        "reserved",
        "pool",
        "tearing down",
        "offline",
        "fenced",
        "class",
        "state",
    ]);
    for node in nodes {
        let (state, style) = state(node);
        let mut first = vec![(node.name.clone(), Style::Bold), (node.pool.clone(), Style::Plain), (state, style)];
        if node.capacity.is_empty() {
            first.resize_with(headings.len(), || ("-".to_owned(), Style::Dim));
            table.styled(first);
            continue;
        }
        for capacity in &node.capacity {
            // The columns of the node itself are filled only in its first row.
            let mut row = std::mem::replace(&mut first, vec![(String::new(), Style::Plain); 3]);
            row.push((capacity.class.clone(), Style::Plain));
            row.push((classes.with_unit(&capacity.class, &capacity.quantity), Style::Plain));
            row.extend(PARTS.iter().map(|(name, quanta)| {
                let quanta = quanta(capacity);
                let style = match (*name, quanta) {
                    (_, 0) => Style::Dim,
                    ("fenced", _) => Style::Red,
                    _ => Style::Plain,
                };
                (classes.display(&capacity.class, quanta), style)
            }));
            table.styled(row);
        }
    }
    table
}

async fn show(session: &Session, call: Call<Json<Node>>) -> Result<(), Failed> {
    if session.json {
        return session.show(call, |_| String::new()).await;
    }
    let classes = Classes::load(&session.client).await?;
    session.show(call, |node| one(session, node, &classes)).await
}

fn one(session: &Session, node: &Node, classes: &Classes) -> String {
    let labels: Vec<String> = node.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let details = Details::new()
        .add("node", &node.name)
        .add("number", node.id)
        .add("pool", &node.pool)
        .add("state", state(node).0)
        .maybe("drained because", node.drain_reason.as_ref())
        .maybe("custody", (node.custody.state != CustodyState::Open).then(|| super::claim::in_words(&node.custody)))
        .maybe("maintenance", node.window.as_ref().map(super::window::in_words))
        .maybe("rack", node.rack.as_ref())
        .maybe("zone", node.zone.as_ref())
        .maybe("labels", (!labels.is_empty()).then(|| labels.join(", ")))
        .add("teardown", word(node.teardown))
        .add("agent", or_dash(node.agent_generation.map(|generation| format!("generation {generation}"))))
        .add("load", word(node.condition.load))
        .add("errors", word(node.condition.errors))
        .add("throttled", if node.condition.throttled { "yes" } else { "no" })
        .add("heat", node.heat);
    let mut headings = vec![("class", Align::Left), ("capacity", Align::Right)];
    headings.extend(PARTS.iter().map(|(name, _)| (*name, Align::Right)));
    let mut table = Table::new(&headings);
    for capacity in &node.capacity {
        let mut row = vec![capacity.class.clone(), classes.with_unit(&capacity.class, &capacity.quantity)];
        row.extend(PARTS.iter().map(|(_, quanta)| classes.display(&capacity.class, quanta(capacity))));
        table.row(row);
    }
    let capacity = if table.is_empty() { String::new() } else { session.lines(&table).join("\n") + "\n" };
    format!("{}\n{capacity}", details.text(session.paint)).trim_end().to_owned() + "\n"
}
