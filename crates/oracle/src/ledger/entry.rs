//! One entry of the ledger.

use super::fraction::Fraction;
use crate::violation::{Checked, demand};
use leasehold_model::ledger::{Account, EntryId, ExactSteps, Leg, LineKey, Month, Steps};
use leasehold_model::rate::Currency;
use leasehold_model::{ProjectNo, TenantNo};

/// Amounts on accounts, with what is known about their origin.
#[derive(Clone, Debug)]
pub struct Entry {
    pub tenant: TenantNo,
    pub project: Option<ProjectNo>,
    pub currency: Currency,
    pub legs: Vec<Leg>,
    /// The month in which it is booked, and the one that it is about. Invoices and payments have none.
    pub months: Option<(Month, Month)>,
    /// Made by hand, or a consequence of that.
    pub is_correction: bool,
    pub(crate) line: Option<Line>,
}

/// The usage of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) key: LineKey,
    pub(crate) usage: i128,
    pub(crate) exact: Fraction,
}

impl Line {
    pub(crate) fn negated(&self) -> Self {
        Self { key: self.key.clone(), usage: -self.usage, exact: self.exact.negated() }
    }
}

impl Entry {
    pub(crate) fn plain(
        tenant: TenantNo,
        project: Option<ProjectNo>,
        currency: Currency,
        legs: &[(Account, Steps)],
    ) -> Self {
        let legs = legs.iter().map(|(account, amount)| Leg { account: *account, amount: *amount }).collect();
        Self { tenant, project, currency, legs, months: None, is_correction: false, line: None }
    }

    /// Its usage, if it is about any: the line, quanta × nanoseconds, and the exact amount.
    pub fn usage(&self) -> Option<(LineKey, i128, ExactSteps)> {
        self.line.as_ref().map(|line| (line.key.clone(), line.usage, line.exact.write()))
    }

    /// What it adds to what a project owes.
    pub fn owed_by(&self, project: ProjectNo) -> i128 {
        let own = self.legs.iter().filter(|leg| leg.account == Account::Receivable(project));
        own.map(|leg| leg.amount.0).sum()
    }
}

/// SEMANTICS 9: entries sum to zero.
pub(crate) fn check_balanced(id: EntryId, legs: &[Leg]) -> Checked {
    let sum: i128 = legs.iter().map(|leg| leg.amount.0).sum();
    demand!(sum == 0, "unbalanced", "{id} sums to {sum}");
    Ok(())
}
