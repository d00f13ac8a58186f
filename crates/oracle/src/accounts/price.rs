//! The price of a quantum-nanosecond, and the billed part of a lease (SEMANTICS 7).

use super::{Accounts, Ending, Tenure};
use ethnum::U256;
use leasehold_model::body::RateCardPut;
use leasehold_model::rate::{Charge, Currency, Period};
use leasehold_model::{ClassNo, ClassSpec, Instant, PoolNo, Priority, ResourceKind};

/// A billion: prices and factors have nine decimals.
const ONE: u64 = 1_000_000_000;

impl Accounts {
    /// In 10^-27 of the currency, per unit-day.
    pub(super) fn price(&self, tenure: &Tenure, at: Instant) -> (Currency, U256) {
        let cards: Vec<&RateCardPut> = self.cards.iter().collect();
        price_by(&cards, &self.classes[&tenure.class], (tenure.class, tenure.pool, tenure.priced_as), at)
    }

    /// The number of the card that the price is from; none for the default prices.
    pub(super) fn card(&self, tenure: &Tenure, at: Instant) -> Option<u32> {
        let cards: Vec<&RateCardPut> = self.cards.iter().collect();
        card_at(&cards, tenure.pool, at).map(|card| card.card)
    }

    /// The end of billing, by the charge policy in force when the lease ended.
    pub(super) fn billed_to(&self, tenure: &Tenure) -> Instant {
        let in_force = self.policies.iter().filter(|policy| policy.from <= tenure.to);
        let Some(policy) = in_force.max_by_key(|policy| (policy.from, policy.policy)) else { return tenure.to };
        let charge = match tenure.ending {
            Ending::None => Charge::Full,
            Ending::Preempted => policy.charges.preempted,
            Ending::PreemptedForOwn => Charge::Full,
            Ending::NodeLost => policy.charges.node_lost,
            Ending::FailedStart => policy.charges.failed_start,
            Ending::Plain if tenure.was_fenced() => policy.charges.fenced,
            Ending::Plain => Charge::Full,
        };
        match charge {
            Charge::Full => tenure.to,
            Charge::None => tenure.from,
            Charge::MinusLast(span) => Instant(tenure.to.0.saturating_sub(span.0)).max(tenure.from),
        }
    }
}

/// The seconds of a day: prices are per second, hour or day.
pub(crate) const DAY: u64 = 24 * 60 * 60;

/// In 10^-27 of the currency, per unit-day, by these cards.
pub(crate) fn price_by(
    cards: &[&RateCardPut],
    spec: &ClassSpec,
    (class, pool, priority): (ClassNo, PoolNo, Priority),
    at: Instant,
) -> (Currency, U256) {
    let Some(card) = card_at(cards, pool, at) else {
        let (price, factor) = (default_price(spec.kind), default_factor(priority));
        return (Currency::DEFAULT, U256::from(price) * U256::from(factor) * U256::from(ONE) * U256::from(DAY));
    };
    let prices = &card.prices;
    // How often the period of the price lies in a day.
    let has_own = prices.classes.iter().any(|(of, _)| *of == class);
    let own = prices.periods.classes.iter().find(|(of, _)| *of == class).map(|(_, period)| *period);
    let of_the_kind = ResourceKind::ALL.iter().zip(prices.periods.kinds).find(|(kind, _)| **kind == spec.kind);
    let period = if has_own { own.unwrap_or(Period::Second) } else { of_the_kind.expect("each kind has one").1 };
    let times = match period {
        Period::Second => DAY,
        Period::Hour => 24,
        Period::Day => 1,
    };
    let of_class = prices.classes.iter().find(|(of, _)| *of == class).map(|(_, price)| price.0);
    let of_kind = match spec.kind {
        ResourceKind::Gpu => prices.kinds.0[0],
        ResourceKind::Cpu => prices.kinds.0[1],
        ResourceKind::Mem => prices.kinds.0[2],
        ResourceKind::Block => prices.kinds.0[3],
        ResourceKind::Net => prices.kinds.0[4],
    };
    let of_tier = spec.tier.as_ref().and_then(|tier| prices.tiers.iter().find(|(name, _)| name == tier));
    let of_priority = match priority {
        Priority::Scavenger => prices.priorities.0[0],
        Priority::Standard => prices.priorities.0[1],
        Priority::Guaranteed => prices.priorities.0[2],
    };
    let factors = U256::from(of_tier.map_or(ONE, |(_, factor)| factor.0)) * U256::from(of_priority.0);
    (prices.currency, U256::from(of_class.unwrap_or(of_kind.0)) * factors * U256::from(times))
}

/// The card in force in a pool: its own, or else the one for all pools.
fn card_at<'c>(cards: &[&'c RateCardPut], pool: PoolNo, at: Instant) -> Option<&'c RateCardPut> {
    let of = |pool: Option<PoolNo>| {
        let held = cards.iter().filter(|card| card.pool == pool && card.from <= at);
        held.max_by_key(|card| (card.from, card.card)).copied()
    };
    of(Some(pool)).or_else(|| of(None))
}

/// The default card of SEMANTICS 7.
fn default_price(kind: ResourceKind) -> u64 {
    match kind {
        ResourceKind::Gpu => ONE / 100,
        ResourceKind::Cpu => ONE / 1000 * 2,
        ResourceKind::Mem => ONE / 1000,
        ResourceKind::Block => ONE / 10_000 * 5,
        ResourceKind::Net => ONE / 10_000 * 3,
    }
}

fn default_factor(priority: Priority) -> u64 {
    match priority {
        Priority::Scavenger => ONE / 10 * 3,
        Priority::Standard => ONE,
        Priority::Guaranteed => ONE / 10 * 15,
    }
}
