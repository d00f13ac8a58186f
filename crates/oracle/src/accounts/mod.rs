//! Usage, peaks, cost and capacity by the simplest means: every answer is a pass over the list of all leases
//! (SEMANTICS 2, 3 and 7).
//!
//! The meter and the books are tested against it, so it does not use them: it reads records and adds 256-bit integers.
//! Windows end at or before the last stamp.

mod capacity;
mod idle;
mod lines;
mod price;
mod reserved;
mod tenure;
mod units;

pub(crate) use price::{DAY, price_by};

pub use capacity::Shares;
pub(crate) use lines::{Cost, Costs};
pub use tenure::{By, Ending, Tenure};

use capacity::NodeEvent;
use ethnum::U256;
use leasehold_model::rate::{ChargePolicyPut, Currency, RateCardPut};
use leasehold_model::{AllocationNo, ClassNo, ClassSpec, Instant, LeaseNo, Name, NodeNo, Record, TenantNo};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A question: filter, grouping and intervals.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub by: Vec<By>,
    /// Only leases with these values.
    pub only: Vec<(By, Option<String>)>,
    pub classes: Option<BTreeSet<ClassNo>>,
    /// Neighbours are the ends of the intervals.
    pub borders: Vec<Instant>,
}

/// The values of the dimensions, the class, and the index of the interval.
pub type Line = (Vec<Option<String>>, ClassNo, usize);

/// Everything in the records that a bill can depend on.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    tenures: BTreeMap<LeaseNo, Tenure>,
    classes: BTreeMap<ClassNo, ClassSpec>,
    tags: BTreeMap<TenantNo, Name>,
    cards: Vec<RateCardPut>,
    policies: Vec<ChargePolicyPut>,
    nodes: Vec<(Instant, NodeNo, NodeEvent)>,
    claims: Vec<idle::Claim>,
    /// Idle capacity of claimed nodes, by intervals.
    idle: Vec<Tenure>,
    /// The tenants of allocations, the allocations for which something was evicted by the sequence of the decision, and
    /// the leases of the last attempts.
    tenants: BTreeMap<AllocationNo, TenantNo>,
    decisions: BTreeMap<u64, AllocationNo>,
    attempts: BTreeMap<AllocationNo, Range<LeaseNo>>,
    /// Reservations, and the changes of reserved capacity.
    waiting: BTreeMap<AllocationNo, Vec<reserved::Share>>,
    reserved: Vec<reserved::Level>,
    reported: units::Reported,
    last_stamp: Instant,
}

impl Accounts {
    /// Reads a journal from its first record.
    pub fn of(records: &[Record]) -> Self {
        let mut accounts = Self::default();
        for record in records {
            accounts.take(record);
            accounts.take_reservations(record);
        }
        accounts.idle = accounts.idle_tenures();
        accounts
    }

    /// Reads the next record. Neither reservations nor the idle capacity of claimed nodes are computed again.
    pub(crate) fn read(&mut self, record: &Record) {
        self.take(record);
    }

    pub fn tenures(&self) -> impl Iterator<Item = &Tenure> {
        self.tenures.values()
    }
    pub fn last_stamp(&self) -> Instant {
        self.last_stamp
    }

    fn matching<'a>(&'a self, ask: &'a Ask) -> impl Iterator<Item = (Vec<Option<String>>, &'a Tenure)> {
        let asked = |tenure: &Tenure| {
            ask.classes.as_ref().is_none_or(|classes| classes.contains(&tenure.class))
                && ask.only.iter().all(|(by, value)| tenure.value(*by) == *value)
        };
        let key = |tenure: &Tenure| ask.by.iter().map(|by| tenure.value(*by)).collect();
        self.tenures
            .values()
            .chain(&self.idle)
            .filter(move |tenure| asked(tenure))
            .map(move |tenure| (key(tenure), tenure))
    }

    /// Quanta × nanoseconds; zeros are omitted.
    pub fn usage(&self, ask: &Ask) -> BTreeMap<Line, U256> {
        let mut sums = BTreeMap::new();
        for (key, tenure) in self.matching(ask) {
            for (place, pair) in ask.borders.windows(2).enumerate() {
                let overlap = overlap(pair[0], pair[1], tenure.from, tenure.to);
                if overlap > 0 {
                    let sum: &mut U256 = sums.entry((key.clone(), tenure.class, place)).or_default();
                    *sum += U256::from(tenure.quanta) * U256::from(overlap);
                }
            }
        }
        sums
    }

    /// The most quanta at the same time. At one instant, ends come before starts.
    pub fn peaks(&self, ask: &Ask) -> BTreeMap<Line, U256> {
        self.peaks_together(ask, |class| (class, 1))
    }

    /// The most of several classes together: each class belongs to a group, where each of its quanta counts so much.
    pub fn peaks_together<G: Ord + Clone>(
        &self,
        ask: &Ask,
        group: impl Fn(ClassNo) -> (G, u64),
    ) -> BTreeMap<(Vec<Option<String>>, G, usize), U256> {
        let mut events: BTreeMap<(Vec<Option<String>>, G), Vec<Event>> = BTreeMap::new();
        for (key, tenure) in self.matching(ask).filter(|(_, tenure)| tenure.from < tenure.to) {
            let (group, weight) = group(tenure.class);
            let list = events.entry((key, group)).or_default();
            list.push((tenure.from, true, tenure.quanta * weight));
            list.push((tenure.to, false, tenure.quanta * weight));
        }
        let mut peaks = BTreeMap::new();
        for ((key, group), mut list) in events {
            list.sort_unstable();
            for (place, pair) in ask.borders.windows(2).enumerate().filter(|(_, pair)| pair[0] < pair[1]) {
                let peak = peak(&list, pair[0], pair[1]);
                if peak > U256::ZERO {
                    peaks.insert((key.clone(), group.clone(), place), peak);
                }
            }
        }
        peaks
    }

    /// Money as fractions in lowest terms; zeros are omitted.
    pub fn cost(&self, ask: &Ask) -> BTreeMap<(Line, Currency), (U256, U256)> {
        let mut sums: BTreeMap<(Line, Currency), U256> = BTreeMap::new();
        let mut cuts: Vec<Instant> = self.cards.iter().map(|card| card.from).chain(ask.borders.clone()).collect();
        cuts.sort_unstable();
        for (key, tenure) in self.matching(ask) {
            let billed_to = self.billed_to(tenure);
            for pair in cuts.windows(2) {
                let overlap = overlap(pair[0], pair[1], tenure.from, billed_to);
                if overlap == 0 {
                    continue;
                }
                let inside = |stretch: &[Instant]| stretch[0] <= pair[0] && pair[1] <= stretch[1];
                let Some(place) = ask.borders.windows(2).position(inside) else { continue };
                let (currency, each) = self.price(tenure, pair[0]);
                let cost = U256::from(tenure.quanta) * U256::from(overlap) * each;
                *sums.entry(((key.clone(), tenure.class, place), currency)).or_default() += cost;
            }
        }
        let lowest = |((line, currency), cost): ((Line, Currency), U256)| {
            let per_unit = U256::from(self.classes[&line.1].quanta_per_unit);
            ((line, currency), lowest_terms(cost, per_unit * U256::from(DAY) * U256::new(10).pow(36)))
        };
        sums.into_iter().filter(|(_, cost)| *cost > U256::ZERO).map(lowest).collect()
    }
}

/// Changes of quanta in order of time; at one instant, decreases come first.
type Event = (Instant, bool, u64);

fn peak(events: &[Event], from: Instant, to: Instant) -> U256 {
    let (mut level, mut peak) = (U256::ZERO, U256::ZERO);
    // Of the changes up to the start of the window only the resulting level counts.
    for (_, starts, quanta) in events.iter().filter(|(at, ..)| *at <= from) {
        if *starts {
            level += U256::from(*quanta);
        } else {
            level -= U256::from(*quanta);
        }
    }
    peak = peak.max(level);
    for (_, starts, quanta) in events.iter().filter(|(at, ..)| *at > from && *at < to) {
        if *starts {
            level += U256::from(*quanta);
        } else {
            level -= U256::from(*quanta);
        }
        peak = peak.max(level);
    }
    peak
}

/// The overlap of two half-open intervals, in nanoseconds.
fn overlap(from: Instant, to: Instant, since: Instant, until: Instant) -> u64 {
    to.min(until).0.saturating_sub(from.max(since).0)
}

fn lowest_terms(numerator: U256, denominator: U256) -> (U256, U256) {
    let (mut a, mut b) = (numerator, denominator);
    while b > U256::ZERO {
        (a, b) = (b, a % b);
    }
    (numerator / a, denominator / a)
}
