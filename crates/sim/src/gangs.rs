//! Random commands about allocations: small gangs, so that a small cluster covers all cases.

use crate::requests::{name, small};
use crate::{ceilings, claims};
use leasehold_engine::command::{
    ChangeAllocation, CompleteAllocation, HoldAllocation, ReportCheckpoint, SubmitAllocation,
};
use leasehold_engine::{Command, State};
use leasehold_model::{
    AllocationNo, AllocationSpec, ClassNo, Domain, Identity, Instant, Name, PoolNo, Priority, ProjectNo, Quanta, Span,
    TenantNo, UserNo, WhenOverQuota,
};
use leasehold_oracle::Dice;

/// Labels of nodes and gangs.
pub(crate) fn label(dice: &mut Dice) -> (Name, Name) {
    (name("disk"), name(if dice.one_in(4) { "hdd" } else { "ssd" }))
}

pub(crate) fn any(state: &State, now: Instant, dice: &mut Dice) -> (Identity, Command) {
    if dice.below(16) < 7 {
        return submission(state, dice);
    }
    let allocation = some_allocation(state, dice);
    let command = match dice.below(22) {
        16..18 => {
            // The oracle predicts the record without a reason.
            Command::HoldAllocation(HoldAllocation { allocation, reason: None })
        }
        18..20 => Command::ReleaseHold(allocation),
        20..22 => Command::ChangeAllocation(ChangeAllocation {
            allocation,
            priority: dice.one_in(2).then(|| *dice.pick(Priority::ALL)),
            pool: dice.one_in(6).then(|| dice.one_in(2).then(|| PoolNo(small(dice, 2)))),
            walltime: dice.one_in(2).then(|| (!dice.one_in(4)).then(|| Span::from_secs(dice.below(200)))),
            ttl: dice.one_in(4).then(|| dice.one_in(2).then(|| Span::from_secs(dice.below(80)))),
            requeue: dice.one_in(4).then(|| dice.one_in(2)),
        }),
        0..2 => Command::StartAllocation(allocation),
        2..4 => Command::BeginCheckpoint(allocation),
        4..10 => {
            let ran = state.allocation(allocation).map_or(1, |found| now.since(found.placed_at).0);
            let took = Span(if dice.one_in(8) { ran.saturating_add(1) } else { dice.below(ran.max(1)) });
            Command::ReportCheckpoint(ReportCheckpoint { allocation, bytes: dice.below(1 << 40), took })
        }
        10..14 => {
            let exit_status = dice.one_in(2).then(|| if dice.one_in(2) { small(dice, 300) } else { 0 });
            let storage_written = dice.below(1 << 30);
            Command::CompleteAllocation(CompleteAllocation { allocation, exit_status, storage_written })
        }
        _ => Command::CancelAllocation(allocation),
    };
    (holder(state, allocation, dice), command)
}

/// Mostly an allocation that has not ended; sometimes one that has ended or never existed.
fn some_allocation(state: &State, dice: &mut Dice) -> AllocationNo {
    let live: Vec<AllocationNo> = state.allocations_after(None).map(|found| found.number).collect();
    if live.is_empty() || dice.one_in(10) {
        return AllocationNo(dice.below(state.size() + 2));
    }
    *dice.pick(&live)
}

/// Mostly the holder, sometimes an operator or another tenant.
fn holder(state: &State, allocation: AllocationNo, dice: &mut Dice) -> Identity {
    match state.allocation(allocation) {
        Some(found) if !dice.one_in(8) => Identity {
            tenant: Some(found.tenant),
            project: dice.one_in(2).then_some(found.project),
            ..Identity::default()
        },
        _ if dice.one_in(2) => Identity::default(),
        _ => Identity {
            tenant: Some(TenantNo(small(dice, 4))),
            project: dice.one_in(3).then(|| ProjectNo(small(dice, 6))),
            ..Identity::default()
        },
    }
}

fn submission(state: &State, dice: &mut Dice) -> (Identity, Command) {
    let projects: Vec<(ProjectNo, TenantNo)> = state.projects().map(|(no, p)| (no, p.tenant)).collect();
    let (project, tenant) = match projects.len() {
        0 => (ProjectNo(0), TenantNo(0)),
        _ if dice.one_in(30) => (ProjectNo(small(dice, 8)), TenantNo(small(dice, 5))),
        n => projects[dice.index(n)],
    };
    let sensitive = if dice.one_in(4) { claims::claimer(state, dice) } else { None };
    let (tenant, project, user) = match sensitive {
        Some((tenant, project, user)) => (tenant, project, (!dice.one_in(20)).then_some(user)),
        None => (tenant, project, dice.one_in(10).then(|| UserNo(small(dice, 3)))),
    };
    let domain = |dice: &mut Dice| *dice.pick(Domain::ALL);
    let max = state.tenant(tenant).map_or(Priority::Standard, |tenant| tenant.settings.max_priority);
    let priority = *dice.pick(Priority::ALL);
    let longest = if dice.one_in(5) { 15_000 } else { 150 };
    let spec = AllocationSpec {
        pool: dice.one_in(3).then(|| PoolNo(small(dice, 2))),
        replicas: if dice.one_in(40) { small(dice, 9) } else { 1 + small(dice, 3) },
        priority: if dice.one_in(20) { priority } else { priority.min(max) },
        walltime: (!dice.one_in(5)).then(|| Span::from_secs(dice.below(longest))),
        ttl: dice.one_in(3).then(|| Span::from_secs(dice.below(80))),
        staged: dice.one_in(5),
        requeue: dice.one_in(2),
        labels: if dice.one_in(8) { vec![label(dice)] } else { Vec::new() },
        together: dice.one_in(6).then(|| domain(dice)),
        apart: dice.one_in(6).then(|| domain(dice)),
        sensitive: if dice.one_in(40) { sensitive.is_none() } else { sensitive.is_some() },
        app_instance: ceilings::some_app(dice),
        correlation: dice.one_in(8).then(|| u128::from(dice.draw())),
        ..AllocationSpec::of(asks(dice))
    };
    let workload = dice.one_in(6).then(|| name("train"));
    let identity = Identity { tenant: Some(tenant), project: Some(project), user, workload, ..Identity::default() };
    // Callers that name one thing name another; nothing else is rolled for it.
    let hcl_entry = spec.correlation.map(|_| name("hcl-7"));
    let dra_claim_id = identity.workload.as_ref().map(|_| name("dra-7"));
    let when_over_quota = spec.requeue.then(|| WhenOverQuota::ALL[usize::from(spec.replicas > 1)]);
    (identity, Command::SubmitAllocation(SubmitAllocation { spec, hcl_entry, dra_claim_id, when_over_quota }))
}

/// Mostly a large part of a node, so that requests compete.
fn asks(dice: &mut Dice) -> leasehold_model::body::Asks {
    let mut asks = leasehold_model::body::Asks::new();
    if !dice.one_in(4) {
        let quanta = if dice.one_in(3) { 1 + dice.below(7) } else { 7 * (1 + dice.below(3)) };
        asks.push((ClassNo(0), Quanta(quanta)));
    }
    if asks.is_empty() || dice.one_in(3) {
        asks.push((ClassNo(1), Quanta(dice.below(4000))));
    }
    if dice.one_in(12) {
        asks.reverse();
    }
    asks
}
