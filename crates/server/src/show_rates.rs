//! Rate cards and charge policies, as the API shows them.

use leasehold_api as api;
use leasehold_api::{CardState, When};
use leasehold_engine::{ChargePolicy, RateCard, State};
use leasehold_model::body::{ChargePolicyPut, RateCardPut};
use leasehold_model::rate::{Charge, Charges, DEFAULT_PRICES, Decimal, Prices};
use leasehold_model::{Instant, PoolNo, ResourceKind};

/// Of the cards for the same pool, the last one that has begun is in force.
fn card_state(state: &State, pool: Option<PoolNo>, from: Instant, now: Instant) -> CardState {
    let begun = state.rate_cards().filter(|other| other.pool == pool && other.has_begun(now));
    state_of(from, begun.map(|other| other.from).max(), now)
}

fn policy_state(state: &State, from: Instant, now: Instant) -> CardState {
    state_of(from, state.charge_policy_at(now).map(|policy| policy.from), now)
}

fn state_of(from: Instant, last_begun: Option<Instant>, now: Instant) -> CardState {
    match last_begun {
        _ if from > now => CardState::Waiting,
        Some(last) if last > from => CardState::Past,
        _ => CardState::InForce,
    }
}

fn decimal(value: Decimal) -> api::Decimal {
    api::Decimal(value.to_string())
}

fn prices(state: &State, prices: &Prices) -> api::Prices {
    let kind = |place: usize| api::Price(prices.kinds.0[place].per(prices.periods.kinds[place]));
    let [gpu, cpu, mem, block, net] = [0, 1, 2, 3, 4].map(kind);
    let [scavenger, standard, guaranteed] = prices.priorities.0.map(decimal);
    let classes = prices.classes.iter().map(|(class, price)| {
        let name = state.class(*class).map_or_else(|| class.to_string(), |spec| spec.name.as_str().to_owned());
        // The kind does not matter: the class has a price of its own.
        (name, api::Price(price.per(prices.period(*class, ResourceKind::Gpu))))
    });
    let tiers = prices.tiers.iter().map(|(tier, factor)| (tier.as_str().to_owned(), decimal(*factor)));
    api::Prices {
        currency: prices.currency.as_str().to_owned(),
        kinds: api::PricesByKind { gpu, cpu, mem, block, net },
        classes: classes.collect(),
        tiers: tiers.collect(),
        priorities: api::FactorsByPriority { scavenger, standard, guaranteed },
    }
}

pub(crate) fn card(state: &State, card: &RateCard, now: Instant) -> api::RateCard {
    // A deleted pool is shown by number; without a pool, the card would seem to be for all pools.
    let pool_name = |no: PoolNo| state.pool(no).map_or_else(|| no.to_string(), |pool| pool.name.as_str().to_owned());
    api::RateCard {
        id: Some(card.number),
        built_in: false,
        pool: card.pool.map(pool_name),
        pool_id: card.pool.map(|pool| pool.0),
        state: card_state(state, card.pool, card.from, now),
        from: Some(When(card.from)),
        set_at: Some(When(card.set_at)),
        prices: prices(state, &card.prices),
    }
}

/// The card as a record set it, even if it was changed or deleted since: a repeated request gets the same answer.
pub(crate) fn card_as_put(state: &State, put: &RateCardPut, stamp: Instant, now: Instant) -> api::RateCard {
    let (number, pool, from, prices) = (put.card, put.pool, put.from, put.prices.clone());
    card(state, &RateCard { number, pool, from, prices, set_at: stamp }, now)
}

/// The card that applies where no card has been set.
pub(crate) fn built_in_card(state: &State, now: Instant) -> api::RateCard {
    let succeeded = state.rate_cards().any(|card| card.pool.is_none() && card.has_begun(now));
    api::RateCard {
        id: None,
        built_in: true,
        pool: None,
        pool_id: None,
        state: if succeeded { CardState::Past } else { CardState::InForce },
        from: None,
        set_at: None,
        prices: prices(state, &DEFAULT_PRICES),
    }
}

fn charges(charges: &Charges) -> api::Charges {
    let charge = |charge| match charge {
        Charge::Full => api::Charge::Full,
        Charge::None => api::Charge::None,
        Charge::MinusLast(span) => api::Charge::MinusLast(api::Ttl(span)),
    };
    api::Charges {
        preempted: charge(charges.preempted),
        fenced: charge(charges.fenced),
        node_lost: charge(charges.node_lost),
        failed_start: charge(charges.failed_start),
    }
}

pub(crate) fn policy(state: &State, policy: &ChargePolicy, now: Instant) -> api::ChargePolicy {
    api::ChargePolicy {
        id: Some(policy.number),
        built_in: false,
        state: policy_state(state, policy.from, now),
        from: Some(When(policy.from)),
        set_at: Some(When(policy.set_at)),
        charges: charges(&policy.charges),
    }
}

pub(crate) fn policy_as_put(state: &State, put: &ChargePolicyPut, stamp: Instant, now: Instant) -> api::ChargePolicy {
    let (number, from, charges) = (put.policy, put.from, put.charges.clone());
    policy(state, &ChargePolicy { number, from, charges, set_at: stamp }, now)
}

pub(crate) fn built_in_policy(state: &State, now: Instant) -> api::ChargePolicy {
    api::ChargePolicy {
        id: None,
        built_in: true,
        state: if state.charge_policy_at(now).is_some() { CardState::Past } else { CardState::InForce },
        from: None,
        set_at: None,
        charges: charges(&Charges::DEFAULT),
    }
}
