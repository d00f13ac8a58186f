//! Waste: capacity that was held and not used (SEMANTICS 8).

use crate::activity::Activity;
use crate::ask::Filter;
use crate::facts::{Books, BooksError, Phase};
use crate::row::Row;
use crate::scan::held_until;
use ethnum::U256;
use leasehold_meter::{Money, Overflow, QuantaNs, Window, rate};
pub use leasehold_model::WasteClass;
use leasehold_model::rate::Currency;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, Priority, ProjectNo, TenantNo, UserNo};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The most live leases of one holder and class, each below a sixteenth of its node, that do not count as fragmented.
pub const FRAGMENTED_LEASE_COUNT: usize = 32;

/// The waste of one lease. The whole lease is considered, even outside of the window that selected it.
#[derive(Clone, Debug)]
pub struct LeaseWaste {
    pub row: Row,
    /// Whether it is still held.
    pub live: bool,
    /// All classes that match; the first is the main class.
    pub classes: SmallVec<[WasteClass; 3]>,
    /// Held capacity, and the part of it that reports cover, in quanta × nanoseconds.
    pub held: QuantaNs,
    pub covered: QuantaNs,
    pub busy: QuantaNs,
    /// Covered but not busy, if the lease counts as waste.
    pub wasted: QuantaNs,
    /// The wasted share of the cost in billionths, rounded down; the cost is first rounded to billionths.
    pub wasted_money: Vec<(Currency, u128)>,
}

impl LeaseWaste {
    pub fn activity(&self) -> Activity {
        Activity { held: self.held, covered: self.covered, busy: self.busy }
    }
    pub fn headline(&self) -> WasteClass {
        self.classes[0]
    }
}

/// The waste of the leases in a window.
#[derive(Clone, Debug, Default)]
pub struct Waste {
    pub leases: Vec<LeaseWaste>,
}

/// The class by utilisation and activity only.
fn classify(row: &Row, length: u64, premium: bool) -> SmallVec<[WasteClass; 3]> {
    let mut classes = SmallVec::new();
    let Some(activity) = row.activity.as_ref().filter(|sum| u128::from(sum.covered.0) * 2 >= u128::from(length)) else {
        return classes;
    };
    let covered = u128::from(activity.covered.0);
    // Less than a quarter busy; compared as products to avoid rounding.
    let unused = activity.busy.saturating_mul(4) < u128::from(row.quanta) * covered;
    if premium && unused {
        classes.push(WasteClass::PremiumWaste);
    }
    if u128::from(activity.active.0) * 10 < covered {
        classes.push(WasteClass::Idle);
    }
    if unused {
        classes.push(WasteClass::Overprovisioned);
    }
    classes
}

type Holder = (TenantNo, ProjectNo, Option<UserNo>, ClassNo);

fn holder(row: &Row) -> Holder {
    (row.tenant, row.project, row.user, row.class)
}

impl Books {
    /// The number of small live leases by holder and class.
    fn small_leases(&self) -> BTreeMap<Holder, usize> {
        let mut counts = BTreeMap::new();
        for open in self.open.values().filter(|open| open.phase == Phase::Held && self.is_small(&open.row)) {
            *counts.entry(holder(&open.row)).or_default() += 1;
        }
        counts
    }

    fn is_small(&self, row: &Row) -> bool {
        let node = self.nodes.books.get(&row.node);
        let class = node.and_then(|node| node.classes.iter().find(|class| class.class == row.class));
        class.is_some_and(|class| u128::from(row.quanta) * 16 < u128::from(class.capacity))
    }

    /// The waste of every lease that was held within the window; live leases count up to `window.to`.
    pub fn waste(&self, window: Window, filter: &Filter, fragmented_above: usize) -> Result<Waste, BooksError> {
        let small = self.small_leases();
        let mut found = Vec::new();
        self.scan_rows(window, false, |row| {
            if row.is_lease() && filter.takes_row(row) {
                found.push((row.clone(), false));
            }
        })?;
        for open in self.open.values().filter(|open| filter.takes_row(&open.row)) {
            let held = held_until(open, window.to);
            if held.meets(window) {
                found.push((Row { held, ..open.row.clone() }, open.phase == Phase::Held));
            }
        }
        let assess = |(row, live): (Row, bool)| self.assess(row, live, &small, fragmented_above);
        let mut leases = found.into_iter().map(assess).collect::<Result<Vec<_>, _>>()?;
        leases.sort_unstable_by_key(|lease| lease.row.lease);
        self.sound(Waste { leases })
    }

    fn assess(
        &self,
        row: Row,
        live: bool,
        small: &BTreeMap<Holder, usize>,
        fragmented_above: usize,
    ) -> Result<LeaseWaste, BooksError> {
        let premium = self.classes.get(&row.class).is_some_and(|spec| spec.premium);
        let length = row.held.length().0;
        let mut classes = classify(&row, length, premium);
        let is_waste = !classes.is_empty();
        if live && self.is_small(&row) && small.get(&holder(&row)).is_some_and(|count| *count > fragmented_above) {
            classes.push(WasteClass::Fragmented);
        }
        let known = row.activity.as_ref().is_some_and(|sum| u128::from(sum.covered.0) * 2 >= u128::from(length));
        if classes.is_empty() {
            classes.push(if known { WasteClass::Healthy } else { WasteClass::Unknown });
        }
        let Activity { held, covered, busy } = Activity::of(&row, row.held);
        let wasted = if is_waste { covered.saturating_sub(busy) } else { 0 };
        let wasted_money = if wasted == 0 { Vec::new() } else { self.share_of_cost(&row, wasted, held)? };
        Ok(LeaseWaste { row, live, classes, held, covered, busy, wasted, wasted_money })
    }

    /// The fraction `part / whole` of a lease's cost, in billionths, rounded down.
    fn share_of_cost(&self, row: &Row, part: u128, whole: u128) -> Result<Vec<(Currency, u128)>, BooksError> {
        let mut shares = Vec::new();
        for (currency, money) in self.cost_of(row, row.held)? {
            let billionths = money.rounded(9)?;
            let product = billionths.checked_mul(U256::from(part.min(whole))).ok_or(Overflow)?;
            let share = product / U256::from(whole.max(1));
            shares.push((currency, u128::try_from(share).map_err(|_| Overflow)?));
        }
        Ok(shares)
    }

    /// What the idle capacity of a class in a pool, or on one of its nodes, would have earned at scavenger priority, at
    /// the prices of each instant.
    pub fn stranded(
        &self,
        pool: PoolNo,
        class: ClassNo,
        node: Option<NodeNo>,
        window: Window,
    ) -> Result<Vec<(Currency, Money)>, BooksError> {
        let Some(spec) = self.classes.get(&class) else { return Ok(Vec::new()) };
        let mut borders: Vec<Instant> = vec![window.from];
        borders.extend(self.schedule.changes(pool, window));
        borders.push(window.to);
        let mut earned: BTreeMap<Currency, Money> = BTreeMap::new();
        for pair in borders.windows(2) {
            let piece = Window::new(pair[0], pair[1]);
            let lines = self.capacity(piece, false, false, |of, on, wanted| {
                of == pool && wanted == class && node.is_none_or(|node| node == on)
            })?;
            let idle = lines.iter().map(|(_, line)| line.idle).sum();
            let prices = self.schedule.prices_at(pool, pair[0]);
            let money = Money::of(idle, rate(prices, class, spec, Priority::Scavenger))?;
            earned.entry(prices.currency).or_default().add_all(&money)?;
        }
        Ok(earned.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Books, ClassNo, Instant, ProjectNo, Row, TenantNo, WasteClass, Window, classify};
    use crate::row::{End, Life};
    use leasehold_model::{Activity, LeaseNo, NodeNo, PoolNo, Priority, Span};
    use std::collections::BTreeMap;

    /// A lease of 8 quanta over 1000 ns, of which reports cover so much.
    fn row(covered: u64, busy: u128, active: u64) -> Row {
        Row {
            lease: LeaseNo(1),
            tenant: TenantNo(0),
            project: ProjectNo(0),
            payer: ProjectNo(0),
            user: None,
            pool: PoolNo(0),
            node: NodeNo(0),
            class: ClassNo(0),
            priority: Priority::Standard,
            by_claim: false,
            tag: None,
            allocation: None,
            app_instance: None,
            workload: None,
            quanta: 8,
            held: Window::new(Instant(0), Instant(1000)),
            end_before: None,
            end: End::Released,
            fenced: false,
            activity: Some(Box::new(Activity {
                covered: Span(covered),
                busy,
                active: Span(active),
                ..Activity::default()
            })),
            life: Life::default(),
            rare: None,
        }
    }

    #[test]
    fn thresholds_are_strict() {
        use WasteClass::{Idle, Overprovisioned, PremiumWaste};
        let classes = |covered, busy, active, premium| classify(&row(covered, busy, active), 1000, premium).to_vec();
        // A quarter of 8 × 1000 is 2000; a tenth of 1000 is 100.
        assert_eq!(classes(1000, 2000, 100, true), []);
        assert_eq!(classes(1000, 1999, 100, true), [PremiumWaste, Overprovisioned]);
        assert_eq!(classes(1000, 1999, 100, false), [Overprovisioned]);
        assert_eq!(classes(1000, 2000, 99, true), [Idle]);
        assert_eq!(classes(1000, 0, 0, true), [PremiumWaste, Idle, Overprovisioned]);
        // Ratios are over what is covered: of half the time, half as much.
        assert_eq!(classes(500, 1000, 50, true), []);
        assert_eq!(classes(500, 999, 49, true), [PremiumWaste, Idle, Overprovisioned]);
    }

    #[test]
    fn less_than_half_covered_is_unknown_never_idle() {
        assert_eq!(classify(&row(499, 0, 0), 1000, true).to_vec(), []);
        assert_eq!(classify(&row(500, 0, 0), 1001, true).to_vec(), []);
        assert_eq!(classify(&row(500, 0, 0), 1000, true)[0], WasteClass::PremiumWaste);
        let silent = Row { activity: None, ..row(0, 0, 0) };
        assert_eq!(classify(&silent, 1000, true).to_vec(), []);
        let books = Books::default();
        let found = books.assess(silent, false, &BTreeMap::new(), 32).expect("small");
        assert_eq!((found.headline(), found.wasted), (WasteClass::Unknown, 0));
        let found = books.assess(row(499, 0, 0), false, &BTreeMap::new(), 32).expect("small");
        assert_eq!((found.headline(), found.wasted), (WasteClass::Unknown, 0));
        let found = books.assess(row(500, 4000, 500), false, &BTreeMap::new(), 32).expect("small");
        assert_eq!((found.headline(), found.wasted), (WasteClass::Healthy, 0));
    }
}
