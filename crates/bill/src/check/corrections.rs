//! Corrections: an entry is taken back, and perhaps replaced (SEMANTICS 9 and 12).

use super::Place;
use super::chain::entry;
use super::checker::Checker;
use leasehold_ledger::{Amount, InvoiceLineKey, correction_parts, line_legs, payer_amount, reversed, shared_legs};
use leasehold_model::body::{CorrectedLine, LedgerCorrected};
use leasehold_model::ledger::ExactSteps;
use leasehold_model::{Account, Body, EntryId, Leg, Month, ProjectNo, Residual, Steps, UsageDelta};

/// An entry that can be corrected.
struct Known {
    project: ProjectNo,
    original_month: Month,
    legs: Vec<Leg>,
    line: Option<CorrectedLine>,
}

impl Checker<'_> {
    pub(super) fn take_correction(&mut self, of: (u64, ProjectNo), corrected: &LedgerCorrected) {
        let (sequence, project) = of;
        let before = self.link(of, corrected.previous);
        self.check_balance(entry(sequence, 0), &corrected.reversal);
        self.check_balance(entry(sequence, 1), &corrected.replacement);
        self.check_rounding(sequence, project, before, corrected);
        self.linked(of, corrected.residual);
        self.check_corrects(entry(sequence, 0), project, corrected);
        if corrected.month != self.evidence.month {
            return;
        }
        let rounding = [Leg { account: Account::Receivable(project), amount: corrected.rounding }];
        let line = corrected.line.as_ref();
        let usage = line.map_or(0, |line| line.usage.0);
        let parts = [(&corrected.reversal[..], -usage), (&corrected.replacement, usage), (&rounding, 0)];
        let booked = correction_parts(corrected);
        for (position, (legs, usage)) in parts.into_iter().enumerate().filter(|(position, _)| booked[*position]) {
            let amount = payer_amount(legs, project);
            let key = InvoiceLineKey::of_correction(project, corrected.original_month, line.map(|line| &line.key));
            self.add_by_hand(entry(sequence, position), key, usage, amount);
            if let (Some(line), Some(amount)) = (line, amount)
                && corrected.original_month == self.evidence.month
            {
                self.add_to_pool(project, &line.key, amount);
            }
        }
        let why = format!("{} was corrected by hand; what takes its place is not proved.", corrected.corrects);
        self.leave_open(None, why);
    }

    /// What the corrected line said exactly beyond what it posted goes with it.
    fn check_rounding(&mut self, sequence: u64, project: ProjectNo, before: Residual, corrected: &LedgerCorrected) {
        let back = payer_amount(&corrected.reversal, project).unwrap_or_default();
        let expected = match &corrected.line {
            None => Some((Steps::ZERO, before)),
            Some(line) => {
                let exact = Amount::decoded(&line.exact);
                exact.and_then(|exact| reversed(before, &[(-back, exact)]).ok())
            }
        };
        let Some((rounding, residual)) = expected else {
            let why = "The exact amount of the corrected line is not a fraction in lowest terms, or too large.";
            self.differ(Place::Record(sequence), "an exact amount", "none", why);
            return;
        };
        if rounding != corrected.rounding {
            let why = "A correction rounds only what would leave more than half a step.";
            self.differ_in(Place::Entry(entry(sequence, 2)), rounding, corrected.rounding, why);
        }
        self.same_residual(sequence, residual, corrected.residual);
    }

    /// It takes back the entry that it names, whole and once, if that entry is in the evidence.
    fn check_corrects(&mut self, id: EntryId, project: ProjectNo, corrected: &LedgerCorrected) {
        if !self.corrected.insert(corrected.corrects) {
            let why = "An entry can be corrected once.";
            self.differ(Place::Entry(id), "an entry that was not corrected", corrected.corrects, why);
        }
        let Some(known) = self.known_entry(corrected.corrects) else {
            if corrected.corrects.sequence >= self.evidence.statement.1.from {
                let why = "The corrected entry is not among the records of the range.";
                self.differ(Place::Entry(id), corrected.corrects, "none", why);
            } else {
                let what = format!(
                    "{} is of an earlier month; that it was reversed as it was is not proved.",
                    corrected.corrects
                );
                self.leave_open(None, what);
            }
            return;
        };
        if known.project != project {
            let why = "The corrected entry is of another project.";
            self.differ(Place::Entry(id), project, known.project, why);
        }
        let negated: Vec<Leg> =
            known.legs.iter().map(|leg| Leg { account: leg.account, amount: -leg.amount }).collect();
        if corrected.reversal != negated {
            let own = |legs: &[Leg]| payer_amount(legs, project).unwrap_or_default();
            let why = format!("The reversal does not take back {} as it was booked.", corrected.corrects);
            self.differ_in(Place::Entry(id), own(&negated), own(&corrected.reversal), why);
        }
        if corrected.original_month != known.original_month {
            let why = "The correction is about another month than the entry.";
            self.differ(Place::Entry(id), known.original_month, corrected.original_month, why);
        }
        if corrected.line != known.line {
            let usage = |line: &Option<CorrectedLine>| line.as_ref().map_or(0, |line| line.usage.0);
            let why = "The correction names another line than the entry has.";
            self.differ_by(Place::Entry(id), usage(&known.line), usage(&corrected.line), why);
        }
    }

    /// An entry of the tenant, from its record.
    fn known_entry(&self, id: EntryId) -> Option<Known> {
        let records = &self.evidence.records;
        let place = records.binary_search_by_key(&id.sequence, |evident| evident.sequence).ok()?;
        let record = &records[place].record;
        let project = record.identity.project?;
        let position = usize::from(id.position);
        if let Body::LedgerPosted(posted) = &record.body {
            let line = posted.lines.get(position)?;
            let (key, usage, exact) = (line.key.clone(), line.usage, line.exact.clone());
            Some(Known {
                project,
                original_month: Month::of(line.key.hour),
                legs: line_legs(project, line).to_vec(),
                line: Some(CorrectedLine { key, usage, exact }),
            })
        } else if let Body::LedgerCorrected(corrected) = &record.body {
            let (legs, line) = entry_of_correction(project, corrected, position)?;
            Some(Known { project, original_month: corrected.original_month, legs, line })
        } else if let Body::LedgerAdjusted(adjusted) = &record.body {
            let legs = adjusted.legs.clone();
            (position == 0).then_some(Known { project, original_month: adjusted.original_month, legs, line: None })
        } else if let Body::LedgerShared(shared) = &record.body {
            let legs = shared_legs(project, shared).to_vec();
            (position == 0).then_some(Known { project, original_month: shared.month, legs, line: None })
        } else {
            None
        }
    }
}

/// The legs and the line of a correction's reversal, replacement or rounding.
fn entry_of_correction(
    project: ProjectNo,
    corrected: &LedgerCorrected,
    position: usize,
) -> Option<(Vec<Leg>, Option<CorrectedLine>)> {
    let line = |usage: i128, exact: ExactSteps| {
        corrected.line.as_ref().map(|line| CorrectedLine { key: line.key.clone(), usage: UsageDelta(usage), exact })
    };
    let usage = corrected.line.as_ref().map_or(0, |line| line.usage.0);
    Some(match position {
        0 => {
            let negated = corrected.line.as_ref().map(|line| ExactSteps {
                negative: !line.exact.negative && !line.exact.numerator.is_zero(),
                ..line.exact.clone()
            });
            (corrected.reversal.clone(), negated.and_then(|exact| line(-usage, exact)))
        }
        1 => {
            let own = payer_amount(&corrected.replacement, project)?;
            (corrected.replacement.clone(), Amount::from(own).encoded().ok().and_then(|exact| line(usage, exact)))
        }
        2 => {
            let receivable = Leg { account: Account::Receivable(project), amount: corrected.rounding };
            (vec![receivable, Leg { account: Account::Rounding, amount: -corrected.rounding }], None)
        }
        _ => return None,
    })
}
