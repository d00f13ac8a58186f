//! `leasehold claim …`.

use super::details::{or_dash, word};
use super::failure::Failed;
use super::session::Session;
use crate::cli::claim::ClaimCommand;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{ClaimHolder as Holder, ClaimPut, ClaimedNode, Custody, CustodyState, NewClaim, ReleaseNodes};

pub(super) async fn run(session: &Session, command: ClaimCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        ClaimCommand::List => session.list(client.list_claims(), claimed).await,
        ClaimCommand::Make(args) => {
            let until = session.times.future("--until", args.until.as_ref())?;
            let (nodes, tenant, project, user) = (args.nodes, args.tenant, args.project, args.user);
            let new = NewClaim { nodes, tenant, project, user, until };
            session.change(client.claim_nodes(&new), &args.change, node_states).await
        }
        ClaimCommand::Release(args) => {
            let release = ReleaseNodes { nodes: args.nodes };
            session.change(client.release_nodes(&release), &args.change, node_states).await
        }
    }
}

/// The new state of each node.
fn node_states(put: &ClaimPut) -> String {
    put.nodes.iter().map(|node| format!("node {} is {}\n", node.node, in_words(&node.custody))).collect()
}

/// The custody of a node in words.
pub(super) fn in_words(custody: &Custody) -> String {
    match custody.state {
        CustodyState::Open => "available to everyone".to_owned(),
        CustodyState::Claimed => match &custody.holder {
            Some(holder) => {
                let until = custody.until.map(|until| format!(", until about {}", time_format::to_the_second(until)));
                let Holder { user, tenant, project, .. } = holder;
                format!("claimed by {user} of {tenant} for {project}{}", until.unwrap_or_default())
            }
            None => "claimed".to_owned(),
        },
        CustodyState::Wiping => match custody.wipe_by {
            Some(by) => {
                format!(
                    "being wiped; unless the wipe is confirmed, it is quarantined at {}",
                    time_format::to_the_second(by)
                )
            }
            None => "being wiped".to_owned(),
        },
        CustodyState::Quarantined => match custody.cause {
            Some(cause) => format!("quarantined: {}", word(cause).replace('_', " ")),
            None => "quarantined".to_owned(),
        },
    }
}

fn claimed(nodes: &[ClaimedNode]) -> Table {
    let now = time_format::now();
    let mut table = Table::new(&[
        ("node", Align::Left),
        ("pool", Align::Left),
        ("state", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("user", Align::Left),
        ("since", Align::Right),
        ("until", Align::Right),
        ("wipe by", Align::Right),
    ]);
    for node in nodes {
        let style = match node.custody.state {
            CustodyState::Quarantined => Style::Red,
            CustodyState::Wiping => Style::Yellow,
            CustodyState::Claimed | CustodyState::Open => Style::Plain,
        };
        let holder = node.custody.holder.as_ref();
        let plain = |text: String| (text, Style::Plain);
        table.styled(vec![
            (node.node.clone(), Style::Bold),
            plain(node.pool.clone()),
            (word(node.custody.state).to_owned(), style),
            plain(or_dash(holder.map(|holder| holder.tenant.clone()))),
            plain(or_dash(holder.map(|holder| holder.project.clone()))),
            plain(or_dash(holder.map(|holder| holder.user.clone()))),
            plain(or_dash(node.custody.since.map(|at| time_format::distance(at, now)))),
            plain(or_dash(node.custody.until.map(|at| time_format::distance(at, now)))),
            plain(or_dash(node.custody.wipe_by.map(|at| time_format::distance(at, now)))),
        ]);
    }
    table
}
