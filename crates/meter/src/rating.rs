//! Prices and charge policies over time, and the price of a quantum-nanosecond.

use crate::interval::Window;
use ethnum::U256;
use leasehold_model::rate::{ChargePolicyPut, Charges, Prices, RateCardPut};
use leasehold_model::{ClassNo, ClassSpec, Instant, PoolNo, Priority};
use std::collections::BTreeMap;

/// What a quantum costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The product of price and factors, in units of 10^-27.
    pub factor: U256,
    /// A quantum-nanosecond costs the factor divided by 10^36 and by this: the quanta of a unit, times the seconds of
    /// the period that the price is for.
    pub divisor: u64,
}

/// What a quantum of a class costs at a priority.
pub fn rate(prices: &Prices, class: ClassNo, spec: &ClassSpec, priority: Priority) -> Rate {
    let price = U256::from(prices.price(class, spec.kind).0);
    let tier = U256::from(prices.tier_factor(spec.tier.as_ref()).0);
    let factor = price * tier * U256::from(prices.priority_factor(priority).0);
    // At most 2^32 quanta and 86,400 seconds.
    Rate { factor, divisor: spec.quanta_per_unit * prices.period(class, spec.kind).seconds() }
}

/// Converts a sum of quantum-nanoseconds times their factors, of rates with one divisor, to billionths of the currency,
/// rounded up.
pub fn billionths_up(sum: U256, divisor: u64) -> U256 {
    let step = U256::from(divisor) * U256::new(10).pow(27);
    sum / step + U256::from(u8::from(sum % step != U256::ZERO))
}

/// All rate cards and charge policies, by the start of their validity.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// By scope and start; cards without a pool apply to pools that have no own card.
    cards: BTreeMap<(Option<PoolNo>, Instant), RateCardPut>,
    policies: BTreeMap<Instant, ChargePolicyPut>,
    default: Prices,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { cards: BTreeMap::new(), policies: BTreeMap::new(), default: Prices::default_card() }
    }
}

impl Schedule {
    /// Adds a card, or replaces the card with the same number.
    pub fn put_card(&mut self, card: RateCardPut) {
        self.drop_card(card.card);
        self.cards.insert((card.pool, card.from), card);
    }
    pub fn drop_card(&mut self, number: u32) {
        self.cards.retain(|_, card| card.card != number);
    }
    pub fn put_policy(&mut self, policy: ChargePolicyPut) {
        self.policies.retain(|_, old| old.policy != policy.policy);
        self.policies.insert(policy.from, policy);
    }

    pub fn cards(&self) -> impl Iterator<Item = &RateCardPut> {
        self.cards.values()
    }
    pub fn policies(&self) -> impl Iterator<Item = &ChargePolicyPut> {
        self.policies.values()
    }

    fn card_at(&self, scope: Option<PoolNo>, at: Instant) -> Option<&RateCardPut> {
        self.cards.range((scope, Instant(0))..=(scope, at)).next_back().map(|(_, card)| card)
    }

    /// The prices of a pool at an instant.
    pub fn prices_at(&self, pool: PoolNo, at: Instant) -> &Prices {
        self.version_at(pool, at).1
    }

    /// The prices of a pool at an instant, with the number of their card; the default prices have none.
    pub fn version_at(&self, pool: PoolNo, at: Instant) -> (Option<u32>, &Prices) {
        let card = self.card_at(Some(pool), at).or_else(|| self.card_at(None, at));
        card.map_or((None, &self.default), |card| (Some(card.card), &card.prices))
    }

    /// The instants strictly inside the window at which the prices of a pool may change, in order.
    pub fn changes(&self, pool: PoolNo, window: Window) -> Vec<Instant> {
        let inside = |scope| {
            let starts = self.cards.range((scope, Instant(0))..=(scope, Instant::MAX)).map(|((_, from), _)| *from);
            starts.filter(|from| *from > window.from && *from < window.to)
        };
        let mut changes: Vec<Instant> = inside(Some(pool)).chain(inside(None)).collect();
        changes.sort_unstable();
        changes.dedup();
        changes
    }

    /// How leases that end at an instant are charged.
    pub fn charges_at(&self, at: Instant) -> &Charges {
        self.policy_at(at).map_or(&Charges::DEFAULT, |policy| &policy.charges)
    }

    /// The charge policy in force at an instant; none if there has been none until then.
    pub fn policy_at(&self, at: Instant) -> Option<&ChargePolicyPut> {
        self.policies.range(..=at).next_back().map(|(_, policy)| policy)
    }

    /// Whether any policy charges less than all held time.
    pub fn has_exceptions(&self) -> bool {
        self.policies.values().any(|policy| policy.charges != Charges::DEFAULT)
    }
}
