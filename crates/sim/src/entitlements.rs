//! Random entitlements, mostly about what was used just now and with limits close to it, and quantities that reach them.
//! They are drawn from dice of their own: other draws would change what every kept seed does.

use crate::apps::who;
use crate::requests::small;
use leasehold_engine::command::{PutEntitlement, RecordUsage};
use leasehold_engine::{Command, Entitlement, State};
use leasehold_model::body::{EntitlementScope, UsageRecorded, UsageRefused};
use leasehold_model::limits::USAGE_QUANTITY_MAX;
use leasehold_model::{
    AppInstanceNo, Body, Identity, Instant, Month, ProjectNo, Record, TenantNo, UnitNo, UnitQuantity, UsageCharge,
};
use leasehold_oracle::Dice;

/// One unit.
const ONE: u128 = 1_000_000_000;

/// A command about entitlements, or one that ends some, at times.
pub(crate) fn any(state: &State, records: &[Record], now: Instant) -> Option<(Identity, Command)> {
    let mut dice = Dice::new(now.0.rotate_left(17) ^ state.size() << 25 ^ 0xe171);
    if !dice.one_in(6) {
        return None;
    }
    let dice = &mut dice;
    let command = match dice.below(32) {
        0..13 => about_usage(records, dice)?,
        13..19 => for_refused(state, records, dice)?,
        19..25 => changed(state, dice)?,
        25 if dice.one_in(2) => faulty(state, dice),
        25 => of_idle_project(state, dice)?,
        26 | 27 => Command::DeleteEntitlement(some_entitlement(state, dice)?.of),
        28 => Command::DeleteEntitlement(any_scope(dice)),
        29 => Command::DeleteProject(of_untied_project(state, dice)?),
        30 => Command::DeleteAppInstance(some_entitlement(state, dice)?.of.app_instance?),
        _ => Command::DeleteTenant(some_entitlement(state, dice)?.tenant),
    };
    let of = if let Command::PutEntitlement(put) = &command {
        Some(put.of)
    } else if let Command::DeleteEntitlement(of) = &command {
        Some(*of)
    } else {
        None
    };
    let tenant = of.and_then(|of| tenant_of(state, of));
    let identity =
        if of.is_some() { who(tenant.unwrap_or(TenantNo(small(dice, 4))), dice) } else { Identity::default() };
    Some((identity, command))
}

fn tenant_of(state: &State, of: EntitlementScope) -> Option<TenantNo> {
    let of_project = of.project.and_then(|project| state.project(project)).map(|found| found.tenant);
    of_project.or_else(|| of.app_instance.and_then(|app| state.app_instance(app)).map(|found| found.tenant))
}

fn some_entitlement<'a>(state: &'a State, dice: &mut Dice) -> Option<&'a Entitlement> {
    let all: Vec<&Entitlement> = state.entitlements().collect();
    (!all.is_empty()).then(|| *dice.pick(&all))
}

/// Whether a project has app instances, and cannot be deleted.
fn is_tied(state: &State, project: ProjectNo) -> bool {
    state.app_instances_after(None).any(|found| found.project == project)
}

/// An entitled project that may be deleted.
fn of_untied_project(state: &State, dice: &mut Dice) -> Option<ProjectNo> {
    let projects = state.entitlements().filter_map(|known| known.of.project);
    let untied: Vec<ProjectNo> = projects.filter(|project| !is_tied(state, *project)).collect();
    (!untied.is_empty()).then(|| *dice.pick(&untied))
}

/// An entitlement of a project that has no app instances of its own.
fn of_idle_project(state: &State, dice: &mut Dice) -> Option<Command> {
    let projects = state.projects().map(|(number, _)| number);
    let idle: Vec<ProjectNo> = projects.filter(|project| !is_tied(state, *project)).collect();
    let project = if idle.is_empty() { None } else { Some(*dice.pick(&idle)) }?;
    let of = EntitlementScope { project: Some(project), app_instance: None, unit: UnitNo(2 * small(dice, 3)) };
    let (soft, hard) = limits(0, dice);
    Some(Command::PutEntitlement(PutEntitlement { of, soft, hard }))
}

fn any_scope(dice: &mut Dice) -> EntitlementScope {
    EntitlementScope {
        project: (!dice.one_in(3)).then(|| ProjectNo(small(dice, 8))),
        app_instance: (!dice.one_in(3)).then(|| AppInstanceNo(dice.below(10))),
        unit: UnitNo(small(dice, 5)),
    }
}

/// What was used in a month of what an entitlement is about.
fn used(records: &[Record], of: EntitlementScope, month: Month) -> u128 {
    let signed = |project: Option<ProjectNo>, app: AppInstanceNo, unit: UnitNo, to: Instant, charge: UsageCharge| {
        let is_it = of.project.is_none_or(|own| project == Some(own))
            && of.app_instance.is_none_or(|own| app == own)
            && of.unit == unit;
        is_it && Month::of(to) == month && charge == UsageCharge::Billed
    };
    let mut sum: u128 = 0;
    for record in records {
        let Body::UsageRecorded(UsageRecorded { report, charge, replaces, .. }) = &record.body else { continue };
        if signed(record.identity.project, report.app_instance, report.unit, report.to, *charge) {
            sum += report.quantity.0;
        }
        if let Some(old) = replaces
            && signed(Some(old.project), report.app_instance, report.unit, old.to, old.charge)
        {
            sum = sum.saturating_sub(old.quantity.0);
        }
    }
    sum
}

fn some_units(dice: &mut Dice) -> u128 {
    u128::from(dice.below(60)) * ONE
}

/// Limits near what is used.
fn limits(used: u128, dice: &mut Dice) -> (Option<UnitQuantity>, Option<UnitQuantity>) {
    let hard = match dice.below(10) {
        0 => Some(used),
        1 => Some(used / 2),
        2 => Some(used + 1),
        3..7 => Some(used + some_units(dice)),
        _ => None,
    };
    let top = hard.unwrap_or(used + some_units(dice));
    let soft = match dice.below(8) {
        0 => Some(top),
        1 => Some(used.min(top)),
        2 => Some((used / 2).min(top)),
        3..5 => Some(used.saturating_add(some_units(dice) / 2).min(top)),
        _ if hard.is_none() => Some(top),
        _ => None,
    };
    let quantity = |limit: u128| UnitQuantity(limit.min(USAGE_QUANTITY_MAX.0));
    (soft.map(quantity), hard.map(quantity))
}

/// An entitlement for a project, an instance or both, of which something was used.
fn about_usage(records: &[Record], dice: &mut Dice) -> Option<Command> {
    let is_billed = |record: &&Record| matches!(&record.body, Body::UsageRecorded(of) if of.charge == UsageCharge::Billed || record.sequence.is_multiple_of(5));
    let all: Vec<&Record> = records.iter().filter(is_billed).collect();
    if all.is_empty() {
        return None;
    }
    let latest = &all[all.len().saturating_sub(6)..];
    let record = *dice.pick(latest);
    let Body::UsageRecorded(recorded) = &record.body else { return None };
    let report = &recorded.report;
    let level = dice.below(3);
    let of = EntitlementScope {
        project: record.identity.project.filter(|_| level != 1),
        app_instance: (level != 0).then_some(report.app_instance),
        unit: report.unit,
    };
    let (soft, hard) = limits(used(records, of, Month::of(report.to)), dice);
    Some(Command::PutEntitlement(PutEntitlement { of, soft, hard }))
}

/// The limit that refused something is raised: enough, just not enough, or far beyond; or the entitlement goes.
fn for_refused(state: &State, records: &[Record], dice: &mut Dice) -> Option<Command> {
    let all: Vec<&UsageRefused> = records.iter().filter_map(refused).map(|(_, refused)| refused).collect();
    if all.is_empty() {
        return None;
    }
    let one = *dice.pick(&all[all.len().saturating_sub(4)..]);
    let of = one.of;
    let known = state.entitlement(of)?;
    let needed = known.in_month(one.month).used.0 + one.report.quantity.0;
    let hard = match dice.below(7) {
        0 | 1 => needed,
        2 => needed.saturating_sub(1),
        3 => needed + some_units(dice),
        4 => known.hard.map_or(needed, |hard| hard.0),
        5 => known.hard.map_or(needed, |hard| hard.0 + 1),
        _ => return Some(Command::DeleteEntitlement(of)),
    };
    let hard = UnitQuantity(hard.min(USAGE_QUANTITY_MAX.0));
    let soft = known.soft.filter(|soft| *soft <= hard);
    Some(Command::PutEntitlement(PutEntitlement { of, soft, hard: Some(hard) }))
}

/// An entitlement is set again: with the same limits, or with others near what is used.
fn changed(state: &State, dice: &mut Dice) -> Option<Command> {
    let known = some_entitlement(state, dice)?;
    let months: Vec<u128> = known.months().map(|(_, entitled)| entitled.used.0).collect();
    let used = if months.is_empty() { 0 } else { *dice.pick(&months) };
    let (soft, hard) = if dice.one_in(3) { (known.soft, known.hard) } else { limits(used, dice) };
    Some(Command::PutEntitlement(PutEntitlement { of: known.of, soft, hard }))
}

fn faulty(state: &State, dice: &mut Dice) -> Command {
    let mut of = some_entitlement(state, dice).map_or_else(|| any_scope(dice), |known| known.of);
    let (mut soft, mut hard) = (None, Some(UnitQuantity(some_units(dice))));
    match dice.below(8) {
        0 => hard = None,
        1 => soft = hard.map(|hard| UnitQuantity(hard.0 + 1)),
        2 => hard = Some(UnitQuantity(USAGE_QUANTITY_MAX.0 + 1)),
        3 => (of.project, of.app_instance) = (None, None),
        4 => of.unit = UnitNo(small(dice, 80)),
        5 => of.app_instance = Some(AppInstanceNo(dice.below(12))),
        _ => of = any_scope(dice),
    }
    Command::PutEntitlement(PutEntitlement { of, soft, hard })
}

/// Usage that was refused, with its record.
pub(crate) fn refused(record: &Record) -> Option<(&Record, &UsageRefused)> {
    if let Body::UsageRefused(refused) = &record.body { Some((record, refused)) } else { None }
}

/// Often a quantity that reaches a limit exactly, is just beyond it, or just within.
pub(crate) fn reach_a_limit(state: &State, usage: &mut RecordUsage, old: Option<UnitQuantity>, dice: &mut Dice) {
    let report = &mut usage.report;
    let (project, app) = (usage.project, report.app_instance);
    let scopes = [(Some(project), None), (None, Some(app)), (Some(project), Some(app))];
    let mut limits = Vec::new();
    for (project, app_instance) in scopes {
        let Some(known) = state.entitlement(EntitlementScope { project, app_instance, unit: report.unit }) else {
            continue;
        };
        let used = known.in_month(Month::of(report.to)).used.0;
        limits.extend(known.soft.into_iter().chain(known.hard).map(|limit| (limit.0, used)));
    }
    if limits.is_empty() || !dice.one_in(2) {
        return;
    }
    let (limit, used) = *dice.pick(&limits);
    let old = old.map_or(0, |old| old.0);
    let rest = (limit + old).saturating_sub(used);
    let quantity = match dice.below(8) {
        0..3 => rest,
        3 | 4 => rest + 1,
        5 => rest.saturating_sub(1),
        6 => old,
        _ => rest.min(old.max(rest) / 2),
    };
    report.quantity = UnitQuantity(quantity.min(USAGE_QUANTITY_MAX.0));
}
