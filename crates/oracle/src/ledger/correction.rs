//! Corrections and entries by hand (SEMANTICS 9 and 12).

use super::entry::{Entry, Line, check_balanced};
use super::fraction::Fraction;
use super::{Ledger, payer_of};
use crate::violation::{Checked, demand, found};
use leasehold_model::body::{LedgerAdjusted, LedgerCorrected};
use leasehold_model::ledger::{Account, EntryId, Leg, Month};
use leasehold_model::limits::LEDGER_LEGS_MAX;
use leasehold_model::{ProjectNo, Record};
use num_bigint::BigInt;

impl Ledger {
    pub(crate) fn entry_corrected(&mut self, record: &Record, corrected: &LedgerCorrected) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let payer = self.payers.get(&(project, corrected.currency)).cloned().unwrap_or_default();
        demand!(corrected.previous == payer.last, "stale-posting", "{:?} after {:?}", corrected.previous, payer.last);
        demand!(payer.partial.is_none(), "posting-incomplete", "{payer:?}");
        self.check_month(corrected.month, corrected.original_month)?;
        let id = |position| EntryId { sequence: record.sequence, position };
        demand!(!corrected.reversal.is_empty(), "unbalanced", "nothing is reversed");
        check_by_hand(id(0), project, &corrected.reversal)?;
        check_by_hand(id(1), project, &corrected.replacement)?;
        // What the entry said exactly beyond what it posted goes with it.
        let mut residual = Fraction::of_residual(payer.residual);
        let mut line = None;
        if let Some(of) = &corrected.line {
            let exact = found!(Fraction::read(&of.exact), "exact", "{} is not in lowest terms", of.exact);
            let reversed: i128 = own(project, &corrected.reversal);
            residual = residual.minus(&exact).minus(&Fraction::integer(reversed));
            line = Some(Line { key: of.key.clone(), usage: of.usage.0, exact });
        }
        // Only where what is kept of the residual would be more than half a step.
        let rounding = if residual.residual().is_some() { BigInt::from(0) } else { residual.half_even() };
        demand!(
            rounding == BigInt::from(corrected.rounding.0),
            "rounding",
            "{} instead of {rounding}",
            corrected.rounding
        );
        let left = residual.minus(&Fraction::new(rounding, 1.into()));
        demand!(
            left.residual() == Some(corrected.residual),
            "residual",
            "{:?} instead of {left:?}",
            corrected.residual
        );

        let months = Some((corrected.month, corrected.original_month));
        let plain =
            Entry { months, is_correction: true, ..Entry::plain(tenant, Some(project), corrected.currency, &[]) };
        let reversal =
            Entry { legs: corrected.reversal.clone(), line: line.as_ref().map(Line::negated), ..plain.clone() };
        self.entries.insert(id(0), reversal);
        if !corrected.replacement.is_empty() {
            // What takes the place of usage is about that usage, and exactly what it says.
            let exact = Fraction::integer(own(project, &corrected.replacement));
            let line = line.map(|line| Line { exact, ..line });
            self.entries.insert(id(1), Entry { legs: corrected.replacement.clone(), line, ..plain.clone() });
        }
        if corrected.rounding.0 != 0 {
            let legs = [(Account::Receivable(project), corrected.rounding), (Account::Rounding, -corrected.rounding)];
            let legs = legs.map(|(account, amount)| Leg { account, amount }).to_vec();
            self.entries.insert(id(2), Entry { legs, ..plain });
        }
        let payer = self.payers.entry((project, corrected.currency)).or_default();
        (payer.last, payer.residual) = (Some(record.sequence), corrected.residual);
        Ok(())
    }

    pub(crate) fn adjusted(&mut self, record: &Record, adjusted: &LedgerAdjusted) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let payer = self.payers.entry((project, adjusted.currency)).or_default();
        demand!(adjusted.previous == payer.last, "stale-posting", "{:?} after {:?}", adjusted.previous, payer.last);
        demand!(payer.partial.is_none(), "posting-incomplete", "{payer:?}");
        payer.last = Some(record.sequence);
        self.check_month(adjusted.month, adjusted.original_month)?;
        let id = EntryId { sequence: record.sequence, position: 0 };
        demand!(!adjusted.legs.is_empty(), "unbalanced", "{id} has no legs");
        check_by_hand(id, project, &adjusted.legs)?;
        let months = Some((adjusted.month, adjusted.original_month));
        let plain = Entry::plain(tenant, Some(project), adjusted.currency, &[]);
        self.entries.insert(id, Entry { legs: adjusted.legs.clone(), months, is_correction: true, ..plain });
        Ok(())
    }

    /// A correction is booked in the open month, and is about that or an earlier one.
    fn check_month(&self, month: Month, original: Month) -> Checked {
        let open = self.first_open;
        demand!(month == open.max(original), "month", "{original} is booked in {month}; {open} is open");
        Ok(())
    }

    /// Whether a correction names an entry as it is: of this payer, not corrected before, with all its legs reversed.
    pub(crate) fn check_corrects(&mut self, record: &Record, corrected: &LedgerCorrected) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let entry = found!(self.entries.get(&corrected.corrects), "corrects", "there is no {}", corrected.corrects);
        let of = (entry.tenant, entry.project, entry.currency);
        demand!(of == (tenant, Some(project), corrected.currency), "corrects", "{} is of {of:?}", corrected.corrects);
        let reversed: Vec<Leg> =
            entry.legs.iter().map(|leg| Leg { account: leg.account, amount: -leg.amount }).collect();
        demand!(corrected.reversal == reversed, "corrects", "{:?} reverses {:?}", corrected.reversal, entry.legs);
        let original = entry.months.map(|(_, original)| original);
        demand!(original == Some(corrected.original_month), "corrects", "{} is about {original:?}", corrected.corrects);
        let line = corrected.line.as_ref().map(|line| (&line.key, line.usage.0, Fraction::read(&line.exact)));
        let known = entry.line.as_ref().map(|line| (&line.key, line.usage, Some(line.exact.clone())));
        demand!(line == known, "corrects", "the line is {line:?}, that of the entry {known:?}");
        demand!(self.corrected.insert(corrected.corrects), "corrects", "{} twice", corrected.corrects);
        Ok(())
    }
}

fn own(project: ProjectNo, legs: &[Leg]) -> i128 {
    legs.iter().filter(|leg| leg.account == Account::Receivable(project)).map(|leg| leg.amount.0).sum()
}

/// Balanced, and without accounts that change only by invoices and payments or belong to others.
fn check_by_hand(id: EntryId, project: ProjectNo, legs: &[Leg]) -> Checked {
    check_balanced(id, legs)?;
    demand!(legs.len() <= LEDGER_LEGS_MAX, "legs", "{id} has {}", legs.len());
    for leg in legs {
        let foreign = leg.account.project().is_some_and(|of| of != project);
        demand!(!foreign, "other-projects-account", "{id} is of {project}: {leg:?}");
        let closed = matches!(
            leg.account,
            Account::Invoiced(_) | Account::Tax | Account::CashClearing | Account::SharedRuntime(_)
        );
        demand!(!closed, "account-not-by-hand", "{id}: {leg:?}");
    }
    Ok(())
}
