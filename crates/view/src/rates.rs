//! Prices and charge policies as JSON.

use super::Directory;
use super::object::Object;
use leasehold_model::class::ResourceKind;
use leasehold_model::policy::Priority;
use leasehold_model::rate::{Charge, ChargePolicyPut, Decimal, RateCardPut};
use serde_json::{Map, Value};

pub(super) fn card<'d>(object: Object<'d>, directory: &Directory, put: &RateCardPut) -> Object<'d> {
    let prices = &put.prices;
    let kinds = prices.kinds.0.into_iter().zip(prices.periods.kinds).map(|(price, period)| price.per(period));
    let kinds = ResourceKind::ALL.iter().map(|kind| kind.word().to_owned()).zip(kinds);
    let classes = prices.classes.iter().map(|(class, price)| {
        let name = directory.class(*class).map_or_else(|| format!("class-{}", class.0), |spec| spec.name.to_string());
        // The kind does not matter: the class has a price of its own.
        (name, price.per(prices.period(*class, ResourceKind::Gpu)))
    });
    let tiers = put.prices.tiers.iter().map(|(tier, factor)| (tier.to_string(), *factor));
    let priorities = Priority::ALL.iter().map(|priority| priority.word().to_owned()).zip(put.prices.priorities.0);
    object
        .field("card_id", put.card)
        .named("pool", put.pool)
        .instant("from", put.from)
        .field("currency", put.prices.currency.as_str())
        .field("kinds", texts(kinds))
        .field("classes", texts(classes))
        .field("tiers", decimals(tiers))
        .field("priorities", decimals(priorities))
}

/// `0.01`, and `2/h` for a price that is not per second.
fn texts(lines: impl Iterator<Item = (String, String)>) -> Value {
    lines.map(|(name, text)| (name, Value::from(text))).collect::<Map<_, _>>().into()
}

/// Prices are strings, because a reader that uses floating point would change them.
fn decimals(lines: impl Iterator<Item = (String, Decimal)>) -> Value {
    lines.map(|(name, value)| (name, Value::from(value.to_string()))).collect::<Map<_, _>>().into()
}

pub(super) fn policy<'d>(object: Object<'d>, directory: &'d Directory, put: &ChargePolicyPut) -> Object<'d> {
    let charge = |charge: Charge| match charge {
        Charge::Full => Value::from("full"),
        Charge::None => Value::from("none"),
        Charge::MinusLast(span) => Object::new(directory).span("minus_last", span).done(),
    };
    object
        .field("policy_id", put.policy)
        .instant("from", put.from)
        .field("preempted", charge(put.charges.preempted))
        .field("fenced", charge(put.charges.fenced))
        .field("node_lost", charge(put.charges.node_lost))
        .field("failed_start", charge(put.charges.failed_start))
}
