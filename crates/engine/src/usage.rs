//! Reported usage: the IDs of the last records, what was used in each month, and what is not posted yet.
//!
//! The books know all IDs. Whoever reports usage asks them first, and the engine checks the records since (SEMANTICS 12).

use crate::apps::UnitPrice;
use crate::index::Dense;
use crate::state::State;
use ethnum::{I256, U256};
use leasehold_meter::{UnitPart, unit_parts};
use leasehold_model::body::{ReplacedUsage, UsageKey, UsageReport};
use leasehold_model::limits::{LEASE_COST_MAX, RECENT_USAGE_IDS, REFUSED_USAGE_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Amount, AppInstanceNo, AppTypeNo, Funds, Instant, Item, LineKey, Month, ProjectNo, TenantNo, UnitNo, UnitQuantity,
    UsageCharge,
};
use std::collections::{BTreeMap, VecDeque};

/// The ID of a usage record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentId {
    pub(crate) key: UsageKey,
    /// A digest of what was reported.
    pub(crate) payload: u64,
    pub(crate) sequence: u64,
}

/// Who pays, in one currency.
pub(crate) type UnitPayer = (TenantNo, ProjectNo, Currency);

/// Parts of a billionth in an exact cost of usage units: a part of a line has eighteen decimals, a price nine.
const COST_PARTS: u128 = UnitQuantity::LINE_PARTS;

/// What is not posted yet of accepted usage, in parts of a billionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unposted {
    pub(crate) accepted: I256,
    /// What an incomplete posting says of it: it counts when the posting is complete.
    pub(crate) in_parts: I256,
}

impl Default for Unposted {
    fn default() -> Self {
        Self { accepted: I256::ZERO, in_parts: I256::ZERO }
    }
}

/// Usage that an entitlement refused: its ID, and a digest of what was reported.
pub(crate) type Refused = (UsageKey, u64);

/// What was used in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MonthUse {
    pub(crate) all: UnitQuantity,
    /// That of it which is charged.
    pub(crate) billed: UnitQuantity,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The last IDs, the oldest first.
    pub(crate) recent: VecDeque<RecentId>,
    /// The IDs of all records from this one on are among them.
    pub(crate) recent_from: u64,
    /// How many were forgotten, so that the place of one does not change: the index has these places.
    pub(crate) forgotten: u64,
    /// Which record replaced another one, for those among the recent ones that did: by the sequence of the replaced one.
    pub(crate) replaced: BTreeMap<u64, u64>,
    /// The same in the order of the records that replaced another one, so that the oldest are found at once.
    pub(crate) replacers: VecDeque<(u64, u64)>,
    /// What was used in each month that usage can still be reported for, by the month of its end.
    pub(crate) months: BTreeMap<(Month, ProjectNo, AppInstanceNo, UnitNo), MonthUse>,
    pub(crate) unposted: BTreeMap<UnitPayer, Unposted>,
    /// What was accepted before the ledger was opened, by hour: the ledger posts the hours from its opening on.
    pub(crate) before_ledger: BTreeMap<(UnitPayer, Instant), I256>,
    /// The last reports that entitlements refused with the records that say so, and the same in the order of these.
    pub(crate) refused: BTreeMap<Refused, u64>,
    pub(crate) refusals: BTreeMap<u64, Refused>,
}

impl Usage {
    pub(crate) fn used_in(&self, month: Month, project: ProjectNo, app: AppInstanceNo, unit: UnitNo) -> UnitQuantity {
        self.months.get(&(month, project, app, unit)).map(|used| used.all).unwrap_or_default()
    }

    /// Adds to what was used in a month, and takes away from it.
    pub(crate) fn count(
        &mut self,
        of: (Month, ProjectNo, AppInstanceNo, UnitNo),
        (more, less): (UnitQuantity, UnitQuantity),
        charge: UsageCharge,
    ) {
        let change = |used: &mut UnitQuantity| used.0 = (used.0 + more.0).saturating_sub(less.0);
        let used = self.months.entry(of).or_default();
        change(&mut used.all);
        if charge == UsageCharge::Billed {
            change(&mut used.billed);
        }
        if *used == MonthUse::default() {
            self.months.remove(&of);
        }
    }

    /// Remembers a refused report, and forgets the oldest one for it.
    pub(crate) fn remember_refused(&mut self, refused: Refused, sequence: u64) {
        self.refusals.insert(sequence, refused);
        if let Some(before) = self.refused.insert(refused, sequence) {
            self.refusals.remove(&before);
        }
        if self.refusals.len() > REFUSED_USAGE_MAX
            && let Some((_, oldest)) = self.refusals.pop_first()
        {
            self.refused.remove(&oldest);
        }
    }

    /// Notes that a record replaced another one; those records come in order.
    pub(crate) fn note_replaced(&mut self, replaced: u64, by: u64) {
        self.replaced.insert(replaced, by);
        self.replacers.push_back((by, replaced));
    }

    /// Forgets what older records than the remembered ones replaced: the books know it.
    pub(crate) fn forget_replaced(&mut self) {
        while let Some((_, replaced)) = self.replacers.front().copied().filter(|(by, _)| *by < self.recent_from) {
            self.replacers.pop_front();
            self.replaced.remove(&replaced);
        }
    }

    /// Restores the order from what a snapshot has.
    pub(crate) fn order_replaced(&mut self) {
        let mut replacers: Vec<(u64, u64)> = self.replaced.iter().map(|(replaced, by)| (*by, *replaced)).collect();
        replacers.sort_unstable();
        self.replacers = replacers.into();
    }

    /// Remembers an ID; returns those that are forgotten for it.
    pub(crate) fn remember(&mut self, id: RecentId) -> Option<RecentId> {
        self.recent.push_back(id);
        if self.recent.len() <= RECENT_USAGE_IDS {
            return None;
        }
        let oldest = self.recent.pop_front()?;
        self.forgotten += 1;
        self.recent_from = oldest.sequence + 1;
        Some(oldest)
    }

    /// The place of an ID that is being remembered or forgotten, for the index.
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^32 are remembered at a time")]
    fn place(number: u64) -> u32 {
        number as u32
    }

    pub(crate) fn newest_place(&self) -> u32 {
        Self::place(self.forgotten + self.recent.len() as u64 - 1)
    }

    /// The place of the one that was forgotten last.
    pub(crate) fn forgotten_place(&self) -> u32 {
        Self::place(self.forgotten - 1)
    }

    fn at(&self, place: u32) -> Option<&RecentId> {
        self.recent.get(place.wrapping_sub(Self::place(self.forgotten)) as usize)
    }
}

/// Finds the IDs of the last usage records. It follows from them and is not part of a state (ADR 18).
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageIndex {
    places: Dense,
}

/// The keys are digests already.
fn hash(key: UsageKey) -> u64 {
    key[0] ^ key[1].rotate_left(32)
}

impl UsageIndex {
    pub(crate) fn of(usage: &Usage) -> Self {
        let mut index = Self::default();
        for (number, id) in (usage.forgotten..).zip(&usage.recent) {
            index.add(Usage::place(number), id.key);
        }
        index
    }

    pub(crate) fn add(&mut self, place: u32, key: UsageKey) {
        self.places.insert(hash(key), place);
    }

    pub(crate) fn remove(&mut self, place: u32, key: UsageKey) {
        self.places.remove(hash(key), place);
    }

    pub(crate) fn find<'u>(&self, usage: &'u Usage, key: UsageKey) -> Option<&'u RecentId> {
        let is_it = |place: u32| usage.at(place).is_some_and(|id| id.key == key);
        self.places.find(hash(key), is_it).and_then(|place| usage.at(place))
    }
}

/// What a part of a usage record costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsageCost {
    pub(crate) currency: Currency,
    /// In which it is booked.
    pub(crate) hour: Instant,
    /// In parts of a billionth.
    pub(crate) exact: I256,
}

/// What a usage record, or the one that it replaces, says about an amount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) app_instance: AppInstanceNo,
    pub(crate) unit: UnitNo,
    pub(crate) quantity: UnitQuantity,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) charge: UsageCharge,
}

impl Used {
    pub(crate) fn of(report: &UsageReport, charge: UsageCharge) -> Self {
        let UsageReport { app_instance, unit, quantity, from, to, .. } = *report;
        Self { app_instance, unit, quantity, from, to, charge }
    }

    /// What the replaced record of a report said.
    pub(crate) fn replaced(report: &UsageReport, replaced: &ReplacedUsage) -> Self {
        let ReplacedUsage { quantity, from, to, charge, .. } = *replaced;
        Self { app_instance: report.app_instance, unit: report.unit, quantity, from, to, charge }
    }
}

impl State {
    /// The price of a unit for an app that is in force at an instant: its own, or else the one for all apps.
    pub fn unit_price_for(&self, unit: UnitNo, app_type: AppTypeNo, at: Instant) -> Option<&UnitPrice> {
        let own = self.unit_price_at(unit, Some(app_type), at);
        own.or_else(|| self.unit_price_at(unit, None, at))
    }

    /// What usage costs, by currency and the hour in which it is booked, in parts of a billionth. What is only reported costs
    /// nothing.
    pub(crate) fn cost_of_usage(&self, used: &Used) -> Vec<UsageCost> {
        let Some(app_type) = self.app_instance(used.app_instance).map(|found| found.app_type) else {
            return Vec::new();
        };
        let Some(measure) = self.unit(used.unit).map(|unit| unit.measure) else { return Vec::new() };
        if used.charge == UsageCharge::Reported {
            return Vec::new();
        }
        let of_unit = self.unit_prices().iter().filter(|price| price.unit == used.unit);
        let parts = unit_parts(measure, used.quantity, (used.from, used.to), of_unit.map(|price| price.from));
        let cost = |part: UnitPart| {
            let price = self.unit_price_for(used.unit, app_type, part.priced_at)?;
            let exact = (U256::from(part.quantity) * U256::from(price.price.0)).as_i256();
            Some(UsageCost { currency: price.currency, hour: part.hour, exact })
        };
        parts.into_iter().filter_map(cost).collect()
    }

    /// The cost of a posted line of a usage unit, in parts of a billionth.
    pub(crate) fn cost_of_unit_line(&self, key: &LineKey, usage: i128) -> I256 {
        let Item::Unit(_) = key.item else { return I256::ZERO };
        let price = key.card.and_then(|number| self.unit_prices().get(number.checked_sub(1)? as usize));
        price.map_or(I256::ZERO, |price| I256::from(usage) * I256::from(price.price.0))
    }

    /// What of accepted usage is not posted yet.
    pub(crate) fn unposted_units(&self, of: UnitPayer) -> Funds {
        self.usage.unposted.get(&of).map_or(Funds::ZERO, |unposted| shown(unposted.accepted))
    }
}

/// Parts of a billionth as an amount of money, rounded up to a billionth.
fn shown(exact: I256) -> Funds {
    if exact >= I256::ZERO {
        return Funds::from(in_billionths(exact.as_u256()));
    }
    let whole = exact.unsigned_abs() / U256::from(COST_PARTS);
    let size = u128::try_from(whole).map_or(LEASE_COST_MAX, |cost| Amount(cost).min(LEASE_COST_MAX));
    Funds::ZERO.minus(Funds::from(size))
}

/// Rounded up to a billionth.
pub(crate) fn in_billionths(exact: U256) -> Amount {
    let parts = U256::from(COST_PARTS);
    let whole = exact / parts + U256::from(u8::from(exact % parts != U256::ZERO));
    u128::try_from(whole).map_or(LEASE_COST_MAX, |cost| Amount(cost).min(LEASE_COST_MAX))
}
