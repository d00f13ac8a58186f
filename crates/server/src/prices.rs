//! Applies price changes to existing prices. Errors name the invalid field.

use crate::names;
use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_engine::State;
use leasehold_model::limits::{FACTOR_MAX, RATE_LINES_MAX, RATE_MAX};
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Prices};
use std::collections::BTreeMap;

fn bad(field: &str, why: impl std::fmt::Display) -> Problem {
    Problem::new(422, "bad_prices", format!("Invalid price: `{field}` {why}.")).with("field", field)
}

fn decimal(field: &str, text: &api::Decimal, most: Decimal) -> Result<Decimal, Problem> {
    let value: Decimal = text.0.parse().map_err(|why| bad(field, why))?;
    if value > most { Err(bad(field, format!("is above {most}"))) } else { Ok(value) }
}

/// The prices after a change. Prices that it does not name stay.
pub(crate) fn prices_over(state: &State, old: &Prices, change: &api::PriceChange) -> Result<Prices, Problem> {
    let mut prices = old.clone();
    if let Some(text) = &change.currency {
        let currency = Currency::new(text);
        prices.currency =
            currency.ok_or_else(|| bad("prices.currency", "must be three capital letters such as EUR"))?;
    }
    let kinds = &change.kinds;
    let kinds =
        [("gpu", &kinds.gpu), ("cpu", &kinds.cpu), ("mem", &kinds.mem), ("block", &kinds.block), ("net", &kinds.net)];
    for (price, (word, text)) in prices.kinds.0.iter_mut().zip(kinds) {
        if let Some(text) = text {
            *price = decimal(&format!("prices.kinds.{word}"), text, RATE_MAX)?;
        }
    }
    let factors = &change.priorities;
    let factors =
        [("scavenger", &factors.scavenger), ("standard", &factors.standard), ("guaranteed", &factors.guaranteed)];
    for (factor, (word, text)) in prices.priorities.0.iter_mut().zip(factors) {
        if let Some(text) = text {
            *factor = decimal(&format!("prices.priorities.{word}"), text, FACTOR_MAX)?;
        }
    }
    prices.classes = lines_over("prices.classes", &prices.classes, &change.classes, RATE_MAX, |field, text| {
        names::class(state, text).map_err(|problem| in_body(field, problem))
    })?;
    prices.tiers = lines_over("prices.tiers", &prices.tiers, &change.tiers, FACTOR_MAX, |field, text| {
        names::name("tier", text).map_err(|problem| in_body(field, problem))
    })?;
    Ok(prices)
}

/// The lines after a change, in order of their keys. Null removes a line.
fn lines_over<K: Ord + Clone>(
    of: &str,
    old: &[(K, Decimal)],
    change: &BTreeMap<String, Option<api::Decimal>>,
    most: Decimal,
    key: impl Fn(&str, &str) -> Result<K, Problem>,
) -> Result<Vec<(K, Decimal)>, Problem> {
    let mut lines: BTreeMap<K, Decimal> = old.iter().cloned().collect();
    for (text, value) in change {
        let field = format!("{of}.{text}");
        let key = key(&field, text)?;
        match value {
            Some(value) => lines.insert(key, decimal(&field, value, most)?),
            None => lines.remove(&key),
        };
    }
    if lines.len() > RATE_LINES_MAX {
        return Err(bad(of, format!("has more than {RATE_LINES_MAX} entries")));
    }
    Ok(lines.into_iter().collect())
}

/// A name in the body is wrong, not the path, so the status is 422 instead of 404.
fn in_body(field: &str, problem: Problem) -> Problem {
    let mut answer = Problem::new(422, &problem.code, problem.detail).with("field", field);
    if let Some(nearest) = problem.members.get("nearest") {
        answer = answer.with("nearest", nearest.clone());
    }
    answer
}

pub(crate) fn charges_over(old: &Charges, change: &api::ChargesChange) -> Charges {
    let over = |new: Option<api::Charge>, old| match new {
        None => old,
        Some(api::Charge::Full) => Charge::Full,
        Some(api::Charge::None) => Charge::None,
        Some(api::Charge::MinusLast(ttl)) => Charge::MinusLast(ttl.0),
    };
    Charges {
        preempted: over(change.preempted, old.preempted),
        fenced: over(change.fenced, old.fenced),
        node_lost: over(change.node_lost, old.node_lost),
        failed_start: over(change.failed_start, old.failed_start),
    }
}
