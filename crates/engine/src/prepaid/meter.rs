//! What a project has used since its last posting, in money, without a list of its leases.
//!
//! All of it is counted from `from`, the end of the last hour that was posted. C(t) is the price of one quantum from
//! there to t, in parts of a billionth. What held leases cost from `from`, or from their grant if that is later, is the
//! sum of C over their deadlines, less the sum over their grants; both change by one term with each lease. So neither a
//! grant nor the end of an hour has to look at other leases. Everything is exact until it is shown.

use crate::ceiling::Priced;
use crate::claims::ClaimedNode;
use crate::lease::Lease;
use crate::ledger::{ByMonth, HOUR};
use crate::state::State;
use ethnum::{I256, U256};
use leasehold_meter::billionths_up;
use leasehold_model::ledger::hour_of;
use leasehold_model::limits::LEASE_COST_MAX;
use leasehold_model::rate::{Currency, Period};
use leasehold_model::{Amount, ClassNo, Instant, NodeNo, PoolNo, Priority};
use std::collections::BTreeMap;

/// What has one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) pool: PoolNo,
    pub(crate) class: ClassNo,
    pub(crate) priority: Priority,
}

impl Item {
    fn of(lease: &Lease) -> Self {
        Self { pool: lease.pool, class: lease.class, priority: lease.priority }
    }

    fn quanta(self, quanta: u64) -> Priced {
        Priced { class: self.class, quanta, pool: self.pool, priority: self.priority }
    }
}

/// Held leases that were granted in one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) quanta: u64,
    /// The sum of C over their grants.
    pub(crate) grants: I256,
}

/// The leases of one price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    /// What is held now.
    pub(crate) quanta: u64,
    /// The sum of C over the deadlines of what is held.
    pub(crate) deadlines: I256,
    /// What of it was granted since `from`, by hour.
    pub(crate) begun: BTreeMap<Instant, Begun>,
    /// The cost of what has ended since `from`, by hour.
    pub(crate) ended: BTreeMap<Instant, I256>,
}

impl Running {
    /// The cost from `from` on of what has ended, less C over the grants of what is held.
    fn base(&self) -> I256 {
        let ended: I256 = self.ended.values().copied().sum();
        let grants: I256 = self.begun.values().map(|begun| begun.grants).sum();
        ended - grants
    }
    fn is_empty(&self) -> bool {
        self.quanta == 0 && self.ended.is_empty()
    }
}

/// The meter of one project in one currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter {
    /// What was used before this is posted.
    pub(crate) from: Instant,
    /// The sums of a posting that lacks parts.
    pub(crate) parts: ByMonth,
    pub(crate) items: BTreeMap<Item, Running>,
    /// The claimed nodes, with the instant from which each has counted as it does now.
    pub(crate) claims: BTreeMap<NodeNo, Instant>,
}

impl Meter {
    /// Whether anything is used now.
    pub(crate) fn is_running(&self) -> bool {
        !self.claims.is_empty() || self.items.values().any(|running| running.quanta > 0)
    }
}

/// Parts of a billionth of a class.
fn divisor(state: &State, class: ClassNo) -> u64 {
    state.class(class).expect("the class of what is used exists").quanta_per_unit * Period::Day.seconds()
}

impl State {
    /// The price of one quantum from one instant to another; negative if the second one is earlier.
    fn price(&self, item: Item, from: Instant, to: Instant, currency: Currency) -> I256 {
        let signed = |price: U256| price.as_i256();
        match from <= to {
            true => signed(self.exact_cost(item.quanta(1), from, to, currency)),
            false => -signed(self.exact_cost(item.quanta(1), to, from, currency)),
        }
    }

    fn shown(&self, class: ClassNo, exact: I256) -> Amount {
        if exact <= I256::ZERO {
            return Amount::ZERO;
        }
        let cost = billionths_up(exact.as_u256(), divisor(self, class));
        u128::try_from(cost).map_or(LEASE_COST_MAX, |cost| Amount(cost).min(LEASE_COST_MAX))
    }

    /// Counts a lease that is held from now on, or was when the meter began.
    pub(crate) fn begin_on(&self, meter: &mut Meter, lease: &Lease, currency: Currency) {
        let (item, quanta, from) = (Item::of(lease), lease.quanta.0, meter.from);
        let times = |price: I256| price * I256::from(quanta);
        let running = meter.items.entry(item).or_default();
        running.quanta += quanta;
        running.deadlines += times(self.price(item, from, lease.expires_at, currency));
        if lease.granted_at >= from {
            let begun = running.begun.entry(hour_of(lease.granted_at)).or_default();
            begun.quanta += quanta;
            begun.grants += times(self.price(item, from, lease.granted_at, currency));
        }
    }

    /// Counts the new deadline of a lease.
    pub(crate) fn extend_on(&self, meter: &mut Meter, lease: &Lease, before: Instant, currency: Currency) {
        let item = Item::of(lease);
        let more = self.price(item, before, lease.expires_at, currency) * I256::from(lease.quanta.0);
        meter.items.entry(item).or_default().deadlines += more;
    }

    /// Counts the end of a lease.
    pub(crate) fn end_on(&self, meter: &mut Meter, lease: &Lease, currency: Currency) {
        let (item, quanta, from) = (Item::of(lease), lease.quanta.0, meter.from);
        let times = |price: I256| price * I256::from(quanta);
        let running = meter.items.entry(item).or_default();
        running.quanta -= quanta;
        running.deadlines -= times(self.price(item, from, lease.expires_at, currency));
        if lease.granted_at >= from
            && let Some(begun) = running.begun.get_mut(&hour_of(lease.granted_at))
        {
            begun.quanta -= quanta;
            begun.grants -= times(self.price(item, from, lease.granted_at, currency));
            if begun.quanta == 0 {
                running.begun.remove(&hour_of(lease.granted_at));
            }
        }
        self.add_ended(meter, item, quanta, (lease.granted_at, lease.ended_at), currency);
    }

    /// Adds what is over to the hours in which it was used.
    fn add_ended(
        &self,
        meter: &mut Meter,
        item: Item,
        quanta: u64,
        (since, until): (Instant, Instant),
        currency: Currency,
    ) {
        let mut at = since.max(meter.from);
        let running = meter.items.entry(item).or_default();
        while at < until {
            let hour = hour_of(at);
            let next = until.min(hour.saturating_add(HOUR));
            let cost = self.price(item, at, next, currency) * I256::from(quanta);
            if cost != I256::ZERO {
                *running.ended.entry(hour).or_default() += cost;
            }
            at = next;
        }
        if running.is_empty() {
            meter.items.remove(&item);
        }
    }

    /// What was used before an instant is posted: the meter counts from there.
    pub(crate) fn advance_on(&self, meter: &mut Meter, to: Instant, currency: Currency) {
        if to <= meter.from {
            return;
        }
        for (item, running) in &mut meter.items {
            let price = self.price(*item, meter.from, to, currency);
            running.deadlines -= price * I256::from(running.quanta);
            running.begun = running.begun.split_off(&to);
            running.begun.values_mut().for_each(|begun| begun.grants -= price * I256::from(begun.quanta));
            running.ended = running.ended.split_off(&to);
        }
        meter.items.retain(|_, running| !running.is_empty());
        meter.from = to;
    }

    /// Prices of the future have changed: the sums over deadlines are computed again.
    pub(crate) fn reprice_meters(&mut self) {
        let mut prepaids = std::mem::take(&mut self.prepaids);
        let running = prepaids.meters.values_mut().flat_map(|meter| meter.items.values_mut());
        running.for_each(|running| running.deadlines = I256::ZERO);
        for lease in self.leases.in_any_order().filter(|lease| self.is_metered(lease)) {
            let range = (lease.tenant, lease.payer, Currency::FIRST)..;
            let of_lease = prepaids.meters.range_mut(range);
            for ((.., currency), meter) in of_lease.take_while(|((_, of, _), _)| *of == lease.payer) {
                let item = Item::of(lease);
                let price = self.price(item, meter.from, lease.expires_at, *currency);
                let running = meter.items.get_mut(&item).expect("a held lease is metered");
                running.deadlines += price * I256::from(lease.quanta.0);
            }
        }
        self.prepaids = prepaids;
    }

    /// Counts a change of what a claimed node counts.
    pub(crate) fn claim_on(
        &self,
        meter: &mut Meter,
        node: NodeNo,
        before: Option<&ClaimedNode>,
        after: Option<Instant>,
        until: Instant,
        currency: Currency,
    ) {
        let since = meter.claims.remove(&node);
        if let Some((before, since)) = before.zip(since) {
            for (class, quanta) in before.in_use() {
                let item = Item { pool: before.pool, class: *class, priority: Priority::Guaranteed };
                self.add_ended(meter, item, *quanta, (since, until), currency);
            }
        }
        meter.claims.extend(after.map(|since| (node, since)));
    }

    fn claims_cost(
        &self,
        meter: &Meter,
        currency: Currency,
        span: impl Fn(&ClaimedNode) -> (Instant, Instant),
    ) -> Amount {
        let claimed = meter.claims.iter().filter_map(|(node, since)| Some((self.claimed_node(*node)?, *since)));
        let cost = |(claimed, since): (ClaimedNode, Instant)| {
            let (from, to) = span(&claimed);
            let from = from.max(since).max(meter.from);
            self.cost_of_claim(&claimed, from, to.max(from), currency)
        };
        claimed.map(cost).sum()
    }

    /// What was used since the last posting.
    pub(crate) fn accrued_on(&self, meter: &Meter, currency: Currency, at: Instant) -> Amount {
        let leases = meter.items.iter().map(|(item, running)| {
            let held = self.price(*item, meter.from, at, currency) * I256::from(running.quanta);
            self.shown(item.class, held + running.base())
        });
        let claims = self.claims_cost(meter, currency, |_| (meter.from, at));
        leases.sum::<Amount>().saturating_add(claims)
    }

    /// What was used since the last posting, and will be until the ends of leases and claims.
    pub(crate) fn committed_on(&self, meter: &Meter, currency: Currency, at: Instant) -> Amount {
        let leases =
            meter.items.iter().map(|(item, running)| self.shown(item.class, running.deadlines + running.base()));
        let claims = self
            .claims_cost(meter, currency, |claimed| (meter.from, claimed.claim.until.map_or(at, |end| end.max(at))));
        leases.sum::<Amount>().saturating_add(claims)
    }

    /// What is used between two instants if everything goes on as it is.
    pub(crate) fn burnt_on(&self, meter: &Meter, currency: Currency, (from, to): (Instant, Instant)) -> Amount {
        let leases = meter.items.iter().map(|(item, running)| {
            let price = self.price(*item, from, to, currency);
            self.shown(item.class, price * I256::from(running.quanta))
        });
        let claims = self.claims_cost(meter, currency, |_| (from, to));
        leases.sum::<Amount>().saturating_add(claims)
    }

    /// Whether a lease costs anything in a currency at an instant.
    pub(crate) fn costs_in(&self, lease: &Lease, at: Instant, currency: Currency) -> bool {
        self.price(Item::of(lease), at, Instant(at.0.saturating_add(1)), currency) > I256::ZERO
    }

    /// Whether a lease is counted by itself, and not by the claim on its node.
    pub(crate) fn is_metered(&self, lease: &Lease) -> bool {
        lease.phase.is_held() && !self.is_counted_by_claim(lease)
    }
}
