//! What the journals of rules version 6 hold: everything that app runtimes record, and the cases that are easy to fold
//! otherwise.

use crate::contents::{Has, demand};
use crate::folded;
use leasehold_engine::command::RecordUsage;
use leasehold_engine::{Command, Engine, Request, State};
use leasehold_model::body::{
    AppInstancePut, AppTypePut, Body, Granted, LedgerPosted, PostedLine, ReplacedUsage, UnitPricePut, UsageRecorded,
    UsageReport,
};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::{
    Account, AllocationSpec, AppOrigin, Batch, ControlPlaneScope, DenyCause, HolderScope, Identity, Item, Month,
    OperatingMode, Record, RuntimeBackend, UnitMeasure, UsageCharge,
};

const ADDED: &[(&str, Has)] = &[
    ("unit: time", |r| matches!(&r.body, Body::UsageUnitPut(b) if b.measure == UnitMeasure::Time)),
    ("unit: count", |r| matches!(&r.body, Body::UsageUnitPut(b) if b.measure == UnitMeasure::Count)),
    ("price: for one app", |r| price(r, |b| b.app_type.is_some())),
    ("price: for all apps", |r| price(r, |b| b.app_type.is_none())),
    ("price: from later on", |r| price(r, |b| b.from > r.stamp)),
    ("price: in CHF", |r| price(r, |b| b.currency.as_str() == "CHF")),
    ("app: third party", |r| app(r, |b| b.origin == AppOrigin::ThirdParty)),
    ("app: internal", |r| app(r, |b| b.origin == AppOrigin::Internal)),
    ("app: no units", |r| app(r, |b| b.units.iter().next().is_none())),
    ("instance: of a project", |r| instance(r, |b| b.scope == ControlPlaneScope::Project)),
    ("instance: of a tenant", |r| instance(r, |b| b.scope == ControlPlaneScope::Tenant)),
    ("instance: of the platform", |r| {
        instance(r, |b| b.scope == ControlPlaneScope::Platform && b.mode == OperatingMode::PlatformManaged)
    }),
    ("instance: slurm", |r| instance(r, |b| b.backend == RuntimeBackend::Slurm)),
    ("instance: ray", |r| instance(r, |b| b.backend == RuntimeBackend::Ray)),
    ("instance: kubernetes", |r| instance(r, |b| b.backend == RuntimeBackend::Kubernetes)),
    ("instance: serving", |r| instance(r, |b| b.backend == RuntimeBackend::Serving)),
    ("instance: bare metal", |r| instance(r, |b| b.backend == RuntimeBackend::BareMetal)),
    ("attachment: of an allocation", |r| matches!(&r.body, Body::AttachmentMade(b) if b.allocation.is_some())),
    ("attachment: of none", |r| matches!(&r.body, Body::AttachmentMade(b) if b.allocation.is_none())),
    ("cancelled: its attachment ended", |r| matches!(&r.body, Body::AllocationCancelled(_) if r.continues)),
    (
        "quota: one app instance",
        |r| matches!(&r.body, Body::QuotaPut(b) if matches!(b.scope.further.app_instance, Some(HolderScope::One(_)))),
    ),
    ("ceiling: of an app instance", |r| matches!(&r.body, Body::CeilingPut(b) if b.app_instance.is_some())),
    ("token: of app instances", |r| matches!(&r.body, Body::TokenIssued(b) if !b.scope.app_instances.is_empty())),
    ("submitted: lent", |r| submitted(r, |b| b.attachment.is_some() && b.source_project.is_some())),
    ("submitted: control plane", |r| submitted(r, |b| b.control_plane)),
    ("granted: lent", |r| granted(r, |b| b.attachment.is_some() && b.source_project.is_some())),
    ("granted: control plane of an allocation", |r| granted(r, |b| b.control_plane && b.allocation.is_some())),
    ("granted: control plane of none", |r| granted(r, |b| b.control_plane && b.allocation.is_none())),
    (
        "denied: ceiling of an app instance",
        |r| matches!(&r.body, Body::Denied(b) if matches!(b.cause, DenyCause::Ceiling { app_instance: Some(_), .. })),
    ),
    ("denied: what is lent", |r| matches!(&r.body, Body::AllocationDenied(b) if b.spec.source_project.is_some())),
    ("usage: billed", |r| usage(r, |b| b.charge == UsageCharge::Billed)),
    ("usage: reported", |r| usage(r, |b| b.charge == UsageCharge::Reported)),
    ("usage: no submitter", |r| usage(r, |b| b.no_submitter)),
    ("usage: of a user", |r| usage(r, |_| r.identity.user.is_some())),
    ("usage: under a token", |r| usage(r, |_| r.identity.token.is_some())),
    ("usage: by a tenant", |r| usage(r, |b| b.report.reporter.is_some())),
    ("usage: by an operator", |r| usage(r, |b| b.report.reporter.is_none())),
    ("usage: together", |r| usage(r, |_| r.continues)),
    ("usage: control plane", |r| usage(r, |b| b.report.control_plane)),
    ("usage: of a lent worker", |r| usage(r, |b| b.report.attachment.is_some() && b.report.allocation.is_some())),
    ("usage: fractions", |r| usage(r, |b| b.report.quantity.0 % 1_000_000_000 != 0)),
    ("usage: over two months", |r| usage(r, |b| Month::of(b.report.from) < Month::of(b.report.to))),
    ("usage: late", |r| usage(r, |b| Month::of(b.report.to) < Month::of(r.stamp))),
    ("superseded: by less", |r| superseding(r, |b, old| b.report.quantity < old.quantity)),
    ("superseded: by nothing", |r| superseding(r, |b, _| b.report.quantity.0 == 0)),
    ("superseded: of another project", |r| superseding(r, |_, old| Some(old.project) != r.identity.project)),
    ("superseded: of another month", |r| superseding(r, |b, old| Month::of(old.to) < Month::of(b.report.to))),
    ("superseded: of a lent worker", |r| superseding(r, |_, old| old.attachment.is_some())),
    ("superseded: reported", |r| superseding(r, |_, old| old.charge == UsageCharge::Reported)),
    ("unit line", |r| unit_line(r, |b, _| b.usage.0 > 0 && b.key.card.is_some())),
    ("unit line: less than before", |r| unit_line(r, |b, _| b.usage.0 < 0)),
    ("unit line: control plane", |r| unit_line(r, |b, _| b.key.control_plane)),
    ("unit line: attachment", |r| unit_line(r, |b, _| b.key.attachment.is_some())),
    ("unit line: not whole steps", |r| unit_line(r, |b, _| b.exact.denominator.digits() != [1])),
    ("unit line: of a closed month", |r| unit_line(r, |b, posted| Month::of(b.key.hour) < posted.month)),
    ("unit line: first part", |r| unit_line(r, |_, posted| !posted.complete)),
    ("line: lent", |r| line(r, |b, _| b.key.attachment.is_some() && r.identity.project != Some(b.key.project))),
    ("corrected: a unit", |r| {
        let of_unit = |account| matches!(account, Account::UnitRevenue(_));
        matches!(&r.body, Body::LedgerCorrected(b)
            if b.line.is_some() && b.replacement.iter().any(|leg| of_unit(leg.account)))
    }),
    ("invoice", |r| matches!(&r.body, Body::InvoiceIssued(b) if b.number.series == InvoiceSeries::Invoice)),
    ("prepaid: changed by usage", |r| matches!(&r.body, Body::PrepaidChanged(b) if r.continues && b.to > b.from)),
];

fn price(record: &Record, has: impl Fn(&UnitPricePut) -> bool) -> bool {
    matches!(&record.body, Body::UnitPricePut(put) if has(put))
}

fn app(record: &Record, has: impl Fn(&AppTypePut) -> bool) -> bool {
    matches!(&record.body, Body::AppTypePut(put) if has(put))
}

fn instance(record: &Record, has: impl Fn(&AppInstancePut) -> bool) -> bool {
    matches!(&record.body, Body::AppInstancePut(put) if has(put))
}

fn submitted(record: &Record, has: impl Fn(&AllocationSpec) -> bool) -> bool {
    matches!(&record.body, Body::AllocationSubmitted(submitted) if has(&submitted.spec))
}

fn granted(record: &Record, has: impl Fn(&Granted) -> bool) -> bool {
    matches!(&record.body, Body::Granted(granted) if granted.rules_version == 6 && has(granted))
}

fn usage(record: &Record, has: impl Fn(&UsageRecorded) -> bool) -> bool {
    matches!(&record.body, Body::UsageRecorded(recorded) if has(recorded))
}

fn superseding(record: &Record, has: impl Fn(&UsageRecorded, &ReplacedUsage) -> bool) -> bool {
    usage(record, |recorded| recorded.replaces.is_some_and(|old| has(recorded, &old)))
}

fn line(record: &Record, has: impl Fn(&PostedLine, &LedgerPosted) -> bool) -> bool {
    matches!(&record.body, Body::LedgerPosted(posted) if posted.lines.iter().any(|line| has(line, posted)))
}

fn unit_line(record: &Record, has: impl Fn(&PostedLine, &LedgerPosted) -> bool) -> bool {
    line(record, |line, posted| matches!(line.key.item, Item::Unit(_)) && has(line, posted))
}

#[test]
fn everything_that_rules_6_added_is_there() {
    demand(6, ADDED);
}

fn of_rules_6() -> Vec<crate::Frozen> {
    folded().into_iter().filter(|frozen| frozen.name.starts_with("rules-6/")).collect()
}

/// An app instance gets another name, and a name is used again after its instance was deleted.
#[test]
fn names_of_app_instances_change_and_are_used_again() {
    let (mut renamed, mut again) = (0, 0);
    for frozen in of_rules_6() {
        let puts = frozen.records.iter().filter_map(|record| match &record.body {
            Body::AppInstancePut(put) => Some(put.clone()),
            _ => None,
        });
        let puts: Vec<AppInstancePut> = puts.collect();
        for (place, put) in puts.iter().enumerate() {
            let before = || puts[..place].iter();
            renamed += before().filter(|old| old.app_instance == put.app_instance && old.name != put.name).count();
            again += before().filter(|old| old.app_instance != put.app_instance && old.name == put.name).count();
        }
    }
    assert!(renamed > 0 && again > 0, "{renamed} renamed, {again} used again");
}

/// A report that is sent again gets the answer of its first record, and no other one takes its ID: the engine knows all
/// IDs of these journals.
#[test]
fn usage_records_are_known_when_they_are_sent_again() {
    let mut sent = 0;
    for frozen in of_rules_6() {
        let mut state = State::new();
        frozen.records.iter().for_each(|record| state.apply(record).expect("a journal that folds"));
        let now = state.last_stamp();
        let mut engine = Engine::new(state);
        for record in &frozen.records {
            let Body::UsageRecorded(recorded) = &record.body else { continue };
            let Identity { tenant: Some(tenant), project: Some(project), user, .. } = record.identity else {
                panic!("{}: usage without a project", frozen.name)
            };
            let report = recorded.report.clone();
            let identity = Identity { tenant: report.reporter, ..Identity::default() };
            let mut decide = |report: UsageReport| {
                let known_to = frozen.records.len() as u64;
                let (replaces, replaced_creditor) = (recorded.replaces, recorded.replaced_creditor);
                let named = None;
                let again = RecordUsage { tenant, project, user, report, replaces, replaced_creditor, named, known_to };
                let mut batch = Batch::new(known_to);
                engine.decide(now, &Request::new(identity.clone(), Command::RecordUsage(again)), &mut batch)
            };
            let answer = decide(report.clone()).unwrap_or_else(|refusal| panic!("{}: {refusal}", frozen.name));
            assert!(answer.repeated, "{}: record {}", frozen.name, record.sequence);
            assert_eq!(answer.records.first, record.sequence, "{}", frozen.name);
            let other = UsageReport { correlation: report.correlation ^ 1, ..report };
            let refusal = decide(other).expect_err("an ID is recorded once");
            assert_eq!(refusal.code(), "usage_id_taken", "{}", frozen.name);
            sent += 1;
        }
    }
    assert!(sent > 60, "only {sent} records");
}
