//! Applies price changes to existing prices. Errors name the invalid field.

use crate::names;
use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_engine::State;
use leasehold_model::limits::{FACTOR_MAX, RATE_LINES_MAX, RATE_MAX};
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Period, Prices};
use leasehold_model::{ClassNo, ResourceKind};
use std::collections::BTreeMap;

fn bad(field: &str, why: impl std::fmt::Display) -> Problem {
    Problem::new(422, "bad_prices", format!("Invalid price: `{field}` {why}.")).with("field", field)
}

fn decimal(field: &str, text: &api::Decimal, most: Decimal) -> Result<Decimal, Problem> {
    let value: Decimal = text.0.parse().map_err(|why| bad(field, why))?;
    if value > most { Err(bad(field, format!("is above {most}"))) } else { Ok(value) }
}

/// A price and what it is for: `0.01` or `0.01/s` per second, `2.00/h` per hour, `48/d` per day.
fn price(field: &str, text: &api::Price) -> Result<(Decimal, Period), Problem> {
    let (number, period) = match text.0.split_once('/') {
        None => (text.0.as_str(), Period::Second),
        Some((number, word)) => (number, period(field, word)?),
    };
    Ok((decimal(field, &api::Decimal(number.to_owned()), RATE_MAX)?, period))
}

fn period(field: &str, word: &str) -> Result<Period, Problem> {
    Period::from_word(word).ok_or_else(|| {
        let of_months = ["m", "mo", "month", "y", "year"].contains(&word);
        let why =
            if of_months { "; months and years differ in length, so no price per month or year is exact" } else { "" };
        bad(field, format!("must be per second, hour or day: `/s`, `/h` or `/d`{why}"))
    })
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
    for (place, (word, text)) in kinds.into_iter().enumerate() {
        if let Some(text) = text {
            let (amount, period) = price(&format!("prices.kinds.{word}"), text)?;
            (prices.kinds.0[place], prices.periods.kinds[place]) = (amount, period);
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
    let of_class = |(class, amount): &(ClassNo, Decimal)| {
        // The kind does not matter: the class has a price of its own.
        (*class, (*amount, prices.period(*class, ResourceKind::Gpu)))
    };
    let classes: Vec<_> = prices.classes.iter().map(of_class).collect();
    let class = |field: &str, text: &str| names::class(state, text).map_err(|problem| in_body(field, problem));
    let classes = lines_over("prices.classes", &classes, &change.classes, class, price)?;
    prices.classes = classes.iter().map(|(class, (amount, _))| (*class, *amount)).collect();
    let periods = classes.iter().map(|(class, (_, period))| (*class, *period));
    prices.periods.classes = periods.filter(|(_, period)| *period != Period::Second).collect();
    let tier = |field: &str, text: &str| names::name("tier", text).map_err(|problem| in_body(field, problem));
    let factor = |field: &str, text: &api::Decimal| decimal(field, text, FACTOR_MAX);
    prices.tiers = lines_over("prices.tiers", &prices.tiers, &change.tiers, tier, factor)?;
    Ok(prices)
}

/// The lines after a change, in order of their keys. Null removes a line.
fn lines_over<K: Ord + Clone, V: Clone, T>(
    of: &str,
    old: &[(K, V)],
    change: &BTreeMap<String, Option<T>>,
    key: impl Fn(&str, &str) -> Result<K, Problem>,
    read: impl Fn(&str, &T) -> Result<V, Problem>,
) -> Result<Vec<(K, V)>, Problem> {
    let mut lines: BTreeMap<K, V> = old.iter().cloned().collect();
    for (text, value) in change {
        let field = format!("{of}.{text}");
        let key = key(&field, text)?;
        match value {
            Some(value) => lines.insert(key, read(&field, value)?),
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
