//! Records of prepaid credit.

use super::object::Object;
use leasehold_model::body::{PrepaidApplied, PrepaidChanged, PrepaidLapsed, PrepaidPolicyPut, PrepaidToppedUp};

pub(super) fn topped_up<'d>(object: Object<'d>, topped: &PrepaidToppedUp) -> Object<'d> {
    object
        .field("currency", topped.currency.as_str())
        .count("credit", topped.credit)
        .field("amount", topped.amount.to_string())
        .field("priority", topped.priority)
        .instant("expires_at", topped.expires_at)
        .field("source", topped.source.word())
        .field("reference", topped.reference.as_str())
}

pub(super) fn policy<'d>(object: Object<'d>, put: &PrepaidPolicyPut) -> Object<'d> {
    let policy = put.policy;
    object
        .field("currency", put.currency.as_str())
        .field("low_below", policy.low_below.to_string())
        .span("window", policy.window)
        .field("low", policy.low.word())
        .field("pending", policy.pending.word())
        .field("depleted", policy.depleted.word())
        .span("grace", policy.grace)
}

pub(super) fn lapsed<'d>(object: Object<'d>, lapsed: &PrepaidLapsed) -> Object<'d> {
    object
        .field("currency", lapsed.currency.as_str())
        .count("credit", lapsed.credit)
        .field("amount", lapsed.amount.to_string())
}

pub(super) fn changed<'d>(object: Object<'d>, changed: &PrepaidChanged) -> Object<'d> {
    object
        .field("currency", changed.currency.as_str())
        .field("from", changed.from.word())
        .field("to", changed.to.word())
        .field("balance", changed.balance.to_string())
        .field("action", changed.action.word())
}

pub(super) fn applied<'d>(object: Object<'d>, applied: &PrepaidApplied) -> Object<'d> {
    object
        .field("currency", applied.currency.as_str())
        .field("invoice", applied.invoice.to_string())
        .field("month", applied.month.to_string())
        .field("amount", applied.amount.to_string())
        .field("credited", applied.credited.to_string())
        .field("uncovered", applied.uncovered.to_string())
}
