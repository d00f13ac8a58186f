//! Claims on nodes for sensitive work, their release, and the wipe that follows.

use super::capacity::{find_node, node_put};
use super::leases::Holder;
use super::page::page;
use crate::access::Caller;
use crate::context::{Answer, Context, json};
use crate::names;
use crate::show_custody::claimed_node;
use leasehold_api::{ClaimList, ClaimPut, NewClaim, Problem, ReleaseNodes, ReportWipe, When};
use leasehold_cell::Sealed;
use leasehold_engine::{Claim, Command, Custody, State, command};
use leasehold_model::{NodeNo, Role};

/// As in requests for leases, everybody may refer to nodes by name.
fn nodes(state: &State, written: &[String]) -> Result<Vec<NodeNo>, Problem> {
    written.iter().map(|text| names::node_for_request(state, text)).collect()
}

fn sees(caller: &Caller, claim: Claim) -> bool {
    caller.sees_project(claim.by.tenant, claim.project)
}

fn put(context: &Context, status: u16, sealed: &Sealed, nodes: &[NodeNo]) -> Answer {
    let nodes = context.app.now.read(|state| {
        let found = nodes.iter().filter_map(|node| state.node(*node));
        found.map(|node| claimed_node(state, node)).collect()
    });
    json(status, &ClaimPut { sequence: sealed.sequence(), nodes })
}

pub(super) async fn claim_nodes(context: Context) -> Answer {
    let new: NewClaim = context.body()?;
    let caller = context.caller();
    let (identity, nodes) = context.app.now.read(|state| {
        let holder = Holder {
            tenant: new.tenant.as_deref(),
            project: new.project.as_deref(),
            user: new.user.as_deref(),
            workload: None,
        };
        Ok::<_, Problem>((holder.identity(state, caller)?, nodes(state, &new.nodes)?))
    })?;
    let claim = command::ClaimNodes { nodes: nodes.clone(), until: new.until.map(|When(until)| until) };
    let command = match caller.role {
        Role::Operator => Command::ClaimForUser(claim),
        _ => Command::ClaimNodes(claim),
    };
    let sealed = context.seal_for(identity, command).await?;
    put(&context, 201, &sealed, &nodes)
}

pub(super) async fn release_nodes(context: Context) -> Answer {
    let release: ReleaseNodes = context.body()?;
    let nodes = context.app.now.read(|state| nodes(state, &release.nodes))?;
    let sealed = context.seal(Command::ReleaseNodes(nodes.clone())).await?;
    put(&context, 200, &sealed, &nodes)
}

pub(super) async fn list_claims(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let visible = state.nodes().filter(|node| match node.custody {
            Custody::Open => false,
            Custody::Claimed(claim) => sees(caller, claim),
            Custody::Wiping { .. } | Custody::Quarantined { .. } => caller.sees_all(),
        });
        page(&context, visible.map(|node| (u64::from(node.number.0), claimed_node(state, node))))
    });
    let (nodes, next_cursor) = listed?;
    json(200, &ClaimList { nodes, next_cursor })
}

pub(super) async fn report_wipe(context: Context) -> Answer {
    let report: ReportWipe = context.body()?;
    let node = find_node(&context)?;
    let command = command::ReportWipe {
        node,
        generation: context.caller().checked_generation(report.generation)?,
        clean: report.clean,
    };
    let sealed = context.seal(Command::ReportWipe(command)).await?;
    node_put(&context, 200, sealed.sequence(), node)
}

pub(super) async fn clear_quarantine(context: Context) -> Answer {
    let node = find_node(&context)?;
    let sealed = context.seal(Command::ClearQuarantine(node)).await?;
    node_put(&context, 200, sealed.sequence(), node)
}
