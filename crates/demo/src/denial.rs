//! Denials as sentences, with the numbers used, requested and limit (SEMANTICS 4).

use leasehold_engine::State;
use leasehold_model::{ClassNo, DenyCause, Measure, Quanta, QuotaNo, quantity};

pub(crate) fn explain(state: &State, who: &str, cause: &DenyCause) -> String {
    let amount = |quota: QuotaNo, n: u64| match state.quota(quota).map(|q| (q.measure, q.scope.class)) {
        Some((Measure::Quanta, Some(class))) => units(state, class, n),
        _ => n.to_string(),
    };
    match *cause {
        DenyCause::Quota { quota, used, requested, limit } => {
            let what = state.quota(quota).map_or("a quota".to_owned(), |q| match q.measure {
                Measure::Quanta => class_name(state, q.scope.class),
                Measure::Leases => "max_leases".to_owned(),
                Measure::Nodes => "max_nodes".to_owned(),
                Measure::Allocations => "max_concurrent_allocations".to_owned(),
            });
            let [used, requested, limit] = [used, requested, limit].map(|n| amount(quota, n));
            format!("tenant {who:?} would exceed {what} (used {used}, requested {requested}, limit {limit})")
        }
        DenyCause::KindQuota { used, requested, limit, .. } => {
            format!("tenant {who:?} would exceed a quota (used {used}, requested {requested}, limit {limit})")
        }
        DenyCause::BurstOver { quota, .. } => {
            let what = class_name(state, state.quota(quota).and_then(|q| q.scope.class));
            format!(
                "tenant {who:?} has used up its burst of {what}; it can burst again after its use has been below the base limit for some time"
            )
        }
        DenyCause::Capacity { class, requested, most_free } => {
            let [requested, free] = [requested, most_free].map(|n| units(state, class, n.0));
            let what = class_name(state, Some(class));
            format!("no node has {requested} {what} free for tenant {who:?} (most on one node: {free})")
        }
        DenyCause::Ceiling { spent, reserved, requested, amount, .. } => format!(
            "tenant {who:?} would exceed its cost ceiling (spent {spent}, reserved {reserved}, requested {requested}, ceiling {amount})"
        ),
        DenyCause::Prepaid { available, requested, .. } => format!(
            "the prepaid credit of tenant {who:?} does not cover the request (available {available}, requested {requested})"
        ),
    }
}

fn class_name(state: &State, class: Option<ClassNo>) -> String {
    class.and_then(|class| state.class(class)).map_or("capacity".to_owned(), |spec| spec.name.to_string())
}

fn units(state: &State, class: ClassNo, quanta: u64) -> String {
    state.class(class).map_or(quanta.to_string(), |spec| quantity::display(Quanta(quanta), spec))
}
