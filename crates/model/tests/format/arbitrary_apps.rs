//! Arbitrary records of the registry of app runtimes.

use crate::arbitrary::{decimals, instants, names, u32s, u64s, words};
use crate::arbitrary_ledger::currencies;
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
    ]
    .boxed()
}

fn quantities() -> impl Strategy<Value = UnitQuantity> {
    (0..=limits::USAGE_QUANTITY_MAX.0).prop_map(UnitQuantity)
}

fn usage() -> BoxedStrategy<Body> {
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
    ((who, what, lent), (words(UsageCharge::ALL), any::<bool>(), option::of(replaced)))
        .prop_map(|((who, what, lent), (charge, no_submitter, replaces))| {
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
            UsageRecorded { report, charge, no_submitter, replaces }.into()
        })
        .boxed()
}
