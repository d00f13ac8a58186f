//! What the journals of rules version 7 hold: everything that entitlements and policies record, and the cases that are
//! easy to fold otherwise.

use crate::contents::{Has, demand, named};
use crate::{Frozen, folded};
use leasehold_engine::command::{PutEntitlement, RecordUsage};
use leasehold_engine::{Command, Engine, Request, State};
use leasehold_model::body::{
    AppPolicyPut, Attribution, Body, EntitlementPut, EntitlementScope, EntitlementWarned, PolicyScope, ReplacedUsage,
    UsageKey, UsageRecorded, UsageRefused,
};
use leasehold_model::limits::USAGE_QUANTITY_MAX;
use leasehold_model::{Batch, Identity, Month, ProjectNo, Record, UsageCharge};
use std::collections::{BTreeMap, BTreeSet};

const ADDED: &[(&str, Has)] = &[
    ("entitlement: of a project", |r| entitled(r, |b| b.of.app_instance.is_none())),
    ("entitlement: on an app instance", |r| entitled(r, |b| b.of.project.is_none())),
    ("entitlement: of a project on an app instance", |r| entitled(r, |b| is_of_both(b.of))),
    ("entitlement: only soft", |r| entitled(r, |b| b.hard.is_none())),
    ("entitlement: only hard", |r| entitled(r, |b| b.soft.is_none())),
    ("entitlement: soft and hard", |r| entitled(r, |b| b.soft.is_some() && b.hard.is_some())),
    ("entitlement: nothing", |r| entitled(r, |b| b.hard.is_some_and(|hard| hard.0 == 0))),
    ("entitlement: fractions", |r| entitled(r, |b| b.hard.is_some_and(|hard| hard.0 % 1_000_000_000 != 0))),
    ("entitlement deleted: of a project", |r| ended(r, |of| of.app_instance.is_none())),
    ("entitlement deleted: on an app instance", |r| ended(r, |of| of.project.is_none())),
    ("entitlement deleted: of a project on an app instance", |r| ended(r, is_of_both)),
    ("warned: below a hard limit", |r| warned(r, |_| r.continues)),
    ("warned: of a project", |r| warned(r, |b| b.of.app_instance.is_none())),
    ("warned: on an app instance", |r| warned(r, |b| b.of.project.is_none())),
    ("warned: of a project on an app instance", |r| warned(r, |b| is_of_both(b.of))),
    ("refused: by that of a project", |r| refused(r, |b| b.of.app_instance.is_none())),
    ("refused: by that on an app instance", |r| refused(r, |b| b.of.project.is_none())),
    ("refused: by that of a project on an app instance", |r| refused(r, |b| is_of_both(b.of))),
    ("refused: of a user", |r| refused(r, |_| r.identity.user.is_some())),
    ("refused: under a token", |r| refused(r, |_| r.identity.token.is_some())),
    ("refused: by a tenant", |r| refused(r, |b| b.report.reporter.is_some())),
    ("refused: by an operator", |r| refused(r, |b| b.report.reporter.is_none())),
    ("refused: control plane", |r| refused(r, |b| b.report.control_plane)),
    ("refused: superseding", |r| refused(r, |b| b.report.supersedes.is_some())),
    ("refused: for a billionth", |r| refused(r, |b| b.used.0 + b.report.quantity.0 == b.hard.0 + 1)),
    ("refused: above a lowered limit", |r| refused(r, |b| b.used.0 > b.hard.0)),
    ("refused: in a past month", |r| refused(r, |b| b.month < Month::of(r.stamp))),
    ("policy: of an app", |r| policy(r, |b| b.of.tenant.is_none())),
    ("policy: of an app for a tenant", |r| policy(r, |b| b.of.tenant.is_some() && b.of.app_instance.is_none())),
    ("policy: of an app instance", |r| policy(r, |b| b.of.app_instance.is_some())),
    ("policy: units", |r| policy(r, |b| b.units.is_some())),
    ("policy: nothing", |r| policy(r, |b| b.units.is_none() && b.attribution.is_none())),
    ("policy: owner", |r| policy(r, |b| b.attribution == Some(Attribution::Owner))),
    ("policy: caller", |r| policy(r, |b| b.attribution == Some(Attribution::Caller))),
    ("policy: a third version", |r| policy(r, |b| b.version >= 3)),
    ("usage: moved to another project", |r| moved(r, |_, old| Some(old.project) != r.identity.project)),
    ("usage: moved to a later month", |r| moved(r, |b, old| Month::of(old.to) < Month::of(b.report.to))),
    ("usage: moved to an earlier month", |r| moved(r, |b, old| Month::of(old.to) > Month::of(b.report.to))),
    ("head: protected", |r| matches!(&r.body, Body::HeadProtected(_))),
    ("cancelled: its attachment ended", |r| matches!(&r.body, Body::AllocationCancelled(_) if r.continues)),
];

fn is_of_both(of: EntitlementScope) -> bool {
    of.project.is_some() && of.app_instance.is_some()
}

fn entitled(record: &Record, has: impl Fn(&EntitlementPut) -> bool) -> bool {
    matches!(&record.body, Body::EntitlementPut(put) if has(put))
}

fn ended(record: &Record, has: impl Fn(EntitlementScope) -> bool) -> bool {
    matches!(&record.body, Body::EntitlementDeleted(gone) if has(gone.of))
}

fn warned(record: &Record, has: impl Fn(&EntitlementWarned) -> bool) -> bool {
    matches!(&record.body, Body::EntitlementWarned(warned) if has(warned))
}

fn refused(record: &Record, has: impl Fn(&UsageRefused) -> bool) -> bool {
    matches!(&record.body, Body::UsageRefused(refused) if has(refused))
}

fn policy(record: &Record, has: impl Fn(&AppPolicyPut) -> bool) -> bool {
    matches!(&record.body, Body::AppPolicyPut(put) if has(put))
}

fn moved(record: &Record, has: impl Fn(&UsageRecorded, &ReplacedUsage) -> bool) -> bool {
    let is_moved = |recorded: &UsageRecorded| recorded.replaces.is_some_and(|old| has(recorded, &old));
    matches!(&record.body, Body::UsageRecorded(recorded) if recorded.charge == UsageCharge::Billed && is_moved(recorded))
}

#[test]
fn everything_that_rules_7_added_is_there() {
    demand(7, ADDED);
}

fn of_rules_7() -> Vec<Frozen> {
    folded().into_iter().filter(|frozen| frozen.name.starts_with("rules-7/")).collect()
}

/// The states before and after each record.
fn each_step(records: &[Record], mut see: impl FnMut(&State, &Record, &State)) {
    let mut before = State::new();
    for record in records {
        let mut after = before.clone();
        after.apply(record).expect("a journal that folds");
        see(&before, record, &after);
        before = after;
    }
}

/// They go with their project, app instance, app and tenant; of a tenant also those of others on its app instances.
#[test]
fn limits_go_with_what_they_are_about() {
    let mut gone: BTreeSet<&str> = BTreeSet::new();
    for frozen in of_rules_7() {
        each_step(&frozen.records, |before, record, after| {
            let (scopes, policies) = (scopes_in(before), policies_in(before));
            let lost: Vec<_> = scopes.difference(&scopes_in(after)).copied().collect();
            let lost_policies = policies.difference(&policies_in(after)).count();
            if lost.is_empty() && lost_policies == 0 {
                return;
            }
            let (word, own) = (record.body.word(), record.identity.tenant);
            assert!(word.ends_with(".deleted"), "{}: {word}", frozen.name);
            let of_other =
                |of: &EntitlementScope| before.entitlement(*of).is_some_and(|found| Some(found.tenant) != own);
            match word {
                "project.deleted" => drop(gone.insert("with a project")),
                "app_type.deleted" => drop(gone.insert("with an app")),
                "app_instance.deleted" if lost_policies > 0 => drop(gone.insert("with an app instance: policies")),
                "app_instance.deleted" => drop(gone.insert("with an app instance")),
                "tenant.deleted" if lost.iter().any(of_other) => drop(gone.insert("with a tenant: of another one")),
                "tenant.deleted" if lost.is_empty() => drop(gone.insert("with a tenant: policies")),
                _ => {}
            }
        });
    }
    let expected = [
        "with a project",
        "with a tenant: of another one",
        "with a tenant: policies",
        "with an app",
        "with an app instance",
        "with an app instance: policies",
    ];
    assert!(gone.iter().eq(expected.iter()), "{gone:?}");
}

fn scopes_in(state: &State) -> BTreeSet<EntitlementScope> {
    state.entitlements().map(|found| found.of).collect()
}

fn policies_in(state: &State) -> BTreeSet<PolicyScope> {
    state.app_policies().map(|found| found.of).collect()
}

/// Usage from before an entitlement was set counts, limits are lowered below what is used, and months are warned again.
#[test]
fn entitlements_are_set_again() {
    let (mut after_usage, mut below, mut again) = (0, 0, 0);
    for frozen in of_rules_7() {
        each_step(&frozen.records, |before, record, after| {
            let Body::EntitlementPut(put) = &record.body else { return };
            let months = |state: &State| state.entitlement(put.of).map(|found| found.months().collect::<Vec<_>>());
            let (old, new) = (months(before), months(after).expect("it was set"));
            let most = new.iter().map(|(_, entitled)| entitled.used.0).max();
            after_usage += u32::from(old.is_none() && most.is_some());
            below += u32::from(old.is_some() && put.hard.is_some_and(|hard| most > Some(hard.0)));
            again += u32::from(old.is_some_and(|old| old.iter().any(|(_, entitled)| entitled.warned)));
            assert!(new.iter().all(|(_, entitled)| !entitled.warned), "{}: record {}", frozen.name, record.sequence);
        });
    }
    assert!(after_usage > 5 && below > 1 && again > 3, "{after_usage} after usage, {below} below it, {again} again");
}

/// What an entitlement counts in a month is the sum of the billed records that were not superseded.
#[test]
fn entitlements_count_what_was_recorded() {
    let mut counted = 0;
    for frozen in of_rules_7() {
        let mut state = State::new();
        let mut said: BTreeMap<u64, (Option<ProjectNo>, &UsageRecorded)> = BTreeMap::new();
        for record in &frozen.records {
            state.apply(record).expect("a journal that folds");
            let Body::UsageRecorded(recorded) = &record.body else { continue };
            recorded.replaces.map(|old| said.remove(&old.sequence));
            said.insert(record.sequence, (record.identity.project, recorded));
        }
        for found in state.entitlements() {
            let months = said.values().filter_map(|(project, recorded)| {
                let (of, report) = (found.of, &recorded.report);
                let counts = recorded.charge == UsageCharge::Billed
                    && of.unit == report.unit
                    && of.project.is_none_or(|own| *project == Some(own))
                    && of.app_instance.is_none_or(|own| report.app_instance == own);
                counts.then_some((Month::of(report.to), report.quantity.0))
            });
            let mut sums: BTreeMap<Month, u128> = BTreeMap::new();
            months.for_each(|(month, quantity)| *sums.entry(month).or_default() += quantity);
            for (month, entitled) in found.months() {
                assert_eq!(entitled.used.0, sums.get(&month).copied().unwrap_or(0), "{}: {:?}", frozen.name, found.of);
                counted += 1;
            }
        }
    }
    assert!(counted > 10, "only {counted} months");
}

/// The ID of refused usage is not taken: the same content is accepted later, and other content, too.
#[test]
fn refused_usage_is_accepted_later() {
    let (mut same, mut other) = (0, 0);
    for frozen in of_rules_7() {
        let mut last: BTreeMap<_, u64> = BTreeMap::new();
        for record in &frozen.records {
            if let Body::UsageRefused(refused) = &record.body {
                last.insert(refused.report.key(), refused.report.payload(&record.identity));
            } else if let Body::UsageRecorded(recorded) = &record.body
                && let Some(before) = last.get(&recorded.report.key())
            {
                let is_same = *before == recorded.report.payload(&record.identity);
                (same, other) = (same + u32::from(is_same), other + u32::from(!is_same));
            }
        }
    }
    assert!(same >= 4 && other >= 2, "{same} with the same content, {other} with other content");
}

/// What was refused last is remembered: the same content is refused again without another record, as long as the limit
/// stands, and is accepted when it is raised.
#[test]
fn refused_usage_is_known_when_it_is_sent_again() {
    let (mut refused_again, mut accepted) = (0, 0);
    for frozen in of_rules_7() {
        let mut state = State::new();
        frozen.records.iter().for_each(|record| state.apply(record).expect("a journal that folds"));
        let restored = State::from_snapshot(&state.to_snapshot()).expect("a snapshot of the state");
        let known = known_ids(&frozen.records);
        for (record, refused) in frozen.records.iter().filter_map(with_refused) {
            let of_chain = refused.report.superseded_key();
            if state.entitlement(refused.of).is_none() || known.contains(&refused.report.key()) || of_chain.is_some() {
                continue;
            }
            let (now, size) = (state.last_stamp(), frozen.records.len() as u64);
            let Identity { tenant: Some(tenant), project: Some(project), user, .. } = record.identity else {
                panic!("{}: usage without a project", frozen.name)
            };
            let identity = Identity { tenant: refused.report.reporter, ..Identity::default() };
            let report = refused.report.clone();
            let again = RecordUsage {
                tenant,
                project,
                user,
                report,
                replaces: None,
                replaced_creditor: None,
                named: None,
                known_to: size,
            };
            let again = Request::new(identity, Command::RecordUsage(again));
            let mut engine = Engine::new(restored.clone());
            let mut batch = Batch::new(size);
            // Less may be used by now, or its project is gone.
            let is_refused =
                engine.decide(now, &again, &mut batch).is_err_and(|why| why.code() == "entitlement_exceeded");
            if !is_refused {
                continue;
            }
            refused_again += 1;
            let raised = PutEntitlement { of: refused.of, soft: None, hard: Some(USAGE_QUANTITY_MAX) };
            let raised = Request::new(Identity::default(), Command::PutEntitlement(raised));
            engine.decide(now, &raised, &mut batch).expect("a higher limit");
            accepted += u32::from(engine.decide(now, &again, &mut batch).is_ok());
        }
    }
    assert!(refused_again > 5 && accepted > 3, "{refused_again} refused again, {accepted} accepted then");
}

fn with_refused(record: &Record) -> Option<(&Record, &UsageRefused)> {
    if let Body::UsageRefused(refused) = &record.body { Some((record, refused)) } else { None }
}

fn known_ids(records: &[Record]) -> BTreeSet<UsageKey> {
    let key = |record: &Record| match &record.body {
        Body::UsageRecorded(recorded) => Some(recorded.report.key()),
        _ => None,
    };
    records.iter().filter_map(key).collect()
}

/// Usage of a project's own runtime by another project, which pays for it.
#[test]
fn callers_pay_under_a_policy() {
    let mut paid: BTreeSet<(String, ProjectNo)> = BTreeSet::new();
    for frozen in of_rules_7() {
        each_step(&frozen.records, |before, record, _| {
            let Body::UsageRecorded(recorded) = &record.body else { return };
            let Some(instance) = before.app_instance(recorded.report.app_instance) else { return };
            let project = record.identity.project.expect("usage has a project");
            let is_of_caller = before.attribution_for(instance) == Attribution::Caller && project != instance.project;
            if is_of_caller && before.project(instance.project).map(|found| found.tenant) == record.identity.tenant {
                assert_eq!(recorded.charge, UsageCharge::Billed, "{}", frozen.name);
                paid.insert((frozen.name.clone(), project));
            }
        });
    }
    assert!(paid.len() > 3, "{paid:?}");
}

/// Work that has waited since rules version 5 names a source project, and its own project pays.
#[test]
fn work_of_earlier_rules_is_paid_by_its_own_project() {
    let records = named("rules-7/upgraded-lent");
    let mut state = State::new();
    let mut paid = 0;
    for record in &records {
        state.apply(record).expect("a journal that folds");
        let Body::Granted(granted) = &record.body else { continue };
        let Some(placed) = granted.allocation.and_then(|number| state.allocation(number)) else { continue };
        if granted.rules_version == 7 && placed.spec.source_project.is_some() {
            let lease = state.lease(granted.first_lease).expect("it was granted");
            assert_eq!(Some(lease.payer), record.identity.project);
            assert_ne!(Some(lease.payer), placed.spec.source_project);
            paid += 1;
        }
    }
    assert!(paid > 0, "nothing that named a source project was placed");
}
