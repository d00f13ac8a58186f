//! Random sharing policies, and what their methods need: limits to share by, work that is charged, and projects that go.
//! They are drawn from dice of their own: other draws would change what every kept seed does.

use crate::apps::who;
use crate::policies::billed_work;
use crate::requests::{name, small};
use leasehold_engine::command::{PutAppPolicy, PutEntitlement, PutSharing};
use leasehold_engine::{AppInstance, AppType, Command, State};
use leasehold_model::body::{EntitlementScope, PolicyScope, ServiceTier, ServiceTiers, Sharing, SharingBasis};
use leasehold_model::rate::Decimal;
use leasehold_model::{
    AppInstanceNo, AppTypeNo, ControlPlaneScope, Identity, Instant, ProjectNo, TenantNo, UnitNo, UnitQuantity,
};
use leasehold_oracle::Dice;

/// A hundred per cent.
const ALL: u64 = 100_000_000_000;

/// A sharing policy or something for it, at times.
pub(crate) fn any(state: &State, now: Instant) -> Option<(Identity, Command)> {
    let mut dice = Dice::new(now.0.rotate_left(37) ^ state.size() << 28 ^ 0x5a4e);
    if !dice.one_in(4) {
        return None;
    }
    let dice = &mut dice;
    match dice.below(16) {
        0 | 1 => limit(state, dice),
        2 | 3 => charged(state, dice),
        4 => Some((Identity::default(), Command::DeleteProject(named_project(state, dice)?))),
        _ => policy(state, dice),
    }
}

fn pick<T: Copy>(from: &[T], dice: &mut Dice) -> Option<T> {
    (!from.is_empty()).then(|| *dice.pick(from))
}

fn projects_of(state: &State, tenant: Option<TenantNo>) -> Vec<ProjectNo> {
    let own = state.projects().filter(|(_, found)| tenant.is_none_or(|tenant| tenant == found.tenant));
    own.map(|(number, _)| number).collect()
}

/// Mostly a runtime that is shared.
fn some_instance<'a>(state: &'a State, dice: &mut Dice) -> Option<&'a AppInstance> {
    let all: Vec<&AppInstance> = state.app_instances_after(None).collect();
    let is_shared = |found: &&AppInstance| found.scope != ControlPlaneScope::Project;
    let shared: Vec<&AppInstance> = all.iter().copied().filter(is_shared).collect();
    pick(&shared, dice).filter(|_| !dice.one_in(6)).or_else(|| pick(&all, dice))
}

fn of_instance(found: &AppInstance) -> PolicyScope {
    PolicyScope { app_type: found.app_type, tenant: Some(found.tenant), app_instance: Some(found.number) }
}

fn scope(state: &State, dice: &mut Dice) -> Option<PolicyScope> {
    let apps: Vec<&AppType> = state.app_types().collect();
    let found = some_instance(state, dice);
    let app_type = found.map_or(pick(&apps, dice)?.number, |found| found.app_type);
    let tenants: Vec<TenantNo> = state.tenants().map(|tenant| tenant.number).collect();
    let tenant = found.map(|found| found.tenant).or_else(|| pick(&tenants, dice));
    let mut of = match dice.below(8) {
        0 | 1 => PolicyScope { app_type, tenant: None, app_instance: None },
        2 | 3 => PolicyScope { app_type, tenant, app_instance: None },
        _ => of_instance(found?),
    };
    match dice.below(40) {
        0 => of.app_type = AppTypeNo(small(dice, 6)),
        1 => of.tenant = Some(TenantNo(small(dice, 5))),
        2 => of.tenant = None,
        3 => of.app_instance = Some(AppInstanceNo(dice.below(12))),
        _ => {}
    }
    Some(of)
}

fn policy(state: &State, dice: &mut Dice) -> Option<(Identity, Command)> {
    let of = scope(state, dice)?;
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
        8 | 9 => SharingBasis::Fixed(percentages(&some_of(&projects, dice), dice)),
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
fn limit(state: &State, dice: &mut Dice) -> Option<(Identity, Command)> {
    let found = some_instance(state, dice)?;
    let is_platform = found.scope == ControlPlaneScope::Platform;
    let project = pick(&projects_of(state, (!is_platform).then_some(found.tenant)), dice)?;
    let app_instance = dice.one_in(2).then_some(found.number);
    let of = EntitlementScope { project: Some(project), app_instance, unit: some_unit(state, found.app_type, dice) };
    let hard = match dice.below(10) {
        0 => UnitQuantity(0),
        1..4 => UnitQuantity(1 + u128::from(dice.below(1 << 50))),
        _ => UnitQuantity(u128::from(1 + dice.below(9)) * 1_000_000_000_000),
    };
    let (soft, hard) = if dice.one_in(8) { (Some(hard), None) } else { (None, Some(hard)) };
    Some((Identity::default(), Command::PutEntitlement(PutEntitlement { of, soft, hard })))
}

/// Work on a shared runtime is charged, or no longer.
fn charged(state: &State, dice: &mut Dice) -> Option<(Identity, Command)> {
    let found = some_instance(state, dice)?;
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

/// A project that a policy names, and that has nothing which would keep it.
fn named_project(state: &State, dice: &mut Dice) -> Option<ProjectNo> {
    let mut named = Vec::new();
    for put in state.sharing_policies() {
        if let Some(Sharing { basis: SharingBasis::Fixed(weights), .. }) = &put.sharing {
            named.extend(weights.iter().map(|(project, _)| *project));
        }
    }
    let owns = |project: ProjectNo| state.app_instances_after(None).any(|found| found.project == project);
    let lends = |project: ProjectNo| state.attachments_after(None).any(|lent| lent.source_project == project);
    named.retain(|project| !owns(*project) && !lends(*project));
    pick(&named, dice)
}
