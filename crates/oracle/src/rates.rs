//! Rate cards and charge policies: which are legal, and the expected answers (SEMANTICS 7).

use crate::ceiling::CardChange;
use crate::foretell::{Foretold, Told, sealed};
use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{ChargePolicyPut, RateCardDeleted, RateCardPut};
use leasehold_model::limits::{CARDS_WAITING_MAX, FACTOR_MAX, RATE_LINES_MAX, RATE_MAX, TTL_MAX};
use leasehold_model::rate::{Charge, Charges, Period, Prices};
use leasehold_model::{Instant, PoolNo, Record, Span, TenantNo};

/// Within the limits, sorted, and without duplicates.
fn can_be(prices: &Prices) -> bool {
    let rates = prices.kinds.0.iter().chain(prices.classes.iter().map(|(_, rate)| rate));
    let factors = prices.priorities.0.iter().chain(prices.tiers.iter().map(|(_, factor)| factor));
    let (classes, tiers) = (&prices.classes, &prices.tiers);
    rates.into_iter().all(|rate| *rate <= RATE_MAX)
        && factors.into_iter().all(|factor| *factor <= FACTOR_MAX)
        && classes.len() <= RATE_LINES_MAX
        && tiers.len() <= RATE_LINES_MAX
        && (1..classes.len()).all(|i| classes[i - 1].0 < classes[i].0)
        && prices.periods.classes.windows(2).all(|pair| pair[0].0 < pair[1].0)
        && prices.periods.classes.iter().all(|(class, period)| {
            *period != Period::Second && classes.iter().any(|(with_price, _)| with_price == class)
        })
        && (1..tiers.len()).all(|i| tiers[i - 1].0 < tiers[i].0)
}

fn can_be_charged(charges: &Charges) -> bool {
    let all = [charges.preempted, charges.fenced, charges.node_lost, charges.failed_start];
    all.into_iter().all(|charge| match charge {
        Charge::MinusLast(span) => span > Span::ZERO && span <= TTL_MAX,
        Charge::Full | Charge::None => true,
    })
}

/// Checks a new start within its scope: entries in force cannot change, no two start at the same instant, and the
/// number of future entries is limited.
fn check_start(
    own: Option<Instant>,
    others: &[(bool, Instant)],
    from: Instant,
    now: Instant,
) -> Result<(), &'static str> {
    if own.is_some_and(|own| own <= now) {
        return Err("in_force");
    }
    if from < now {
        return Err("start_in_past");
    }
    if others.iter().any(|(same_scope, other)| *same_scope && *other == from) {
        return Err("same_start");
    }
    let waiting = others.iter().filter(|(_, other)| *other > now).count();
    if from > now && waiting >= CARDS_WAITING_MAX { Err("too_many_cards_waiting") } else { Ok(()) }
}

impl World {
    fn check_card_start(
        &self,
        card: u32,
        pool: Option<PoolNo>,
        from: Instant,
        now: Instant,
    ) -> Result<(), &'static str> {
        let own = self.rate_cards.get(&card).map(|(own, _)| own.from);
        let others = self.rate_cards.values().filter(|(other, _)| other.card != card);
        let others: Vec<_> = others.map(|(other, _)| (other.pool == pool, other.from)).collect();
        check_start(own, &others, from, now)
    }

    fn check_policy_start(&self, policy: u32, from: Instant, now: Instant) -> Result<(), &'static str> {
        let own = self.charge_policies.get(&policy).map(|(own, _)| own.from);
        let others = self.charge_policies.values().filter(|(other, _)| other.policy != policy);
        let others: Vec<_> = others.map(|(other, _)| (true, other.from)).collect();
        check_start(own, &others, from, now)
    }

    pub(crate) fn rate_card_put(&mut self, record: &Record, put: &RateCardPut) -> Checked {
        let (number, stamp) = (put.card, record.stamp);
        demand!(can_be(&put.prices), "prices", "{:?}", put.prices);
        let missing = put.prices.classes.iter().find(|(class, _)| !self.classes.contains_key(class));
        demand!(missing.is_none(), "unknown-class", "a price of {missing:?}");
        let pool = put.pool.filter(|pool| !self.pools.contains_key(pool));
        demand!(pool.is_none(), "unknown-pool", "prices of {pool:?}");
        let start = self.check_card_start(number, put.pool, put.from, stamp);
        demand!(start.is_ok(), "rate-card-start", "card {number} from {}: {start:?}", put.from);
        if !self.rate_cards.contains_key(&number) {
            self.check_new_number("rate card", u64::from(number))?;
        }
        self.take_number("rate card", u64::from(number));
        self.rate_cards.insert(number, (put.clone(), stamp));
        let sequence = record.sequence;
        self.card_changes.push(CardChange { sequence, card: number, put: Some(put.clone()) });
        Ok(())
    }

    pub(crate) fn rate_card_deleted(&mut self, record: &Record, gone: &RateCardDeleted) -> Checked {
        let (number, stamp) = (gone.card, record.stamp);
        let (card, _) = found!(self.rate_cards.get(&number), "unknown-rate-card", "there is no card {number}");
        demand!(card.from > stamp, "rate-card-in-force", "card {number} has held since {}", card.from);
        self.rate_cards.remove(&number);
        self.card_changes.push(CardChange { sequence: record.sequence, card: number, put: None });
        Ok(())
    }

    pub(crate) fn charge_policy_put(&mut self, put: &ChargePolicyPut, stamp: Instant) -> Checked {
        let number = put.policy;
        demand!(can_be_charged(&put.charges), "charges", "{:?}", put.charges);
        let start = self.check_policy_start(number, put.from, stamp);
        demand!(start.is_ok(), "charge-policy-start", "policy {number} from {}: {start:?}", put.from);
        if !self.charge_policies.contains_key(&number) {
            self.check_new_number("charge policy", u64::from(number))?;
        }
        self.take_number("charge policy", u64::from(number));
        self.charge_policies.insert(number, (put.clone(), stamp));
        Ok(())
    }

    pub(crate) fn foretell_card(
        &self,
        tenant: Option<TenantNo>,
        card: Option<u32>,
        put: (Option<PoolNo>, Option<Instant>, &Prices),
        now: Instant,
    ) -> Told {
        let (pool, from, prices) = put;
        if !can_be(prices) {
            return Err("bad_prices");
        }
        if prices.classes.iter().any(|(class, _)| !self.classes.contains_key(class)) {
            return Err("unknown_class");
        }
        if pool.is_some_and(|pool| !self.pools.contains_key(&pool)) {
            return Err("unknown_pool");
        }
        if card.is_some_and(|card| !self.rate_cards.contains_key(&card)) {
            return Err("unknown_rate_card");
        }
        let card = card.unwrap_or_else(|| self.next_number("rate card"));
        let from = from.unwrap_or(now);
        self.check_card_start(card, pool, from, now).map_err(|why| named(why, "rate_card_in_force"))?;
        sealed(tenant, RateCardPut { card, pool, from, prices: prices.clone() })
    }

    pub(crate) fn foretell_card_deleted(&self, tenant: Option<TenantNo>, card: u32, now: Instant) -> Told {
        let (found, _) = self.rate_cards.get(&card).ok_or("unknown_rate_card")?;
        if found.from <= now {
            return Err("rate_card_in_force");
        }
        sealed(tenant, RateCardDeleted { card })
    }

    pub(crate) fn foretell_policy(
        &self,
        tenant: Option<TenantNo>,
        policy: Option<u32>,
        put: (Option<Instant>, &Charges),
        now: Instant,
    ) -> Result<Foretold, &'static str> {
        let (from, charges) = put;
        if !can_be_charged(charges) {
            return Err("setting_out_of_range");
        }
        if policy.is_some_and(|policy| !self.charge_policies.contains_key(&policy)) {
            return Err("unknown_charge_policy");
        }
        let policy = policy.unwrap_or_else(|| self.next_number("charge policy"));
        let from = from.unwrap_or(now);
        self.check_policy_start(policy, from, now).map_err(|why| named(why, "charge_policy_in_force"))?;
        sealed(tenant, ChargePolicyPut { policy, from, charges: charges.clone() })
    }
}

fn named(why: &'static str, in_force: &'static str) -> &'static str {
    if why == "in_force" { in_force } else { why }
}
