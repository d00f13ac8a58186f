//! Rate cards and charge policies, and which of them are in force at an instant.

use crate::state::{State, Table, entry};
use leasehold_model::body::{ChargePolicyPut, RateCardPut};
use leasehold_model::rate::{Charges, DEFAULT_PRICES, Prices};
use leasehold_model::{Instant, PoolNo};

/// Prices that are in force from an instant on, until the next card of the same scope starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateCard {
    pub number: u32,
    /// `None` for the card of all pools that have no card of their own.
    pub pool: Option<PoolNo>,
    pub from: Instant,
    pub prices: Prices,
    /// When it was created, or last replaced before it took effect.
    pub set_at: Instant,
}

/// What is charged, from an instant on, for leases that were preempted, fenced or lost with their node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargePolicy {
    pub number: u32,
    pub from: Instant,
    pub charges: Charges,
    pub set_at: Instant,
}

impl RateCard {
    /// Whether it is in force. It can no longer change then, because usage may have been rated by it.
    pub fn has_begun(&self, now: Instant) -> bool {
        self.from <= now
    }
}

impl ChargePolicy {
    pub fn has_begun(&self, now: Instant) -> bool {
        self.from <= now
    }
}

static DEFAULT_CHARGES: Charges = Charges::DEFAULT;

impl State {
    /// By number, without those that were deleted.
    pub fn rate_cards(&self) -> impl Iterator<Item = &RateCard> {
        self.rate_cards.iter().flatten()
    }
    pub fn rate_card(&self, card: u32) -> Option<&RateCard> {
        entry(&self.rate_cards, card)
    }
    pub fn charge_policies(&self) -> impl Iterator<Item = &ChargePolicy> {
        self.charge_policies.iter().flatten()
    }
    pub fn charge_policy(&self, policy: u32) -> Option<&ChargePolicy> {
        entry(&self.charge_policies, policy)
    }

    /// The card by which usage at `at` is rated, if there is one: the pool's own card has precedence.
    pub fn rate_card_at(&self, pool: impl Into<Option<PoolNo>>, at: Instant) -> Option<&RateCard> {
        let pool = pool.into();
        let latest = |scope: Option<PoolNo>| {
            let begun = self.rate_cards().filter(move |card| card.pool == scope && card.has_begun(at));
            begun.max_by_key(|card| card.from)
        };
        pool.and_then(|pool| latest(Some(pool))).or_else(|| latest(None))
    }

    /// The prices at `at`.
    pub fn prices_at(&self, pool: impl Into<Option<PoolNo>>, at: Instant) -> &Prices {
        self.rate_card_at(pool, at).map_or(&DEFAULT_PRICES, |card| &card.prices)
    }

    pub fn charge_policy_at(&self, at: Instant) -> Option<&ChargePolicy> {
        self.charge_policies().filter(|policy| policy.has_begun(at)).max_by_key(|policy| policy.from)
    }

    /// What is charged for a lease that ends at `at`.
    pub fn charges_at(&self, at: Instant) -> &Charges {
        self.charge_policy_at(at).map_or(&DEFAULT_CHARGES, |policy| &policy.charges)
    }

    /// Another card of the same scope that takes effect at the same instant, which would be ambiguous.
    pub(crate) fn card_twin(&self, number: u32, pool: Option<PoolNo>, from: Instant) -> Option<u32> {
        let mut same = self.rate_cards().filter(|card| card.number != number);
        same.find(|card| card.pool == pool && card.from == from).map(|card| card.number)
    }

    pub(crate) fn policy_twin(&self, number: u32, from: Instant) -> Option<u32> {
        let mut same = self.charge_policies().filter(|policy| policy.number != number);
        same.find(|policy| policy.from == from).map(|policy| policy.number)
    }

    pub(crate) fn fold_rate_card(&mut self, put: &RateCardPut, stamp: Instant) -> Result<(), &'static str> {
        let number = put.card;
        if put.from < stamp {
            return Err("a rate card that takes effect in the past");
        }
        if self.rate_card(number).is_some_and(|old| old.has_begun(stamp)) {
            return Err("a rate card in force was changed");
        }
        if self.card_twin(number, put.pool, put.from).is_some() {
            return Err("two rate cards of one scope take effect at the same instant");
        }
        if put.pool.is_some_and(|pool| self.pool(pool).is_none()) {
            return Err("no such pool");
        }
        if put.prices.classes.iter().any(|(class, _)| self.class(*class).is_none()) {
            return Err("no such class");
        }
        let (pool, from, prices) = (put.pool, put.from, put.prices.clone());
        put_row(&mut self.rate_cards, number, RateCard { number, pool, from, prices, set_at: stamp })
    }

    pub(crate) fn fold_rate_card_deleted(&mut self, number: u32, stamp: Instant) -> Result<(), &'static str> {
        let row = self.rate_cards.get_mut(number as usize);
        let gone = row.and_then(|row| row.take_if(|card| !card.has_begun(stamp)));
        gone.map(|_| ()).ok_or("there is no such rate card that has not taken effect")
    }

    pub(crate) fn fold_charge_policy(&mut self, put: &ChargePolicyPut, stamp: Instant) -> Result<(), &'static str> {
        let number = put.policy;
        if put.from < stamp {
            return Err("a charge policy that takes effect in the past");
        }
        if self.charge_policy(number).is_some_and(|old| old.has_begun(stamp)) {
            return Err("a charge policy in force was changed");
        }
        if self.policy_twin(number, put.from).is_some() {
            return Err("two charge policies take effect at the same instant");
        }
        let (from, charges) = (put.from, put.charges.clone());
        put_row(&mut self.charge_policies, number, ChargePolicy { number, from, charges, set_at: stamp })
    }
}

/// Appends a row with the next number, or replaces an existing one.
fn put_row<T>(table: &mut Table<T>, number: u32, row: T) -> Result<(), &'static str> {
    let (index, len) = (number as usize, table.len());
    match table.get_mut(index) {
        Some(Some(old)) => *old = row,
        Some(None) => return Err("the number of a deleted row was used again"),
        None if index == len => table.push(Some(row)),
        None => return Err("a number was skipped"),
    }
    Ok(())
}
