//! Sensitivity of workloads (SEMANTICS 8): from shares of the cost, and from waiting times.

use crate::ask::{Dim, Filter, NONE, Question};
use crate::facts::{Books, BooksError};
use crate::row::Row;
use crate::scan::held_until;
use ethnum::U256;
use leasehold_meter::{Money, Overflow, Window};
pub use leasehold_model::Sensitivity;
use leasehold_model::rate::Currency;
use leasehold_model::{Name, ResourceKind};
use std::collections::BTreeMap;

/// How much a workload depends on one kind of resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindProfile {
    pub kind: ResourceKind,
    pub level: Sensitivity,
    /// The share of the cost in thousandths, rounded down; the highest over all currencies.
    pub cost_permille: u32,
    /// The share of the reported time spent waiting for this kind, in thousandths, rounded down.
    pub waiting_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadProfile {
    pub workload: Name,
    pub kinds: Vec<KindProfile>,
}

#[derive(Default)]
struct Tally {
    used: [bool; 5],
    waiting: [u128; 5],
    covered: u128,
}

/// Strictly more than `percent` of the whole.
fn exceeds(part: U256, whole: U256, percent: u32) -> Result<bool, Overflow> {
    let hundred = part.checked_mul(U256::new(100)).ok_or(Overflow)?;
    Ok(hundred > whole.checked_mul(U256::from(percent)).ok_or(Overflow)?)
}

fn permille(part: U256, whole: U256) -> Result<u32, Overflow> {
    if whole == U256::ZERO {
        return Ok(0);
    }
    let share = part.checked_mul(U256::new(1000)).ok_or(Overflow)? / whole;
    u32::try_from(share).map_err(|_| Overflow)
}

impl Books {
    /// The profile of every workload with leases within the window, by name.
    ///
    /// Costs of different currencies cannot be added. With several currencies, a kind's share is computed in each, and
    /// the highest counts.
    pub fn sensitivity(&self, window: Window, filter: &Filter) -> Result<Vec<WorkloadProfile>, BooksError> {
        let question = Question { filter: filter.clone(), ..Question::over(window, &[Dim::Workload]) };
        let (lines, names) = self.cost(&question)?;
        let mut costs: BTreeMap<&Name, Costs> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.key[0] != NONE) {
            let place = usize::try_from(line.key[0]).expect("a place in a list");
            let (Some(name), Some(spec)) = (names.get(place), self.classes.get(&line.class)) else { continue };
            let of_kinds = costs.entry(name).or_default().entry(line.currency).or_default();
            of_kinds[spec.kind as usize - 1].add_all(&line.money)?;
        }
        let mut seen: BTreeMap<Name, Tally> = BTreeMap::new();
        let mut look = |row: &Row| {
            let (Some(name), Some(spec)) = (&row.workload, self.classes.get(&row.class)) else { return };
            if !filter.takes_row(row) || row.held.is_empty() {
                return;
            }
            let tally = seen.entry(name.clone()).or_default();
            tally.used[spec.kind as usize - 1] = true;
            if let Some(activity) = &row.activity {
                tally.covered += u128::from(activity.covered.0);
                for (sum, waited) in tally.waiting.iter_mut().zip(activity.waiting) {
                    *sum += u128::from(waited.0);
                }
            }
        };
        self.scan_rows(window, false, &mut look)?;
        for open in self.open.values() {
            let held = held_until(open, window.to);
            if held.meets(window) {
                look(&Row { held, ..open.row.clone() });
            }
        }
        let none = Costs::new();
        let profile = |(workload, tally): (Name, Tally)| {
            let costs = costs.get(&workload).unwrap_or(&none);
            profile(workload, &tally, costs)
        };
        let profiles = seen.into_iter().map(profile).collect::<Result<_, _>>()?;
        self.sound(profiles)
    }
}

/// The cost of each kind, by currency.
type Costs = BTreeMap<Currency, [Money; 5]>;

/// The cost of a kind and of all kinds over a common denominator, so that shares are compared without rounding.
type Share = (U256, U256);

fn shares(of_kinds: &[Money; 5]) -> Result<[Share; 5], Overflow> {
    let sums: Vec<&Money> = of_kinds.iter().collect();
    let parts = Money::over_one_denominator(&sums)?;
    let mut whole = U256::ZERO;
    for part in &parts {
        whole = whole.checked_add(*part).ok_or(Overflow)?;
    }
    Ok(std::array::from_fn(|place| (parts[place], whole)))
}

fn level_of_cost((part, whole): Share) -> Result<Sensitivity, Overflow> {
    let levels = [(50, Sensitivity::Critical), (20, Sensitivity::Moderate), (5, Sensitivity::Low)];
    for (percent, level) in levels {
        if exceeds(part, whole, percent)? {
            return Ok(level);
        }
    }
    Ok(if part > U256::ZERO { Sensitivity::Indifferent } else { Sensitivity::Unused })
}

fn profile(workload: Name, seen: &Tally, costs: &Costs) -> Result<WorkloadProfile, BooksError> {
    let by_currency = costs.values().map(shares).collect::<Result<Vec<_>, _>>()?;
    let covered = U256::from(seen.covered);
    let mut kinds = Vec::new();
    for (place, kind) in ResourceKind::ALL.iter().enumerate() {
        let waited = U256::from(seen.waiting[place]);
        let used = seen.used[place] || waited > U256::ZERO;
        let mut level = if used { Sensitivity::Indifferent } else { Sensitivity::Unused };
        let mut cost_permille = 0;
        for of_kinds in &by_currency {
            let (part, whole) = of_kinds[place];
            level = level.max(level_of_cost((part, whole))?);
            cost_permille = cost_permille.max(permille(part, whole)?);
        }
        if exceeds(waited, covered, 30)? {
            level = Sensitivity::Critical;
        }
        let waiting_permille = permille(waited, covered)?;
        kinds.push(KindProfile { kind: *kind, level, cost_permille, waiting_permille });
    }
    Ok(WorkloadProfile { workload, kinds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::new("train").expect("a name")
    }

    /// Money in sevenths of some unit.
    fn sevenths(of_kinds: [u64; 5]) -> [Money; 5] {
        of_kinds.map(|amount| Money::new(7, U256::from(amount)))
    }

    fn levels(costs: &Costs, seen: &Tally) -> Vec<Sensitivity> {
        let profile = profile(name(), seen, costs).expect("small");
        profile.kinds.iter().map(|kind| kind.level).collect()
    }

    fn one(of_kinds: [u64; 5]) -> Costs {
        Costs::from([(Currency::DEFAULT, sevenths(of_kinds))])
    }

    /// Strict: what is exactly at a border is below it.
    #[test]
    fn shares_of_the_cost_at_their_borders() {
        use Sensitivity::{Critical, Indifferent, Low, Moderate, Unused};
        let none = Tally::default();
        assert_eq!(levels(&one([50, 20, 5, 25, 0]), &none), [Moderate, Low, Indifferent, Moderate, Unused]);
        assert_eq!(levels(&one([5001, 2001, 501, 2497, 0]), &none), [Critical, Moderate, Low, Moderate, Unused]);
        assert_eq!(levels(&one([100, 0, 0, 0, 0]), &none), [Critical, Unused, Unused, Unused, Unused]);
        // Exactly half, of amounts that no decimal can write: rounding first would have called it more.
        let thirds = |amount: u64| Money::new(3, U256::from(amount) * U256::new(10).pow(36));
        let half = Costs::from([(Currency::DEFAULT, [2, 1, 1, 0, 0].map(thirds))]);
        assert_eq!(levels(&half, &none), [Moderate, Moderate, Moderate, Unused, Unused]);
    }

    #[test]
    fn what_was_used_for_nothing_is_indifferent_and_what_was_not_is_unused() {
        use Sensitivity::{Indifferent, Unused};
        let seen = Tally { used: [true, false, false, false, true], ..Tally::default() };
        assert_eq!(levels(&Costs::new(), &seen), [Indifferent, Unused, Unused, Unused, Indifferent]);
    }

    #[test]
    fn waiting_for_more_than_three_tenths_is_critical() {
        use Sensitivity::{Critical, Indifferent, Unused};
        let seen = Tally { waiting: [30, 31, 1, 0, 100], covered: 100, ..Tally::default() };
        assert_eq!(levels(&Costs::new(), &seen), [Indifferent, Critical, Indifferent, Unused, Critical]);
        let profile = profile(name(), &seen, &Costs::new()).expect("small");
        assert_eq!(profile.kinds[1].waiting_permille, 310);
    }

    /// A tenth of the euros and most of the francs is most.
    #[test]
    fn the_highest_share_of_any_currency_counts() {
        use Sensitivity::{Critical, Unused};
        let francs = Currency::new("CHF").expect("three letters");
        let mut costs = one([90, 10, 0, 0, 0]);
        costs.insert(francs, sevenths([1, 9, 0, 0, 0]));
        assert_eq!(levels(&costs, &Tally::default()), [Critical, Critical, Unused, Unused, Unused]);
        let profile = profile(name(), &Tally::default(), &costs).expect("small");
        assert_eq!((profile.kinds[0].cost_permille, profile.kinds[1].cost_permille), (900, 900));
    }
}
