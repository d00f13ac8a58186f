//! Tenants of all sorts, the scopes and limits of quotas, and causes of denials.

use crate::arbitrary::{
    amounts, apps, classes, instants, names, priorities, quanta, quotas, spans, tenants, u64s, users, words,
};
use leasehold_model::body::TenantPut;
use leasehold_model::limits::ADDRESS_LINES_MAX;
use leasehold_model::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

fn holders<T: std::fmt::Debug + Clone>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Option<HolderScope<T>>> {
    option::of(prop_oneof![one.prop_map(HolderScope::One), Just(HolderScope::Each)])
}
pub(crate) fn further_scopes() -> impl Strategy<Value = FurtherScope> {
    let kind = option::of(words(ResourceKind::ALL));
    (kind, holders(users()), holders(u64s().prop_map(AppInstanceNo)), any::<bool>())
        .prop_map(|(kind, user, app_instance, and_above)| FurtherScope { kind, user, app_instance, and_above })
}
fn fractions() -> impl Strategy<Value = Fraction> {
    (any::<u128>(), 1..=u64::MAX).prop_map(|(parts, per_unit)| Fraction::new(parts, per_unit))
}
pub(crate) fn temporary_limits() -> impl Strategy<Value = Option<TemporaryLimit>> {
    option::of((limits(), instants()).prop_map(|(limit, until)| TemporaryLimit { limit, until }))
}
pub(crate) fn limits() -> impl Strategy<Value = LimitKind> {
    prop_oneof![
        u64s().prop_map(|limit| LimitKind::Hard { limit }),
        u64s().prop_map(|limit| LimitKind::Soft { limit }),
        (u64s(), u64s(), spans()).prop_map(|(limit, burst_limit, burst_ttl)| LimitKind::Burst {
            limit,
            burst_limit,
            burst_ttl
        }),
    ]
}
pub(crate) fn tenant_puts() -> impl Strategy<Value = TenantPut> {
    let address = vec(names(), 1..=ADDRESS_LINES_MAX).prop_map(|lines| Address::new(lines).expect("so many lines"));
    let billing = (option::of(address), option::of(names()));
    let added = (option::of(names()), option::of(words(WhenOverQuota::ALL)), billing);
    (tenants(), names(), option::of(names()), priorities(), option::of(u64s()), added).prop_map(
        |(tenant, name, accounting_tag, max_priority, max_evicted_quanta_per_hour, added)| {
            let (contact, when_over_quota, (billing_address, tax_id)) = added;
            TenantPut {
                tenant,
                settings: TenantSettings {
                    name,
                    accounting_tag,
                    max_priority,
                    max_evicted_quanta_per_hour,
                    contact,
                    when_over_quota,
                    billing_address,
                    tax_id,
                },
            }
        },
    )
}

pub(crate) fn causes() -> impl Strategy<Value = DenyCause> {
    prop_oneof![
        (quotas(), fractions(), fractions(), u64s()).prop_map(|(quota, used, requested, limit)| DenyCause::KindQuota {
            quota,
            used,
            requested,
            limit
        }),
        (quotas(), u64s(), u64s(), u64s()).prop_map(|(quota, used, requested, limit)| DenyCause::Quota {
            quota,
            used,
            requested,
            limit
        }),
        (any::<bool>(), words(PrepaidState::ALL), any::<i64>(), u64s()).prop_map(
            |(of_tenant, state, available, requested)| DenyCause::Prepaid {
                of_tenant,
                state,
                available: Funds(available.into()),
                requested: Amount(requested.into()),
            }
        ),
        (quotas(), instants()).prop_map(|(quota, ends_at)| DenyCause::BurstOver { quota, ends_at }),
        (apps(), amounts(), amounts(), amounts(), amounts()).prop_map(
            |(app_instance, spent, reserved, requested, amount)| DenyCause::Ceiling {
                app_instance,
                spent,
                reserved,
                requested,
                amount,
            }
        ),
        (classes(), quanta(), quanta()).prop_map(|(class, requested, most_free)| DenyCause::Capacity {
            class,
            requested,
            most_free
        }),
    ]
}
