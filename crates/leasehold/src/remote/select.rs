//! Changes of several nodes or leases: selects them, shows the selection, and changes one after the other.

use super::failure::{Failed, plain};
use super::session::{Session, keyed};
use crate::cli::remote::ChangeArgs;
use crate::cli::select::{LeasesArgs, NodeState, NodesArgs, PlaceArgs, YesArgs};
use crate::numbers::{counted, thousands};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::Table;
use crate::term;
use leasehold_api::limits::PAGE_MAX;
use leasehold_api::{CustodyState, Lease, LeaseState, Node};
use leasehold_client::{Answer, Call, Error};
use serde_json::json;
use std::collections::BTreeSet;

/// A change of several objects, in words.
pub(super) struct Change {
    /// `node` or `lease`.
    pub(super) noun: &'static str,
    /// `drained`.
    pub(super) done: &'static str,
    /// What else is changed, for the preview: `, with the other leases of their gangs`.
    pub(super) also: &'static str,
}

/// What one call has changed.
pub(super) struct Changed {
    pub(super) sequence: u64,
    /// The names of the objects; a call can change several.
    pub(super) names: Vec<String>,
}

/// The nodes of a selection, in order of their numbers.
pub(super) async fn nodes(session: &Session, args: &NodesArgs) -> Result<Vec<Node>, Failed> {
    let all = placed(session, &args.place).await?;
    Ok(all.into_iter().filter(|node| args.state.is_none_or(|state| is_in(node, state))).collect())
}

fn is_in(node: &Node, state: NodeState) -> bool {
    match state {
        NodeState::Ready => !node.lost && !node.drained && node.custody.state == CustodyState::Open,
        NodeState::Drained => node.drained,
        NodeState::Lost => node.lost,
        NodeState::Claimed => node.custody.state == CustodyState::Claimed,
        NodeState::Wiping => node.custody.state == CustodyState::Wiping,
        NodeState::Quarantined => node.custody.state == CustodyState::Quarantined,
    }
}

/// The nodes of a place, in order of their numbers.
pub(super) async fn placed(session: &Session, place: &PlaceArgs) -> Result<Vec<Node>, Failed> {
    let call = session.client.list_nodes().maybe("pool", place.pool.as_ref()).query("limit", PAGE_MAX);
    let fits = |asked: &Option<String>, has: &Option<String>| asked.is_none() || asked == has;
    let mut all = call.all().await?;
    all.retain(|node| {
        fits(&place.rack, &node.rack)
            && fits(&place.zone, &node.zone)
            && place.labels.iter().all(|(key, value)| node.labels.get(key) == Some(value))
    });
    Ok(all)
}

/// The leases of a selection, in order of their numbers. Only those in `state` are selected unless another is given.
pub(super) async fn leases(session: &Session, args: &LeasesArgs, state: LeaseState) -> Result<Vec<Lease>, Failed> {
    let call = session
        .client
        .list_leases()
        .maybe("tenant", args.tenant.as_ref())
        .maybe("project", args.project.as_ref())
        .maybe("node", args.node.as_ref())
        .maybe("pool", args.place.pool.as_ref())
        .query("state", args.state.unwrap_or(state))
        .query("limit", PAGE_MAX);
    let mut all = call.all().await?;
    let PlaceArgs { rack, zone, labels, .. } = &args.place;
    if rack.is_some() || zone.is_some() || !labels.is_empty() {
        let nodes: BTreeSet<String> = placed(session, &args.place).await?.into_iter().map(|node| node.name).collect();
        all.retain(|lease| nodes.contains(&lease.node));
    }
    Ok(all)
}

/// The call with an idempotency key of its own for each object, if `--key` was given.
pub(super) fn keyed_for<A: Answer>(call: Call<A>, args: &ChangeArgs, object: &str, several: bool) -> Call<A> {
    match &args.key {
        Some(key) if several => call.key(format!("{key}-{object}")),
        _ => keyed(call, args),
    }
}

/// Shows the selection, or makes the change for each object and reports exact counts.
pub(super) async fn apply<T>(
    session: &Session,
    change: &Change,
    chosen: &[T],
    yes: YesArgs,
    name: impl Fn(&T) -> String,
    table: impl FnOnce(&[T]) -> Table,
    make: impl AsyncFn(&T) -> Result<Changed, Error>,
) -> Result<(), Failed> {
    let Change { noun, done, also } = change;
    let selected = counted(chosen.len() as u64, noun);
    if !yes.yes || chosen.is_empty() {
        if session.json {
            let names: Vec<String> = chosen.iter().map(&name).collect();
            return Ok(print_json(&json!({ "preview": true, "selected": names }))?);
        }
        session.print_table(&table(chosen))?;
        if !chosen.is_empty() {
            term::say(&format!("leasehold: {selected} would be {done}{also}; add --yes to do it\n"));
        }
        return Ok(());
    }
    let (mut changed, mut failed, mut results) = (BTreeSet::new(), 0, Vec::new());
    for one in chosen {
        // The call for another object of the same gang has changed it already.
        if changed.contains(&name(one)) {
            continue;
        }
        match make(one).await {
            Ok(made) => {
                changed.extend(made.names.iter().cloned());
                if !session.json {
                    print(&format!("{} {done} (record {})\n", made.names.join(", "), made.sequence))?;
                }
                results.push(json!({ "changed": made.names, "sequence": made.sequence }));
            }
            // The daemon cannot be reached: the rest would fail as well, each after a minute.
            Err(error) if error.problem().is_none() => {
                term::say(&format!("leasehold: {} of {selected} {done} so far\n", thousands(changed.len() as u64)));
                return Err(error.into());
            }
            Err(error) => {
                failed += 1;
                let problem = plain(&error);
                if !session.json {
                    term::say(&format!("leasehold: {}: {problem}\n", name(one)));
                }
                results.push(json!({ "failed": name(one), "problem": error.problem() }));
            }
        }
    }
    if session.json {
        print_json(
            &json!({ "selected": chosen.len(), "changed": changed.len(), "failed": failed, "results": results }),
        )?;
    } else {
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        term::say(&format!("leasehold: {selected} selected: {} {done}{failed}\n", thousands(changed.len() as u64)));
    }
    match failed {
        0 => Ok(()),
        failed => {
            let what = format!("{failed} of {selected} could not be {done}");
            Err(Problem::refused("partly_failed", what).advice("the others were; the reasons are above").into())
        }
    }
}
