//! The exact cost of every line of the ledger (SEMANTICS 7 and 12): each lease and each idle part of a claim, cut at
//! every hour and at every change of prices.

use super::{Accounts, DAY, Tenure, lowest_terms, overlap};
use ethnum::{I256, U256};
use leasehold_model::ledger::{HOUR_NS, Item, LineKey, hour_of};
use leasehold_model::rate::Currency;
use leasehold_model::{ClassNo, Instant, ProjectNo};
use std::collections::BTreeMap;

/// What was used and what it costs. All lines of an item have the same denominator: see [`Accounts::fraction`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Quanta × nanoseconds, or 10^-18 of a usage unit.
    pub(crate) usage: i128,
    pub(super) numerator: I256,
}

impl Cost {
    pub(crate) fn is_zero(self) -> bool {
        self == Self::default()
    }
    pub(crate) fn less(self, other: Self) -> Self {
        Self { usage: self.usage - other.usage, numerator: self.numerator - other.numerator }
    }
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { usage: self.usage + other.usage, numerator: self.numerator + other.numerator }
    }
}

/// The cost of each line, by payer and currency.
pub(crate) type Costs = BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, Cost>>;

impl Accounts {
    /// What the records so far say about the hours between two instants.
    pub(crate) fn lines(&self, from: Instant, through: Instant) -> Costs {
        let mut costs = Costs::new();
        let idle = self.idle_tenures();
        for tenure in self.tenures.values().chain(&idle) {
            self.add_lines(tenure, (from, through), &mut costs);
        }
        self.add_unit_lines((from, through), &mut costs);
        costs
    }

    fn add_lines(&self, tenure: &Tenure, (from, through): (Instant, Instant), costs: &mut Costs) {
        let (start, end) = (tenure.from.max(from), self.billed_to(tenure).min(through));
        if start >= end {
            return;
        }
        let hours = (hour_of(start).0..end.0).step_by(usize::try_from(HOUR_NS).expect("64 bits")).map(Instant);
        let mut cuts: Vec<Instant> = hours.chain(self.cards.iter().map(|card| card.from)).chain([start, end]).collect();
        cuts.retain(|at| *at >= start && *at <= end);
        cuts.sort_unstable();
        let payer = tenure.payer();
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            let (currency, each) = self.price(tenure, pair[0]);
            let key = LineKey {
                hour: hour_of(pair[0]),
                project: tenure.project,
                pool: tenure.pool,
                item: Item::Class(tenure.class),
                priority: tenure.priority,
                priced: tenure.priced_as,
                tag: tenure.tag.clone(),
                app_instance: tenure.app_instance,
                attachment: tenure.attachment,
                control_plane: tenure.control_plane,
                card: self.card(tenure, pair[0]),
            };
            let usage = U256::from(tenure.quanta) * U256::from(overlap(pair[0], pair[1], start, end));
            let numerator = usage.checked_mul(each).expect("below 2^256");
            let cost = Cost { usage: usage.as_i128(), numerator: numerator.as_i256() };
            let sum = costs.entry((payer, currency)).or_default().entry(key).or_default();
            *sum = sum.plus(cost);
        }
    }

    /// A cost in steps of 10^-6, as a fraction in lowest terms: sign, numerator and denominator.
    pub(crate) fn fraction(&self, item: Item, cost: Cost) -> (bool, U256, U256) {
        match item {
            Item::Class(class) => self.class_fraction(class, cost),
            Item::Unit(_) => super::units::unit_fraction(cost),
        }
    }

    fn class_fraction(&self, class: ClassNo, cost: Cost) -> (bool, U256, U256) {
        let per_unit = U256::from(self.classes[&class].quanta_per_unit);
        // Prices and their two factors have nine decimals each, nanoseconds too; a step takes six away.
        let denominator = per_unit * U256::from(DAY) * U256::new(10).pow(30);
        let (numerator, denominator) = lowest_terms(cost.numerator.unsigned_abs(), denominator);
        (cost.numerator < I256::ZERO, numerator, denominator)
    }
}
