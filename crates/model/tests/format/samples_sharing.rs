//! Samples of records about the sharing of the cost of control planes, and of work that is charged.

use super::name;
use leasehold_model::body::*;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::*;

fn put(version: u32, basis: SharingBasis) -> Body {
    SharingPut {
        of: PolicyScope { app_type: AppTypeNo(1), tenant: Some(TenantNo(2)), app_instance: Some(AppInstanceNo(300)) },
        version,
        control_plane_billable: None,
        distributable: Some(true),
        sharing: Some(Sharing { basis, entries: version % 2 == 1 }),
    }
    .into()
}

fn shared(method: SharingMethod, (weight, total): (u128, u128), (share, booked): (i128, i128)) -> LedgerShared {
    LedgerShared {
        app_instance: AppInstanceNo(300),
        owner: ProjectNo(3),
        month: Month::new(2026, 1).expect("a month"),
        currency: Currency::DEFAULT,
        previous: Some(900),
        policy: PolicyScope { app_type: AppTypeNo(1), tenant: None, app_instance: None },
        version: 2,
        method,
        unit: None,
        tier: None,
        weight: ShareWeight(weight),
        total_weight: ShareWeight(total),
        pool: Steps(10_000_000),
        share: Steps(share),
        booked: Steps(booked),
    }
}

pub(crate) fn bodies() -> Vec<Body> {
    let tier = |tier: &str, weight: u64| ServiceTier { name: name(tier), weight: Decimal(weight * 1_000_000_000) };
    let used = 1_500_000_000_000_000_000;
    vec![
        put(1, SharingBasis::Even),
        put(2, SharingBasis::ByUsage(UnitNo(0))),
        put(3, SharingBasis::ByQuota(UnitNo(4))),
        put(
            4,
            SharingBasis::Fixed(vec![
                (ProjectNo(3), Decimal(60 * 1_000_000_000)),
                (ProjectNo(4), Decimal(40 * 1_000_000_000)),
            ]),
        ),
        put(
            5,
            SharingBasis::ByTier(ServiceTiers {
                tiers: vec![tier("gold", 3), tier("bronze", 1)],
                projects: vec![(ProjectNo(4), 0)],
                default_tier: Some(1),
            }),
        ),
        put(6, SharingBasis::Owner),
        put(7, SharingBasis::None),
        SharingPut {
            of: PolicyScope { app_type: AppTypeNo(1), tenant: None, app_instance: None },
            version: 1,
            control_plane_billable: Some(false),
            distributable: None,
            sharing: None,
        }
        .into(),
        LedgerShared {
            unit: Some(UnitNo(0)),
            ..shared(SharingMethod::ByUsage, (used, 3 * used), (3_333_333, 3_333_333))
        }
        .into(),
        LedgerShared {
            tier: Some(name("gold")),
            ..shared(SharingMethod::ByTier, (3_000_000_000, 4_000_000_000), (7_500_000, -2_500_000))
        }
        .into(),
        shared(SharingMethod::NotBillable, (0, 0), (0, -10_000_000)).into(),
        LedgerAdjusted {
            currency: Currency::DEFAULT,
            month: Month::new(2026, 1).expect("a month"),
            original_month: Month::new(2026, 1).expect("a month"),
            previous: None,
            legs: vec![Leg { account: Account::SharedRuntime(AppInstanceNo(300)), amount: Steps(1) }],
            reason: name("account"),
        }
        .into(),
        UsageRecorded {
            report: UsageReport {
                reporter: Some(TenantNo(2)),
                source: name("slurm-adapter"),
                id: name("job-4712"),
                app_instance: AppInstanceNo(300),
                unit: UnitNo(0),
                quantity: UnitQuantity(1_500_000_000),
                from: Instant(1_767_225_600_000_000_000),
                to: Instant(1_767_231_000_000_000_000),
                correlation: 7,
                control_plane: false,
                attachment: None,
                allocation: None,
                supersedes: None,
            },
            charge: UsageCharge::Billed,
            no_submitter: false,
            replaces: None,
            creditor: Some(ProjectNo(3)),
            replaced_creditor: None,
        }
        .into(),
    ]
}
