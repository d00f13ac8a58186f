//! The chain of each payer: every posting, its prices and its rounding (SEMANTICS 12, "Amounts" and "Posting").

use super::checker::Checker;
use super::{Evident, Place};
use crate::fold::Fold;
use crate::list::Payer;
use leasehold_ledger::{Amount, InvoiceLineKey, payer_amount, rounded, sums_to_zero};
use leasehold_model::body::{LedgerAdjusted, LedgerPosted, LedgerShared, PostedLine};
use leasehold_model::{Body, EntryId, Item, Month, ProjectNo, Residual, Steps};

/// The position of an entry in its record.
pub(super) fn entry(sequence: u64, position: usize) -> EntryId {
    EntryId { sequence, position: u16::try_from(position).unwrap_or(u16::MAX) }
}

impl<'e> Checker<'e> {
    /// A record of the tenant, if it books something in the currency of the invoice.
    pub(super) fn take_entry(&mut self, fold: &Fold, evident: &'e Evident) {
        let (sequence, currency) = (evident.sequence, self.evidence.currency);
        let Some(project) = evident.record.identity.project else {
            if let Body::InvoiceIssued(invoice) = &evident.record.body
                && (invoice.month, invoice.currency) == (self.evidence.month, currency)
            {
                self.invoice = Some((sequence, invoice));
            }
            return;
        };
        if let Body::LedgerPosted(posted) = &evident.record.body
            && posted.currency == currency
        {
            self.take_posting(fold, (sequence, project), posted);
        } else if let Body::LedgerCorrected(corrected) = &evident.record.body
            && corrected.currency == currency
        {
            self.take_correction((sequence, project), corrected);
        } else if let Body::LedgerAdjusted(adjusted) = &evident.record.body
            && adjusted.currency == currency
        {
            self.take_adjustment((sequence, project), adjusted);
        } else if let Body::LedgerShared(shared) = &evident.record.body
            && shared.currency == currency
        {
            self.take_share(fold, (sequence, project), shared);
        }
    }

    /// The residual before an entry, which has to follow the payer's last one.
    pub(super) fn link(&mut self, (sequence, project): (u64, ProjectNo), previous: Option<u64>) -> Residual {
        let known = self.payers.get(&project).copied();
        let last = known.map(|payer| payer.last);
        if last != previous {
            let text = |of: Option<u64>| of.map_or_else(|| "none".to_owned(), |sequence| format!("record {sequence}"));
            let why = format!("The entry does not follow the last one of {project}.");
            self.differ(Place::Record(sequence), text(last), text(previous), why);
        }
        known.map_or(Residual::NONE, |payer| payer.residual)
    }

    pub(super) fn linked(&mut self, (sequence, project): (u64, ProjectNo), residual: Residual) {
        let currency = self.evidence.currency;
        self.payers.insert(project, Payer { project, currency, last: sequence, residual });
    }

    fn take_posting(&mut self, fold: &Fold, of: (u64, ProjectNo), posted: &LedgerPosted) {
        let (sequence, project) = of;
        let before = self.link(of, posted.previous);
        let mut exact = Vec::with_capacity(posted.lines.len());
        for (position, line) in posted.lines.iter().enumerate() {
            self.check_price(fold, project, line);
            let found = Amount::decoded(&line.exact);
            if found.is_none() {
                let why = "The exact amount is not a fraction in lowest terms.";
                self.differ(Place::Entry(entry(sequence, position)), "lowest terms", &line.exact, why);
            }
            exact.push(found.unwrap_or_else(Amount::zero));
        }
        if !posted.lines.is_sorted_by(|one, next| one.key < next.key) {
            let why = "The lines of a posting are in order of their keys, each once.";
            self.differ(Place::Record(sequence), "lines in order", "lines out of order", why);
        }
        match rounded(before, &exact) {
            Ok(expected) => {
                for (line, steps) in posted.lines.iter().zip(&expected.lines) {
                    if line.posted != *steps {
                        let place = Place::Line { payer: project, key: line.key.clone() };
                        let why = format!("Record {sequence} rounds the exact cost of the line to another amount.");
                        self.differ_in(place, *steps, line.posted, why);
                    }
                }
                self.same_residual(sequence, expected.residual, posted.residual);
            }
            Err(_) => {
                let why = "The amounts of the posting are too large to be added.";
                self.differ(Place::Record(sequence), "smaller amounts", "too large amounts", why);
            }
        }
        self.linked(of, posted.residual);
        if posted.month == self.evidence.month {
            posted.lines.iter().for_each(|line| self.add_posted(project, line));
        }
        let misplaced = posted.lines.iter().find(|line| Month::of(line.key.hour) > posted.month);
        if let Some(line) = misplaced {
            let why = format!("Record {sequence} books usage in a month before it.");
            let place = Place::Line { payer: project, key: line.key.clone() };
            self.differ(place, Month::of(line.key.hour), posted.month, why);
        }
    }

    pub(super) fn same_residual(&mut self, sequence: u64, expected: Residual, found: Residual) {
        if expected != found {
            let why = "What is left for the payer's next posting is recorded wrongly, in units of 10^-30.";
            self.differ_by(Place::Record(sequence), expected.units(), found.units(), why);
        }
    }

    /// The exact cost of a line is its usage times its price.
    fn check_price(&mut self, fold: &Fold, payer: ProjectNo, line: &PostedLine) {
        let place = || Place::Line { payer, key: line.key.clone() };
        let Ok(Some((currency, each))) = fold.unit_cost(&line.key) else {
            let what = if matches!(line.key.item, Item::Class(_)) { "rate card" } else { "unit price" };
            self.differ(place(), format!("a {what}"), "none", format!("There is no such {what} for the line."));
            return;
        };
        if currency != self.evidence.currency {
            let why = "The price of the line is in another currency than its posting.";
            self.differ(place(), currency, self.evidence.currency, why);
        }
        let cost = each.times(line.usage.0.unsigned_abs());
        let expected = if line.usage.0 < 0 { -cost } else { cost };
        let found = Amount::decoded(&line.exact);
        if found.as_ref() != Some(&expected) {
            let text =
                |amount: &Amount| amount.encoded().map_or_else(|_| "too large".into(), |exact| exact.to_string());
            let difference = found.as_ref().map(|found| text(&(found.clone() - &expected)));
            let by = difference.map(|by| format!(" It differs by {by} steps.")).unwrap_or_default();
            let why = format!("The exact cost of the line is not its usage times its price.{by}");
            self.differ(place(), text(&expected), &line.exact, why);
        }
    }

    fn add_posted(&mut self, payer: ProjectNo, line: &PostedLine) {
        let usage = self.posted.entry((payer, line.key.clone())).or_default();
        *usage = usage.saturating_add(line.usage.0);
        let key = InvoiceLineKey::of_usage(payer, &line.key);
        if self.add_line(key, line.usage.0, line.posted).is_none() {
            let place = Place::Line { payer, key: line.key.clone() };
            self.differ(place, "a sum that can be encoded", "a larger one", "The amounts of the line are too large.");
        }
        if Month::of(line.key.hour) == self.evidence.month {
            self.add_to_pool(payer, &line.key, line.posted);
        }
    }

    fn take_adjustment(&mut self, of: (u64, ProjectNo), adjusted: &LedgerAdjusted) {
        let (sequence, project) = of;
        let residual = self.link(of, adjusted.previous);
        self.linked(of, residual);
        self.check_balance(entry(sequence, 0), &adjusted.legs);
        if adjusted.month == self.evidence.month {
            let amount = payer_amount(&adjusted.legs, project);
            let key = InvoiceLineKey::of_correction(project, adjusted.original_month, None);
            self.add_by_hand(entry(sequence, 0), key, 0, amount);
            self.leave_open(None, format!("{} was booked by hand; why is not proved.", entry(sequence, 0)));
        }
    }

    /// Adds an entry by hand to its line.
    pub(super) fn add_by_hand(&mut self, id: EntryId, key: InvoiceLineKey, usage: i128, amount: Option<Steps>) {
        if amount.and_then(|amount| self.add_line(key, usage, amount)).is_none() {
            self.differ(Place::Entry(id), "an amount that can be added", "a larger one", "The amount is too large.");
        }
    }

    pub(super) fn check_balance(&mut self, id: EntryId, legs: &[leasehold_model::Leg]) {
        if !sums_to_zero(legs) {
            let sum = Steps::sum(legs.iter().map(|leg| leg.amount)).unwrap_or(Steps::MAX);
            self.differ_in(Place::Entry(id), Steps::ZERO, sum, "The legs of an entry sum to zero.");
        }
    }

    fn take_share(&mut self, fold: &Fold, of: (u64, ProjectNo), shared: &'e LedgerShared) {
        let (sequence, project) = of;
        let residual = self.link(of, shared.previous);
        self.linked(of, residual);
        if shared.month != self.evidence.month {
            return;
        }
        if sequence < self.evidence.statement.1.cut {
            let why = "The cost of a month is shared after its cut.";
            self.differ(Place::Entry(entry(sequence, 0)), "a record after the cut", sequence, why);
        } else {
            self.take_decision(fold, of, shared);
        }
        if shared.booked != Steps::ZERO {
            let key = InvoiceLineKey::of_share(project, shared);
            self.add_by_hand(entry(sequence, 0), key, 0, Some(shared.booked));
        }
    }
}
