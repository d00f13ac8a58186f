//! Random sharing policies, and what their methods need: limits to share by, work that is charged, and projects that go.
//! They are drawn from dice of their own: other draws would change what every kept seed does.

use crate::apps::who;
use crate::policies::{at_times_mistaken, billed_work, of_instance, pick};
use crate::requests::{name, small};
use crate::shares::costly;
use leasehold_engine::command::{PutAppPolicy, PutEntitlement, PutProject, PutSharing};
use leasehold_engine::{AppInstance, AppType, Command, State};
use leasehold_model::body::{EntitlementScope, PolicyScope, ServiceTier, ServiceTiers, Sharing, SharingBasis};
use leasehold_model::rate::Decimal;
use leasehold_model::{
    AppInstanceNo, AppTypeNo, Body, ControlPlaneScope, Identity, Instant, ProjectNo, Record, TenantNo, UnitNo,
    UnitQuantity,
};
use leasehold_oracle::Dice;
use std::collections::BTreeSet;

/// A hundred per cent.
const ALL: u64 = 100_000_000_000;

/// A sharing policy or something for it, at times or often.
pub(crate) fn any(state: &State, records: &[Record], now: Instant, often: bool) -> Option<(Identity, Command)> {
    let mut dice = Dice::new(now.0.rotate_left(37) ^ state.size() << 28 ^ 0x5a4e);
    let costly = costly(records);
    let operator = Identity::default();
    let rarely = if costly.is_empty() { 12 } else { 3 };
    if !dice.one_in(if often { 2 } else { rarely }) {
        return None;
    }
    let (dice, found) = (&mut dice.split(), some_instance(state, &costly, &mut dice));
    match dice.below(16) {
        0..4 => limit(state, found?, dice),
        4 | 5 => charged(state, found?, dice),
        6 if dice.one_in(2) => Some((operator, Command::DeleteProject(named_project(state, dice)?))),
        6 => Some((operator, lender_goes(state, records, dice)?)),
        7 | 8 => {
            let (tenant, new) = (found?.tenant, name(&format!("r{}", dice.below(20))));
            Some((operator, Command::PutProject(PutProject { project: None, tenant, name: new })))
        }
        _ => policy(state, found, dice),
    }
}

fn projects_of(state: &State, tenant: Option<TenantNo>) -> Vec<ProjectNo> {
    let own = state.projects().filter(|(_, found)| tenant.is_none_or(|tenant| tenant == found.tenant));
    own.map(|(number, _)| number).collect()
}

/// Mostly a runtime that is shared, and one that costs something.
fn some_instance<'a>(state: &'a State, costly: &BTreeSet<AppInstanceNo>, dice: &mut Dice) -> Option<&'a AppInstance> {
    let all: Vec<&AppInstance> = state.app_instances_after(None).collect();
    let is_shared = |found: &&AppInstance| found.scope != ControlPlaneScope::Project;
    let mut shared: Vec<&AppInstance> = all.iter().copied().filter(is_shared).collect();
    if shared.iter().any(|found| costly.contains(&found.number)) && !dice.one_in(4) {
        shared.retain(|found| costly.contains(&found.number));
    }
    pick(&shared, dice).filter(|_| !dice.one_in(6)).or_else(|| pick(&all, dice))
}

fn scope(state: &State, found: Option<&AppInstance>, dice: &mut Dice) -> Option<PolicyScope> {
    let apps: Vec<&AppType> = state.app_types().collect();
    let app_type = found.map_or(pick(&apps, dice)?.number, |found| found.app_type);
    let tenants: Vec<TenantNo> = state.tenants().map(|tenant| tenant.number).collect();
    let tenant = found.map(|found| found.tenant).or_else(|| pick(&tenants, dice));
    let of = match dice.below(8) {
        0 | 1 => PolicyScope { app_type, tenant: None, app_instance: None },
        2 | 3 => PolicyScope { app_type, tenant, app_instance: None },
        _ => of_instance(found?),
    };
    Some(at_times_mistaken(of, dice))
}

fn policy(state: &State, found: Option<&AppInstance>, dice: &mut Dice) -> Option<(Identity, Command)> {
    let of = scope(state, found, dice)?;
    let tenant = of.tenant.unwrap_or(TenantNo(small(dice, 4)));
    let identity = if of.tenant.is_none() && !dice.one_in(6) { Identity::default() } else { who(tenant, dice) };
    let said = |often: u64, dice: &mut Dice| dice.one_in(often).then(|| !dice.one_in(2));
    let often = if identity.tenant.is_none() { 6 } else { 24 };
    let control_plane_billable = said(often, dice);
    let distributable = said(often, dice);
    let sharing = (!dice.one_in(8)).then(|| Sharing { basis: basis(state, of, dice), entries: !dice.one_in(4) });
    Some((identity, Command::PutSharing(PutSharing { of, control_plane_billable, distributable, sharing })))
}

fn some_unit(state: &State, app: AppTypeNo, dice: &mut Dice) -> UnitNo {
    let units: Vec<UnitNo> = state.app_type(app).map_or(Vec::new(), |found| found.units.iter().collect());
    pick(&units, dice).filter(|_| !dice.one_in(12)).unwrap_or(UnitNo(small(dice, 70)))
}

fn basis(state: &State, of: PolicyScope, dice: &mut Dice) -> SharingBasis {
    let instance = of.app_instance.and_then(|number| state.app_instance(number));
    let is_platform = instance.is_some_and(|found| found.scope == ControlPlaneScope::Platform);
    let mut projects = projects_of(state, of.tenant.filter(|_| !is_platform));
    if dice.one_in(16) {
        projects.push(ProjectNo(small(dice, 12)));
        projects.sort_unstable();
        projects.dedup();
    }
    match dice.below(12) {
        0 if dice.one_in(2) => SharingBasis::None,
        0 | 1 => SharingBasis::Owner,
        2 | 3 => SharingBasis::Even,
        4 | 5 => SharingBasis::ByUsage(some_unit(state, of.app_type, dice)),
        6 | 7 => SharingBasis::ByQuota(some_unit(state, of.app_type, dice)),
        8 | 9 => {
            let mut named = some_of(&projects, dice);
            named.extend(projects.iter().filter(|project| is_free(state, **project)));
            named.sort_unstable();
            named.dedup();
            SharingBasis::Fixed(percentages(&named, dice))
        }
        _ => SharingBasis::ByTier(tiers(&some_of(&projects, dice), dice)),
    }
}

/// Most of them, in order.
fn some_of(projects: &[ProjectNo], dice: &mut Dice) -> Vec<ProjectNo> {
    projects.iter().copied().filter(|_| !dice.one_in(3)).collect()
}

/// Mostly a hundred in all: in round figures, or not at all round.
fn percentages(projects: &[ProjectNo], dice: &mut Dice) -> Vec<(ProjectNo, Decimal)> {
    let mut left = ALL;
    let mut shares = Vec::new();
    for (place, project) in projects.iter().enumerate() {
        let others = (projects.len() - 1 - place) as u64;
        let most = left - others;
        let percent = match others {
            0 => most,
            _ if dice.one_in(2) => (left / (others + 1)).clamp(1, most),
            _ => (1 + dice.below(most)).min(most),
        };
        left -= percent;
        shares.push((*project, Decimal(percent)));
    }
    match dice.below(24) {
        0 => shares.iter_mut().take(1).for_each(|(_, percent)| percent.0 += 1),
        1 => shares.iter_mut().take(1).for_each(|(_, percent)| percent.0 -= 1),
        2 => shares.push((ProjectNo(u32::MAX), Decimal(0))),
        3 => shares.extend(shares.first().copied()),
        4 => shares.reverse(),
        _ => {}
    }
    shares
}

fn tiers(projects: &[ProjectNo], dice: &mut Dice) -> ServiceTiers {
    let count = 1 + dice.below(3);
    let names = ["gold", "silver", "bronze"].into_iter().take(usize::try_from(count).expect("small"));
    let mut tiers = Vec::new();
    for tier in names {
        let weight = if dice.one_in(3) { 1 + dice.below(1 << 40) } else { (1 + dice.below(5)) * 1_000_000_000 };
        tiers.push(ServiceTier { name: name(tier), weight: Decimal(weight) });
    }
    let place = |dice: &mut Dice| small(dice, count) + u32::from(dice.one_in(100)) * 3;
    let mut own: Vec<(ProjectNo, u32)> = projects.iter().map(|project| (*project, place(dice))).collect();
    let default_tier = dice.one_in(2).then(|| place(dice));
    match dice.below(30) {
        0 => tiers.clear(),
        1 => tiers[0].weight = Decimal(0),
        2 => tiers.iter_mut().for_each(|tier| tier.name = name("gold")),
        3 => own.extend(own.first().copied()),
        4 => own.reverse(),
        _ => {}
    }
    ServiceTiers { tiers, projects: own, default_tier }
}

/// A generous limit on a unit of a shared runtime, for one of its projects.
fn limit(state: &State, found: &AppInstance, dice: &mut Dice) -> Option<(Identity, Command)> {
    let is_platform = found.scope == ControlPlaneScope::Platform;
    let projects = projects_of(state, (!is_platform).then_some(found.tenant));
    let app_instance = dice.one_in(2).then_some(found.number);
    let shared_by = state.sharing_policies().filter(|put| put.of.app_type == found.app_type);
    let shared_by = shared_by.filter_map(|put| put.sharing.as_ref()?.basis.unit());
    let unit = pick(&shared_by.collect::<Vec<_>>(), dice).filter(|_| !dice.one_in(4));
    let unit = unit.unwrap_or_else(|| some_unit(state, found.app_type, dice));
    // Rather one that has no limit yet.
    let of_unit = |project: &ProjectNo| {
        state.entitlements().any(|known| known.of.unit == unit && known.of.project == Some(*project))
    };
    let without: Vec<ProjectNo> = projects.iter().copied().filter(|project| !of_unit(project)).collect();
    let project = pick(&without, dice).or_else(|| pick(&projects, dice))?;
    let of = EntitlementScope { project: Some(project), app_instance, unit };
    let hard = match dice.below(10) {
        0 => UnitQuantity(0),
        1..4 => UnitQuantity(1 + u128::from(dice.below(1 << 50))),
        _ => UnitQuantity(u128::from(1 + dice.below(9)) * 1_000_000_000_000),
    };
    let (soft, hard) = if dice.one_in(8) { (Some(hard), None) } else { (None, Some(hard)) };
    Some((Identity::default(), Command::PutEntitlement(PutEntitlement { of, soft, hard })))
}

/// Work on a shared runtime is charged, or no longer.
fn charged(state: &State, found: &AppInstance, dice: &mut Dice) -> Option<(Identity, Command)> {
    let mut of = of_instance(found);
    match dice.below(6) {
        0 => of.app_instance = None,
        1 => (of.tenant, of.app_instance) = (None, None),
        _ => {}
    }
    let identity = if of.tenant.is_none() { Identity::default() } else { who(found.tenant, dice) };
    let billed_work = (!dice.one_in(8)).then(|| billed_work(state, of.app_type, dice)).flatten();
    Some((identity, Command::PutAppPolicy(PutAppPolicy { of, units: None, attribution: None, billed_work })))
}

fn owns(state: &State, project: ProjectNo) -> bool {
    state.app_instances_after(None).any(|found| found.project == project)
}

fn lends(state: &State, project: ProjectNo) -> bool {
    state.attachments_after(None).any(|lent| lent.source_project == project)
}

/// Whether nothing that a project holds would keep it.
fn is_free(state: &State, project: ProjectNo) -> bool {
    let works = state.leases().iter().any(|lease| lease.project == project)
        || state.allocations_after(None).any(|found| found.project == project);
    !works && !owns(state, project) && !lends(state, project)
}

/// A project that has lent, and owns no runtime, no longer lends, or goes.
fn lender_goes(state: &State, records: &[Record], dice: &mut Dice) -> Option<Command> {
    let mut lenders = Vec::new();
    for record in records {
        if let Body::AttachmentMade(made) = &record.body {
            lenders.push((made.source_project, made.attachment));
        }
    }
    lenders.retain(|(project, _)| state.project(*project).is_some() && !owns(state, *project));
    let gone: Vec<ProjectNo> = lenders.iter().map(|(of, _)| *of).filter(|of| !lends(state, *of)).collect();
    if let Some(project) = pick(&gone, dice) {
        return Some(Command::DeleteProject(project));
    }
    lenders.retain(|(_, attachment)| state.attachment(*attachment).is_some());
    pick(&lenders, dice).map(|(_, attachment)| Command::EndAttachment(attachment))
}

/// A project that a policy names, and that has nothing which would keep it.
pub(crate) fn named_project(state: &State, dice: &mut Dice) -> Option<ProjectNo> {
    let mut named = Vec::new();
    for put in state.sharing_policies() {
        if let Some(Sharing { basis: SharingBasis::Fixed(weights), .. }) = &put.sharing {
            named.extend(weights.iter().map(|(project, _)| *project));
        }
    }
    // Also any that may have used a runtime.
    if dice.one_in(2) {
        named.extend(state.projects().map(|(number, _)| number));
    }
    named.retain(|project| is_free(state, *project));
    pick(&named, dice)
}
