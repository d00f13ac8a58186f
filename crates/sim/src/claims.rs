//! Random commands about claims on nodes, and the users of sensitive work.

use crate::requests::small;
use crate::wishes::some_generation;
use leasehold_engine::command::{ClaimNodes, ReportWipe};
use leasehold_engine::{Claim, Command, Custody, Node, State};
use leasehold_model::body::{AllocationRequeued, AllocationSuspended, Body};
use leasehold_model::{
    AllocationNo, Identity, Instant, LeaseNo, NodeNo, ProjectNo, QuarantineCause, Record, TenantNo, UserNo,
};
use leasehold_oracle::Dice;
use std::collections::{BTreeMap, BTreeSet};

const MINUTE: u64 = 60_000_000_000;

pub(crate) fn any(state: &State, dice: &mut Dice) -> (Identity, Command) {
    match dice.below(20) {
        0..8 => {
            let (identity, nodes) = (claiming(state, dice), claimable(state, dice));
            let nodes = ClaimNodes { until: expected_end(state), ..nodes.into() };
            (identity, by_operator(state, &nodes).unwrap_or(Command::ClaimNodes(nodes)))
        }
        8..14 => {
            let nodes = nodes_where(state, dice, |node| node.custody.claim().is_some());
            (giving_back(state, &nodes, dice), Command::ReleaseNodes(nodes))
        }
        14..18 => {
            let node = one_where(state, dice, |node| matches!(node.custody, Custody::Wiping { .. }));
            let generation = some_generation(state, node, dice).filter(|_| dice.one_in(2));
            let report = ReportWipe { node, generation, clean: !dice.one_in(4) };
            (Identity::default(), Command::ReportWipe(report))
        }
        _ => {
            let node = one_where(state, dice, |node| matches!(node.custody, Custody::Quarantined { .. }));
            (Identity::default(), Command::ClearQuarantine(node))
        }
    }
}

/// The claim of an operator instead, at times of drained nodes. It is drawn from a die of its own: another draw would
/// change what every kept seed does.
fn by_operator(state: &State, claim: &ClaimNodes) -> Option<Command> {
    let mut dice = Dice::new(state.size() << 7 ^ state.last_stamp().0);
    if !dice.one_in(3) {
        return None;
    }
    let empty = |node: &&Node| node.is_drained() && node.custody == Custody::Open && !node.has_leases();
    let drained: Vec<NodeNo> = state.nodes().filter(empty).map(|node| node.number).collect();
    let claim = claim.clone();
    let instead = !drained.is_empty() && !dice.one_in(3);
    Some(Command::ClaimForUser(if instead { ClaimNodes { nodes: drained, ..claim } } else { claim }))
}

/// How long a claimer expects to keep its nodes: mostly a few minutes, so that some claims outlast it. From a die of its
/// own, too.
fn expected_end(state: &State) -> Option<Instant> {
    let mut dice = Dice::new(state.size() << 11 ^ state.last_stamp().0);
    let now = state.last_stamp().0;
    match dice.below(12) {
        0..4 => None,
        4 => Some(Instant(now.saturating_sub(dice.below(2_000_000_000)))),
        5 => Some(Instant((now / MINUTE + 1 + dice.below(4)) * MINUTE)),
        _ => Some(Instant(now + dice.below(5 * MINUTE))),
    }
}

/// A random claimer with the project of its claim, or another project of the tenant. `None` if there is no claim.
pub(crate) fn claimer(state: &State, dice: &mut Dice) -> Option<(TenantNo, ProjectNo, UserNo)> {
    let claims: Vec<Claim> = state.nodes().filter_map(|node| node.custody.claim()).collect();
    if claims.is_empty() {
        return None;
    }
    let Claim { by, project, .. } = *dice.pick(&claims);
    let project = if dice.one_in(4) { project_of(state, by.tenant, dice).unwrap_or(project) } else { project };
    Some((by.tenant, project, by.user))
}

/// Mostly a user with a project of the same tenant; sometimes a mismatch.
fn claiming(state: &State, dice: &mut Dice) -> Identity {
    let users: Vec<(UserNo, TenantNo)> = state.users().map(|(number, user)| (number, user.tenant)).collect();
    let drawn = (UserNo(small(dice, 5)), TenantNo(small(dice, 4)));
    let (user, tenant) = if users.is_empty() || dice.one_in(20) { drawn } else { *dice.pick(&users) };
    let project = project_of(state, tenant, dice).filter(|_| !dice.one_in(20));
    let project = project.unwrap_or(ProjectNo(small(dice, 8)));
    Identity {
        tenant: (!dice.one_in(30)).then_some(tenant),
        project: (!dice.one_in(30)).then_some(project),
        user: (!dice.one_in(20)).then_some(user),
        ..Identity::default()
    }
}

fn project_of(state: &State, tenant: TenantNo, dice: &mut Dice) -> Option<ProjectNo> {
    let own = state.projects().filter(|(_, project)| project.tenant == tenant);
    let own: Vec<ProjectNo> = own.map(|(number, _)| number).collect();
    (!own.is_empty()).then(|| *dice.pick(&own))
}

/// Mostly the claimer of the first node, with an incomplete identity at times; sometimes an operator or another
/// tenant.
fn giving_back(state: &State, nodes: &[NodeNo], dice: &mut Dice) -> Identity {
    let first = nodes.first().and_then(|node| state.node(*node)?.custody.claim());
    match first {
        Some(claim) if !dice.one_in(8) => Identity {
            tenant: Some(claim.by.tenant),
            project: dice.one_in(2).then_some(claim.project),
            user: dice.one_in(2).then_some(claim.by.user),
            ..Identity::default()
        },
        _ if dice.one_in(2) => Identity::default(),
        _ => Identity { tenant: Some(TenantNo(small(dice, 4))), ..Identity::default() },
    }
}

fn claimable(state: &State, dice: &mut Dice) -> Vec<NodeNo> {
    nodes_where(state, dice, |node| {
        node.is_in_service() && node.custody == Custody::Open && !node.has_leases() && !node.is_reserved()
    })
}

/// One or a few matching nodes; sometimes others, duplicates, none or too many.
fn nodes_where(state: &State, dice: &mut Dice, which: impl Fn(&Node) -> bool) -> Vec<NodeNo> {
    match dice.below(60) {
        0 => return Vec::new(),
        1 => return (0..257).map(NodeNo).collect(),
        _ => {}
    }
    let count = if dice.one_in(4) { 2 + dice.below(2) } else { 1 };
    let mut nodes: Vec<NodeNo> = Vec::new();
    for _ in 0..count {
        let node = one_where(state, dice, |node| !nodes.contains(&node.number) && which(node));
        if !nodes.contains(&node) || dice.one_in(4) {
            nodes.push(node);
        }
    }
    nodes
}

fn one_where(state: &State, dice: &mut Dice, which: impl Fn(&Node) -> bool) -> NodeNo {
    let suitable: Vec<NodeNo> = state.nodes().filter(|node| which(node)).map(|node| node.number).collect();
    if suitable.is_empty() || dice.one_in(12) { NodeNo(small(dice, 6)) } else { *dice.pick(&suitable) }
}

/// Counts notable events of claims and sensitive work in a history.
pub(crate) fn notable(records: &[Record]) -> BTreeMap<&'static str, u64> {
    let mut notable = BTreeMap::new();
    let (mut claimed, mut lies_on) = (BTreeSet::new(), BTreeMap::new());
    let (mut fenced, mut submitted) = (BTreeSet::new(), BTreeMap::new());
    for record in records {
        let what = match &record.body {
            Body::NodesClaimed(taken) => {
                claimed.extend(taken.nodes.0.iter().copied());
                (taken.nodes.0.len() > 1).then_some("several nodes claimed")
            }
            Body::NodeResumed(resumed) if record.continues && claimed.contains(&resumed.node) => {
                Some("drained node claimed")
            }
            Body::NodesReleased(given) => {
                claimed.retain(|node| !given.nodes.0.contains(node));
                None
            }
            Body::NodeLost(lost) => claimed.contains(&lost.node).then_some("claimed node lost"),
            Body::NodeQuarantined(found) => Some(match found.cause {
                QuarantineCause::WipeFailed => "wipe failed",
                QuarantineCause::WipeTimedOut => "wipe timed out",
            }),
            Body::NodeWiped(wiped) => {
                fenced.iter().any(|lease| lies_on[lease] == wiped.node).then_some("wiped with a fence on it")
            }
            Body::Granted(granted) => {
                let numbers = (granted.first_lease.0..).map(LeaseNo).take(granted.members.len());
                lies_on.extend(numbers.map(|number| (number, granted.node)));
                (granted.sensitive && granted.allocation.is_none()).then_some("lease granted")
            }
            Body::Fenced(gone) => {
                fenced.extend(gone.leases.0.iter().copied());
                None
            }
            Body::Unfenced(back) => {
                fenced.retain(|lease| !back.leases.0.contains(lease));
                None
            }
            Body::AllocationSubmitted(asked) if asked.spec.sensitive => {
                submitted.insert(AllocationNo(record.sequence), record.stamp);
                None
            }
            Body::AllocationPlaced(placed) => submitted
                .get(&placed.allocation)
                .map(|since| if *since < record.stamp { "gang placed after it waited" } else { "gang placed at once" }),
            Body::AllocationSuspended(AllocationSuspended { allocation, .. })
            | Body::AllocationRequeued(AllocationRequeued { allocation, .. }) => {
                submitted.get(allocation).map(|_| "gang back in the queue")
            }
            #[rustfmt::skip]
            Body::ClassPut(_) | Body::TenantPut(_) | Body::Denied(_) | Body::Released(_) | Body::Expired(_)
            | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_)
            | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_) | Body::PoolPut(_)
            | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
            | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_)
            | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_)
            | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_) | Body::NodeResumed(_)
            | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_)
            | Body::Renewed(_) | Body::TornDown(_) | Body::ActivityReported(_) | Body::Preempted(_)
            | Body::PreemptionDecided(_) | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_)
            | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationStarted(_)
            | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_) | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::QuarantineCleared(_)
            | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => None,
        };
        what.into_iter().for_each(|what| *notable.entry(what).or_insert(0) += 1);
    }
    notable
}
