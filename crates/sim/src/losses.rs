//! Random commands about losses of nodes and failed starts. They are drawn from dice of their own: other draws would
//! change what every kept seed does.

use crate::requests::small;
use crate::wishes::some_generation;
use leasehold_engine::command::{EndedClaim, EndedLease, FailStart, LoseNode, SettleLoss};
use leasehold_engine::{Command, Custody, Phase, State};
use leasehold_model::{AllocationNo, AllocationState, Instant, LeaseNo, NodeNo, ProjectNo, TenantNo, UserNo};
use leasehold_oracle::{Dice, OpenLoss};

/// A loss or a failed start instead of another command, at times.
pub(crate) fn instead(state: &State, now: Instant) -> Option<Command> {
    let mut dice = Dice::new(now.0 << 3 ^ state.size() << 30);
    if dice.one_in(60) {
        return Some(lose(state, now, &mut dice));
    }
    let staging = state.allocations_after(None).filter(|found| found.state == AllocationState::Staging);
    let staging: Vec<AllocationNo> = staging.map(|found| found.number).collect();
    // Few allocations are staging, and not for long.
    if !dice.one_in(if staging.is_empty() { 150 } else { 6 }) {
        return None;
    }
    let known: Vec<AllocationNo> = state.allocations_after(None).map(|found| found.number).collect();
    let allocation = match (staging.len(), known.len()) {
        (1.., _) if !dice.one_in(8) => *dice.pick(&staging),
        (_, 1..) if !dice.one_in(4) => *dice.pick(&known),
        _ => AllocationNo(dice.below(state.size() + 2)),
    };
    // Leases of its project, which are mostly its own.
    let project = state.allocation(allocation).map(|found| found.project);
    let own = state.leases().into_iter().filter(|lease| Some(lease.project) == project && lease.phase.is_held());
    let own: Vec<NodeNo> = own.map(|lease| lease.node).collect();
    let node = (!own.is_empty() && !dice.one_in(6)).then(|| *dice.pick(&own));
    let node = node.unwrap_or(NodeNo(small(&mut dice, 5)));
    let node = (!dice.one_in(3)).then_some(node);
    let generation = node.and_then(|node| some_generation(state, node, &mut dice));
    Some(Command::FailStart(FailStart { allocation, node, generation }))
}

/// A node on which something ended or that was claimed, last seen a little earlier.
fn lose(state: &State, now: Instant, dice: &mut Dice) -> Command {
    let ending = state.leases().into_iter().filter(|lease| !lease.phase.is_held()).map(|lease| lease.node);
    let in_custody = state.nodes().filter(|node| node.custody != Custody::Open).map(|node| node.number);
    let nodes: Vec<NodeNo> = ending.chain(in_custody).collect();
    let node = if nodes.is_empty() || dice.one_in(4) { NodeNo(small(dice, 5)) } else { *dice.pick(&nodes) };
    let ago = if dice.one_in(2) { dice.below(60_000_000_000) } else { dice.below(8_000_000_000) };
    let last_seen = if dice.one_in(40) { Instant(now.0 + 1 + ago) } else { Instant(now.0.saturating_sub(ago)) };
    Command::LoseNode(LoseNode { node, last_seen })
}

/// Names what ended on lost nodes: sometimes late, in two parts, or for a loss that is not open.
pub(crate) fn settle(state: &State, open: &[OpenLoss], now: Instant) -> Option<Command> {
    let mut dice = Dice::new(now.0 << 5 ^ state.size() << 24);
    let settle = |loss: &OpenLoss| SettleLoss {
        loss: loss.loss,
        leases: loss.leases.iter().map(ended_lease).collect(),
        claims: loss.claims.iter().map(ended_claim).collect(),
        complete: true,
    };
    if open.is_empty() {
        let loss = dice.below(state.size() + 3);
        let nothing = SettleLoss { loss, leases: Vec::new(), claims: Vec::new(), complete: true };
        return dice.one_in(60).then_some(Command::SettleLoss(nothing));
    }
    if dice.one_in(2) {
        return None;
    }
    let mut settle = settle(dice.pick(open));
    match dice.below(12) {
        0 => settle.loss += 1 + dice.below(3),
        1 => {
            if let Some(first) = settle.leases.first().cloned() {
                let elsewhere = |lease: &&&leasehold_engine::Lease| lease.phase == Phase::Fenced;
                let node = open.iter().find(|loss| loss.loss == settle.loss).map(|loss| loss.node);
                let leases = state.leases();
                let fenced = leases.iter().filter(elsewhere).find(|lease| Some(lease.node) != node);
                let lease = fenced.map_or(LeaseNo(u64::MAX - 7), |lease| lease.number);
                settle.leases.push(EndedLease { lease, ..first });
            }
        }
        2..6 if settle.leases.len() + settle.claims.len() > 1 => {
            settle.complete = false;
            settle.claims.truncate(usize::from(settle.leases.is_empty() || dice.one_in(3)));
            settle.leases.truncate(settle.leases.len().div_ceil(2));
        }
        _ => {}
    }
    Some(Command::SettleLoss(settle))
}

fn ended_lease(ended: &leasehold_oracle::EndedLease) -> EndedLease {
    let identity = &ended.identity;
    EndedLease {
        lease: ended.lease,
        tenant: identity.tenant.expect("a lease has a tenant"),
        project: identity.project.expect("a lease has a project"),
        user: identity.user,
        workload: identity.workload.clone(),
        belongs_to: ended.belongs_to,
    }
}

fn ended_claim((claim, (tenant, project, user)): &(u64, (TenantNo, ProjectNo, UserNo))) -> EndedClaim {
    EndedClaim { claim: *claim, tenant: *tenant, project: *project, user: *user }
}
