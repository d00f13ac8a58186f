//! Samples of the registry of app runtimes.

#[path = "samples_sharing.rs"]
mod samples_sharing;

use super::{NEW_YEAR, name};
use leasehold_model::TenantSettings;
use leasehold_model::app::FIRST_SITE_UNIT;
use leasehold_model::body::*;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::*;

/// With those about sharing and statements, which came last.
pub(super) fn bodies() -> Vec<Body> {
    let mut all = registry();
    all.extend(samples_sharing::bodies());
    all.extend(super::samples_ledger::statements());
    all
}

fn registry() -> Vec<Body> {
    vec![
        UsageUnitPut { unit: FIRST_SITE_UNIT, name: name("images"), measure: UnitMeasure::Count }.into(),
        UnitPricePut {
            price_no: 1,
            unit: UnitNo(4),
            app_type: Some(AppTypeNo(1)),
            currency: Currency::DEFAULT,
            price: Decimal(400_000),
            from: NEW_YEAR,
        }
        .into(),
        AppTypePut {
            app_type: AppTypeNo(1),
            slug: name("slurm"),
            origin: AppOrigin::ThirdParty,
            units: UnitList::new([UnitNo(2), UnitNo(0)]).expect("few units"),
        }
        .into(),
        AppTypeDeleted { app_type: AppTypeNo(1) }.into(),
        AppInstancePut {
            app_instance: AppInstanceNo(300),
            project: ProjectNo(3),
            name: name("slurm-shared"),
            app_type: AppTypeNo(1),
            mode: OperatingMode::TenantDedicated,
            scope: ControlPlaneScope::Tenant,
            backend: RuntimeBackend::Slurm,
        }
        .into(),
        AppInstanceDeleted { app_instance: AppInstanceNo(300) }.into(),
        AttachmentMade {
            attachment: AttachmentNo(7),
            app_instance: AppInstanceNo(300),
            source_project: ProjectNo(4),
            allocation: Some(AllocationNo(41)),
        }
        .into(),
        AttachmentEnded { attachment: AttachmentNo(7) }.into(),
        // Samples are appended: golden bytes of those before stay as they are.
        Denied {
            particulars: Particulars { correlation: Some(0x5f0c_1b3e), ..Particulars::default() },
            ..super::denied(DenyCause::Quota { quota: QuotaNo(5), used: 1, requested: 2, limit: 2 })
        }
        .into(),
        UsageRecorded {
            report: UsageReport {
                reporter: Some(TenantNo(2)),
                source: name("slurm-adapter"),
                id: name("job-4711"),
                app_instance: AppInstanceNo(300),
                unit: UnitNo(0),
                quantity: UnitQuantity(1_500_000_000),
                from: NEW_YEAR,
                to: Instant(NEW_YEAR.0 + 5_400_000_000_000),
                correlation: 0x0b9f_4e9c_52d8_4a43,
                control_plane: false,
                attachment: Some(AttachmentNo(7)),
                allocation: Some(AllocationNo(41)),
                supersedes: Some(name("job-4710")),
            },
            charge: UsageCharge::Reported,
            no_submitter: true,
            replaces: Some(ReplacedUsage {
                sequence: 300,
                project: ProjectNo(4),
                quantity: UnitQuantity(1_250_000_001),
                from: NEW_YEAR,
                to: Instant(NEW_YEAR.0 + 1),
                control_plane: true,
                attachment: None,
                charge: UsageCharge::Billed,
            }),
            creditor: None,
            replaced_creditor: None,
        }
        .into(),
        LedgerAdjusted {
            currency: Currency::DEFAULT,
            month: Month::new(2026, 1).expect("a month"),
            original_month: Month::new(2026, 1).expect("a month"),
            previous: None,
            legs: vec![Leg { account: Account::UnitRevenue(UnitNo(64)), amount: Steps(1) }],
            reason: name("unit"),
        }
        .into(),
        LedgerPosted {
            currency: Currency::DEFAULT,
            month: Month::new(2026, 1).expect("a month"),
            through: Instant(NEW_YEAR.0 + 3_600_000_000_000),
            complete: true,
            as_of_size: 300,
            previous: None,
            lines: vec![PostedLine {
                key: LineKey {
                    hour: NEW_YEAR,
                    project: ProjectNo(3),
                    pool: LineKey::NO_POOL,
                    item: Item::Unit(UnitNo(4)),
                    priority: Priority::Standard,
                    priced: Priority::Standard,
                    tag: None,
                    app_instance: Some(AppInstanceNo(300)),
                    attachment: None,
                    control_plane: false,
                    card: Some(1),
                },
                usage: UsageDelta(-1_000_000_000_000_000_000),
                exact: leasehold_model::ledger::ExactSteps {
                    negative: true,
                    numerator: leasehold_model::ledger::Magnitude::from_digits(&[1, 144]).expect("short"),
                    denominator: leasehold_model::ledger::Magnitude::from_digits(&[1]).expect("short"),
                },
                posted: Steps(-400),
            }],
            residual: Residual::NONE,
        }
        .into(),
        EntitlementPut {
            of: EntitlementScope {
                project: Some(ProjectNo(3)),
                app_instance: Some(AppInstanceNo(300)),
                unit: UnitNo(4),
            },
            soft: Some(UnitQuantity::of_whole(900_000)),
            hard: Some(UnitQuantity::of_whole(1_000_000)),
        }
        .into(),
        EntitlementDeleted {
            of: EntitlementScope { project: None, app_instance: Some(AppInstanceNo(300)), unit: UnitNo(4) },
        }
        .into(),
        EntitlementWarned {
            of: project_scope(),
            month: Month::new(2026, 1).expect("a month"),
            used: UsedInMonth(900_001_000_000_000),
            soft: UnitQuantity::of_whole(900_000),
        }
        .into(),
        UsageRefused {
            report: UsageReport {
                reporter: None,
                source: name("gateway"),
                id: name("r-17"),
                app_instance: AppInstanceNo(300),
                unit: UnitNo(4),
                quantity: UnitQuantity::of_whole(200),
                from: NEW_YEAR,
                to: NEW_YEAR,
                correlation: 0x0b9f_4e9c_52d8_4a43,
                control_plane: false,
                attachment: None,
                allocation: None,
                supersedes: None,
            },
            of: project_scope(),
            month: Month::new(2026, 1).expect("a month"),
            used: UsedInMonth(999_900_000_000_000),
            hard: UnitQuantity::of_whole(1_000_000),
        }
        .into(),
        AppPolicyPut {
            of: PolicyScope {
                app_type: AppTypeNo(1),
                tenant: Some(TenantNo(2)),
                app_instance: Some(AppInstanceNo(300)),
            },
            version: 2,
            units: Some(UnitList::new([UnitNo(4), UnitNo(5)]).expect("few units")),
            attribution: Some(Attribution::Caller),
            billed_work: None,
        }
        .into(),
        AppPolicyPut {
            of: PolicyScope { app_type: AppTypeNo(1), tenant: None, app_instance: None },
            version: 1,
            units: None,
            attribution: None,
            billed_work: Some(UnitList::new([UnitNo(0)]).expect("few units")),
        }
        .into(),
    ]
}

fn project_scope() -> EntitlementScope {
    EntitlementScope { project: Some(ProjectNo(3)), app_instance: None, unit: UnitNo(4) }
}

/// With a field that was added to the kind after its first records were sealed.
pub(crate) fn tenant_with_contact() -> TenantPut {
    let contact = Some(name("ops@physics.example"));
    TenantPut { tenant: TenantNo(1), settings: TenantSettings { contact, ..TenantSettings::named(name("physics")) } }
}
