//! Random policies about the usage of app runtimes. They are drawn from dice of their own: other draws would change what
//! every kept seed does.

use crate::apps::who;
use crate::requests::small;
use leasehold_engine::command::PutAppPolicy;
use leasehold_engine::{AppInstance, AppType, Command, State};
use leasehold_model::body::{Attribution, PolicyScope};
use leasehold_model::{
    AppInstanceNo, AppTypeNo, ControlPlaneScope, Identity, Instant, ProjectNo, TenantNo, UnitList, UnitNo,
};
use leasehold_oracle::Dice;

/// A policy, or the end of what one is for, at times.
pub(crate) fn any(state: &State, now: Instant) -> Option<(Identity, Command)> {
    let mut dice = Dice::new(now.0.rotate_left(41) ^ state.size() << 27 ^ 0x9011c);
    if !dice.one_in(12) {
        return None;
    }
    let dice = &mut dice;
    if dice.one_in(16) {
        return end(state, dice).map(|command| (Identity::default(), command));
    }
    let of = scope(state, dice)?;
    let tenant = of.tenant.unwrap_or(TenantNo(small(dice, 4)));
    let identity = if of.tenant.is_none() && !dice.one_in(6) { Identity::default() } else { who(tenant, dice) };
    let units = units(state, of.app_type, dice);
    let attribution = match dice.below(5) {
        0 => Some(Attribution::Owner),
        1 | 2 => Some(Attribution::Caller),
        _ => None,
    };
    let billed_work = dice.one_in(3).then(|| billed_work(state, of.app_type, dice)).flatten();
    Some((identity, Command::PutAppPolicy(PutAppPolicy { of, units, attribution, billed_work })))
}

/// One of several, if there are any.
pub(crate) fn pick<T: Copy>(from: &[T], dice: &mut Dice) -> Option<T> {
    (!from.is_empty()).then(|| *dice.pick(from))
}

fn scope(state: &State, dice: &mut Dice) -> Option<PolicyScope> {
    let apps: Vec<&AppType> = state.app_types().collect();
    let app_type = pick(&apps, dice)?.number;
    let tenants: Vec<TenantNo> = state.tenants().map(|tenant| tenant.number).collect();
    let tenant = pick(&tenants, dice);
    let instances: Vec<&AppInstance> = state.app_instances_after(None).collect();
    let own: Vec<&AppInstance> =
        instances.iter().copied().filter(|found| found.scope == ControlPlaneScope::Project).collect();
    let instance = pick(&own, dice).filter(|_| !dice.one_in(3)).or_else(|| pick(&instances, dice));
    let of = match dice.below(7) {
        0 | 1 => PolicyScope { app_type, tenant: None, app_instance: None },
        2 | 3 => PolicyScope { app_type, tenant, app_instance: None },
        _ => of_instance(instance?),
    };
    Some(at_times_mistaken(of, dice))
}

pub(crate) fn of_instance(found: &AppInstance) -> PolicyScope {
    PolicyScope { app_type: found.app_type, tenant: Some(found.tenant), app_instance: Some(found.number) }
}

/// The same scope or, at times, one that may not exist.
pub(crate) fn at_times_mistaken(mut of: PolicyScope, dice: &mut Dice) -> PolicyScope {
    match dice.below(40) {
        0 => of.app_type = AppTypeNo(small(dice, 6)),
        1 => of.tenant = Some(TenantNo(small(dice, 5))),
        2 => of.tenant = None,
        3 => of.app_instance = Some(AppInstanceNo(dice.below(12))),
        _ => {}
    }
    of
}

/// Mostly all units of the app, or all but one.
fn units(state: &State, app: AppTypeNo, dice: &mut Dice) -> Option<UnitList> {
    let mut units: Vec<UnitNo> = state.app_type(app).map_or(Vec::new(), |found| found.units.iter().collect());
    match dice.below(8) {
        0..4 => return None,
        4 | 5 if !units.is_empty() => {
            units.remove(dice.index(units.len()));
        }
        6 if dice.one_in(3) => units.push(UnitNo(small(dice, 70))),
        7 if dice.one_in(6) => units.clear(),
        _ => {}
    }
    UnitList::new(units)
}

/// Mostly some units of the app.
pub(crate) fn billed_work(state: &State, app: AppTypeNo, dice: &mut Dice) -> Option<UnitList> {
    let mut units: Vec<UnitNo> = state.app_type(app).map_or(Vec::new(), |found| found.units.iter().collect());
    match dice.below(10) {
        0 => units.clear(),
        1 => units.push(UnitNo(small(dice, 70))),
        2..5 if !units.is_empty() => {
            units.remove(dice.index(units.len()));
        }
        _ => {}
    }
    UnitList::new(units)
}

/// The end of an app, an instance, a project or a tenant.
fn end(state: &State, dice: &mut Dice) -> Option<Command> {
    let of = pick(&state.app_policies().map(|put| put.of).collect::<Vec<_>>(), dice)?;
    let unused = |app: &AppTypeNo| !state.app_instances_after(None).any(|found| found.app_type == *app);
    let app = of.app_type;
    if unused(&app) || dice.one_in(4) {
        return Some(Command::DeleteAppType(app));
    }
    match (of.app_instance, of.tenant) {
        (Some(number), _) => Some(Command::DeleteAppInstance(number)),
        (None, Some(tenant)) => Some(Command::DeleteTenant(tenant)),
        (None, None) => Some(Command::DeleteProject(ProjectNo(small(dice, 8)))),
    }
}
