//! What a workload depends on (SEMANTICS 8): by its share of the cost, and by what it waits for.

use crate::ask::{Dim, Filter, NONE, Question};
use crate::facts::{Books, BooksError};
use crate::row::Row;
use crate::scan::held_until;
use ethnum::U256;
use leasehold_meter::{Money, Overflow, Window};
use leasehold_model::{Name, ResourceKind, words};
use std::collections::BTreeMap;

words! {
    pub enum Sensitivity {
        Unused = 0 "unused",
        Indifferent = 1 "indifferent",
        Low = 2 "low",
        Moderate = 3 "moderate",
        Critical = 4 "critical",
    }
}

/// How much one kind of resource matters to a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindProfile {
    pub kind: ResourceKind,
    pub level: Sensitivity,
    /// Thousandths of its cost, rounded down.
    pub cost_permille: u32,
    /// Thousandths of the reported time in which it waited for this kind, rounded down.
    pub waiting_permille: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadProfile {
    pub workload: Name,
    pub kinds: Vec<KindProfile>,
}

#[derive(Clone, Default)]
struct Tally {
    cost: [Money; 5],
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
    /// The profile of every workload that held something within the window, by name. Costs of several currencies are not
    /// comparable: those of the currency that a workload paid most lines in would mislead, so all are added as they are
    /// only where there is one.
    pub fn sensitivity(&self, window: Window, filter: &Filter) -> Result<Vec<WorkloadProfile>, BooksError> {
        let question = Question { filter: filter.clone(), ..Question::over(window, &[Dim::Workload]) };
        let (lines, names) = self.cost(&question)?;
        let mut tallies: BTreeMap<&Name, Tally> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.key[0] != NONE) {
            let place = usize::try_from(line.key[0]).expect("a place in a list");
            let (Some(name), Some(spec)) = (names.get(place), self.classes.get(&line.class)) else { continue };
            let tally = tallies.entry(name).or_default();
            tally.cost[spec.kind as usize - 1].add_all(&line.money)?;
        }
        let mut others: BTreeMap<Name, Tally> = BTreeMap::new();
        let mut look = |row: &Row| {
            let (Some(name), Some(spec)) = (&row.workload, self.classes.get(&row.class)) else { return };
            if !filter.takes_row(row) || row.held.is_empty() {
                return;
            }
            let tally = others.entry(name.clone()).or_default();
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
        let profile = |(workload, seen): (Name, Tally)| {
            let cost = tallies.get(&workload).map(|tally| tally.cost.clone()).unwrap_or_default();
            profile(workload, &seen, &cost)
        };
        let profiles = others.into_iter().map(profile).collect::<Result<_, _>>()?;
        self.sound(profiles)
    }
}

fn profile(workload: Name, seen: &Tally, cost: &[Money; 5]) -> Result<WorkloadProfile, BooksError> {
    let mut whole = Money::default();
    cost.iter().try_for_each(|money| whole.add_all(money))?;
    // Shares are compared at twelve decimals of the currency: far below a step of any ledger.
    let whole = whole.rounded(12)?;
    let mut kinds = Vec::new();
    for (place, kind) in ResourceKind::ALL.iter().enumerate() {
        let part = cost[place].rounded(12)?;
        let (waited, covered) = (U256::from(seen.waiting[place]), U256::from(seen.covered));
        let level = if exceeds(part, whole, 50)? || exceeds(waited, covered, 30)? {
            Sensitivity::Critical
        } else if exceeds(part, whole, 20)? {
            Sensitivity::Moderate
        } else if exceeds(part, whole, 5)? {
            Sensitivity::Low
        } else if seen.used[place] || part > U256::ZERO || waited > U256::ZERO {
            Sensitivity::Indifferent
        } else {
            Sensitivity::Unused
        };
        kinds.push(KindProfile {
            kind: *kind,
            level,
            cost_permille: permille(part, whole)?,
            waiting_permille: permille(waited, covered)?,
        });
    }
    Ok(WorkloadProfile { workload, kinds })
}
