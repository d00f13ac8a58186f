//! Arbitrary records about the sharing of the cost of control planes.

use crate::arbitrary::{decimals, names, u32s, u64s, words};
use crate::arbitrary_ledger::{currencies, months, steps};
use leasehold_model::body::*;
use leasehold_model::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

fn projects() -> impl Strategy<Value = ProjectNo> {
    u32s().prop_map(ProjectNo)
}
fn units() -> impl Strategy<Value = UnitNo> {
    u32s().prop_map(UnitNo)
}
fn scopes() -> impl Strategy<Value = PolicyScope> {
    let parts = (u32s(), option::of(u32s()), option::of(u64s()));
    parts.prop_map(|(app_type, tenant, app_instance)| PolicyScope {
        app_type: AppTypeNo(app_type),
        tenant: tenant.map(TenantNo),
        app_instance: app_instance.map(AppInstanceNo),
    })
}

fn bases() -> impl Strategy<Value = SharingBasis> {
    let weights = || decimals(rate::Decimal(u64::MAX));
    let tier = (names(), weights()).prop_map(|(name, weight)| ServiceTier { name, weight });
    let tiers = (vec(tier, 0..4), vec((projects(), u32s()), 0..4), option::of(u32s()));
    prop_oneof![
        Just(SharingBasis::None),
        Just(SharingBasis::Owner),
        Just(SharingBasis::Even),
        units().prop_map(SharingBasis::ByUsage),
        units().prop_map(SharingBasis::ByQuota),
        vec((projects(), weights()), 0..4).prop_map(SharingBasis::Fixed),
        tiers.prop_map(|(tiers, projects, default_tier)| {
            SharingBasis::ByTier(ServiceTiers { tiers, projects, default_tier })
        }),
    ]
}

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    let sharing = (bases(), any::<bool>()).prop_map(|(basis, entries)| Sharing { basis, entries });
    let put = (scopes(), u32s(), any::<Option<bool>>(), any::<Option<bool>>(), option::of(sharing));
    let put = put.prop_map(|(of, version, control_plane_billable, distributable, sharing)| {
        SharingPut { of, version, control_plane_billable, distributable, sharing }.into()
    });
    let head = (u64s(), projects(), months(), currencies(), option::of(u64s()));
    let policy = (scopes(), u32s(), words(SharingMethod::ALL), option::of(units()), option::of(names()));
    let figures = (any::<u128>(), any::<u128>(), steps(), steps(), steps());
    let shared = (head, policy, figures).prop_map(|(head, policy, figures)| {
        let (app_instance, owner, month, currency, previous) = head;
        let (policy, version, method, unit, tier) = policy;
        let (weight, total_weight, pool, share, booked) = figures;
        let (weight, total_weight) = (ShareWeight(weight), ShareWeight(total_weight));
        let app_instance = AppInstanceNo(app_instance);
        let shared = LedgerShared {
            app_instance,
            owner,
            month,
            currency,
            previous,
            policy,
            version,
            method,
            unit,
            tier,
            weight,
            total_weight,
            pool,
            share,
            booked,
        };
        shared.into()
    });
    prop_oneof![put, shared].boxed()
}
