//! Arbitrary records of the registry of app runtimes.

use crate::arbitrary::{decimals, instants, names, u32s, u64s, words};
use crate::arbitrary_ledger::{currencies, months};
use leasehold_model::body::*;
use leasehold_model::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};

fn units() -> impl Strategy<Value = UnitNo> {
    u32s().prop_map(UnitNo)
}
fn app_types() -> impl Strategy<Value = AppTypeNo> {
    u32s().prop_map(AppTypeNo)
}
fn apps() -> impl Strategy<Value = AppInstanceNo> {
    u64s().prop_map(AppInstanceNo)
}

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    let lists = vec(units(), 0..5).prop_map(|units| UnitList::new(units).expect("few units"));
    let kinds = (words(OperatingMode::ALL), words(ControlPlaneScope::ALL), words(RuntimeBackend::ALL));
    prop_oneof![
        (units(), names(), words(UnitMeasure::ALL)).prop_map(|(unit, name, measure)| UsageUnitPut {
            unit,
            name,
            measure
        }
        .into()),
        (u32s(), units(), option::of(app_types()), currencies(), decimals(limits::UNIT_PRICE_MAX), instants())
            .prop_map(|(price_no, unit, app_type, currency, price, from)| {
                UnitPricePut { price_no, unit, app_type, currency, price, from }.into()
            }),
        (app_types(), names(), words(AppOrigin::ALL), lists).prop_map(|(app_type, slug, origin, units)| AppTypePut {
            app_type,
            slug,
            origin,
            units
        }
        .into()),
        app_types().prop_map(|app_type| AppTypeDeleted { app_type }.into()),
        ((apps(), u32s().prop_map(ProjectNo), names(), app_types()), kinds).prop_map(
            |((app_instance, project, name, app_type), (mode, scope, backend))| {
                AppInstancePut { app_instance, project, name, app_type, mode, scope, backend }.into()
            }
        ),
        apps().prop_map(|app_instance| AppInstanceDeleted { app_instance }.into()),
        (u64s(), apps(), u32s(), option::of(u64s())).prop_map(|(attachment, app_instance, source, allocation)| {
            AttachmentMade {
                attachment: AttachmentNo(attachment),
                app_instance,
                source_project: ProjectNo(source),
                allocation: allocation.map(AllocationNo),
            }
            .into()
        }),
        u64s().prop_map(|attachment| AttachmentEnded { attachment: AttachmentNo(attachment) }.into()),
        usage(),
        entitlements(),
        policies(),
        crate::arbitrary_sharing::bodies(),
    ]
    .boxed()
}

fn reports() -> impl Strategy<Value = (UsageReport, UsageCharge, bool, Option<ReplacedUsage>)> {
    let who = (option::of(u32s().prop_map(TenantNo)), names(), names(), apps(), units());
    let what = (quantities(), instants(), instants(), any::<u128>(), any::<bool>());
    let lent =
        (option::of(u64s().prop_map(AttachmentNo)), option::of(u64s().prop_map(AllocationNo)), option::of(names()));
    let old = (u64s(), u32s(), quantities(), instants(), instants(), any::<bool>(), words(UsageCharge::ALL));
    let replaced = old.prop_map(|(sequence, project, quantity, from, to, control_plane, charge)| ReplacedUsage {
        sequence,
        project: ProjectNo(project),
        quantity,
        from,
        to,
        control_plane,
        attachment: control_plane.then_some(AttachmentNo(sequence)),
        charge,
    });
    ((who, what, lent), (words(UsageCharge::ALL), any::<bool>(), option::of(replaced))).prop_map(
        |((who, what, lent), (charge, no_submitter, replaces))| {
            let (reporter, source, id, app_instance, unit) = who;
            let (quantity, from, to, correlation, control_plane) = what;
            let (attachment, allocation, supersedes) = lent;
            let report = UsageReport {
                reporter,
                source,
                id,
                app_instance,
                unit,
                quantity,
                from,
                to,
                correlation,
                control_plane,
                attachment,
                allocation,
                supersedes,
            };
            (report, charge, no_submitter, replaces)
        },
    )
}

fn usage() -> BoxedStrategy<Body> {
    let creditor = || option::of(u32s().prop_map(ProjectNo));
    let recorded = (reports(), creditor(), creditor());
    let recorded = recorded.prop_map(|((report, charge, no_submitter, replaces), creditor, replaced_creditor)| {
        UsageRecorded { report, charge, no_submitter, replaces, creditor, replaced_creditor }.into()
    });
    recorded.boxed()
}

fn quantities() -> impl Strategy<Value = UnitQuantity> {
    (0..=limits::USAGE_QUANTITY_MAX.0).prop_map(UnitQuantity)
}

fn entitlements() -> BoxedStrategy<Body> {
    let scopes = || {
        let of = (option::of(u32s().prop_map(ProjectNo)), option::of(apps()), units());
        of.prop_map(|(project, app_instance, unit)| EntitlementScope { project, app_instance, unit })
    };
    let used = || (0..=1_u128 << 120).prop_map(UsedInMonth);
    prop_oneof![
        (scopes(), option::of(quantities()), option::of(quantities())).prop_map(|(of, soft, hard)| EntitlementPut {
            of,
            soft,
            hard
        }
        .into()),
        scopes().prop_map(|of| EntitlementDeleted { of }.into()),
        (scopes(), months(), used(), quantities()).prop_map(|(of, month, used, soft)| EntitlementWarned {
            of,
            month,
            used,
            soft
        }
        .into()),
        (reports(), scopes(), months(), used(), quantities()).prop_map(|((report, ..), of, month, used, hard)| {
            UsageRefused { report, of, month, used, hard }.into()
        }),
    ]
    .boxed()
}

fn policies() -> BoxedStrategy<Body> {
    let lists = || option::of(vec(units(), 0..5).prop_map(|units| UnitList::new(units).expect("few units")));
    let scopes = (app_types(), option::of(u32s().prop_map(TenantNo)), option::of(apps()))
        .prop_map(|(app_type, tenant, app_instance)| PolicyScope { app_type, tenant, app_instance });
    (scopes, u32s(), lists(), option::of(words(Attribution::ALL)), lists())
        .prop_map(|(of, version, units, attribution, billed_work)| {
            AppPolicyPut { of, version, units, attribution, billed_work }.into()
        })
        .boxed()
}
