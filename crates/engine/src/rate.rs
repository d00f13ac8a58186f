//! What capacity costs and when: rate cards, charge policies, and which of them hold at an instant.

use crate::state::{State, Table, entry};
use leasehold_model::body::{ChargePolicyPut, RateCardPut};
use leasehold_model::rate::{Charges, DEFAULT_PRICES, Prices};
use leasehold_model::{Instant, PoolNo};

/// Prices that hold from an instant on, until the next card of the same scope does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateCard {
    pub number: u32,
    /// Absent on a card for all pools that have none of their own.
    pub pool: Option<PoolNo>,
    pub from: Instant,
    pub prices: Prices,
    /// When it was put, or put again while it waited.
    pub set_at: Instant,
}

/// What is charged for leases that end badly from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargePolicy {
    pub number: u32,
    pub from: Instant,
    pub charges: Charges,
    pub set_at: Instant,
}

impl RateCard {
    /// From here on it can no longer change: seconds may have been rated by it.
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
    /// By number, those that were withdrawn left out.
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

    /// The card by which a second at `at` is rated, if anyone has set one: the pool's own before the one for all.
    pub fn rate_card_at(&self, pool: impl Into<Option<PoolNo>>, at: Instant) -> Option<&RateCard> {
        let pool = pool.into();
        let latest = |scope: Option<PoolNo>| {
            let begun = self.rate_cards().filter(move |card| card.pool == scope && card.has_begun(at));
            begun.max_by_key(|card| card.from)
        };
        pool.and_then(|pool| latest(Some(pool))).or_else(|| latest(None))
    }

    /// The prices of a second at `at`.
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

    /// Another card of the same scope that begins at the same instant: the two could not be told apart.
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
            return Err("prices that would change the past");
        }
        if self.rate_card(number).is_some_and(|old| old.has_begun(stamp)) {
            return Err("a rate card in force that would change");
        }
        if self.card_twin(number, put.pool, put.from).is_some() {
            return Err("two rate cards that begin as one");
        }
        if put.pool.is_some_and(|pool| self.pool(pool).is_none()) {
            return Err("no such pool");
        }
        if put.prices.classes.iter().any(|(class, _)| self.class(*class).is_none()) {
            return Err("no such class");
        }
        let (pool, from, prices) = (put.pool, put.from, put.prices.clone());
        place(&mut self.rate_cards, number, RateCard { number, pool, from, prices, set_at: stamp })
    }

    pub(crate) fn fold_rate_card_deleted(&mut self, number: u32, stamp: Instant) -> Result<(), &'static str> {
        let row = self.rate_cards.get_mut(number as usize);
        let gone = row.and_then(|row| row.take_if(|card| !card.has_begun(stamp)));
        gone.map(|_| ()).ok_or("no such rate card that waits")
    }

    pub(crate) fn fold_charge_policy(&mut self, put: &ChargePolicyPut, stamp: Instant) -> Result<(), &'static str> {
        let number = put.policy;
        if put.from < stamp {
            return Err("a charge policy that would change the past");
        }
        if self.charge_policy(number).is_some_and(|old| old.has_begun(stamp)) {
            return Err("a charge policy in force that would change");
        }
        if self.policy_twin(number, put.from).is_some() {
            return Err("two charge policies that begin as one");
        }
        let (from, charges) = (put.from, put.charges.clone());
        place(&mut self.charge_policies, number, ChargePolicy { number, from, charges, set_at: stamp })
    }
}

/// At the next number, or instead of one that is there.
fn place<T>(table: &mut Table<T>, number: u32, row: T) -> Result<(), &'static str> {
    let (place, len) = (number as usize, table.len());
    match table.get_mut(place) {
        Some(Some(old)) => *old = row,
        Some(None) => return Err("a number that was withdrawn"),
        None if place == len => table.push(Some(row)),
        None => return Err("a number was skipped"),
    }
    Ok(())
}
