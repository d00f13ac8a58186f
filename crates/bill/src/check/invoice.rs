//! The invoice itself: usage against postings, lines, taxes, totals, and what prepaid credit pays.

use super::Place;
use super::checker::Checker;
use super::replay::{Replayed, hex};
use super::together::open_adjustments;
use crate::usage::Usage;
use leasehold_ledger::{InvoiceLineKey, Taxed, lines_hash, round_to_currency, total};
use leasehold_model::body::{InvoiceIssued, TaxLine};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::rate::Decimal;
use leasehold_model::{Item, LineKey, Month, ProjectNo, Steps};
use std::collections::BTreeMap;

impl Checker<'_> {
    /// What was posted for each line in the month is what it used, as of the cut; for hours of earlier months, what changed
    /// since the cut before.
    pub(super) fn check_usage(&mut self, replayed: &Replayed) {
        let start = self.evidence.month.start();
        let mut expected: BTreeMap<(ProjectNo, LineKey), i128> = BTreeMap::new();
        let mut count = |usage: &Usage, sign: i128, all: bool| {
            for ((payer, currency), lines) in usage {
                if *currency != self.evidence.currency {
                    continue;
                }
                for (key, amount) in lines.iter().filter(|(key, _)| all || key.hour < start) {
                    let sum = expected.entry((*payer, key.clone())).or_default();
                    *sum = sum.saturating_add(amount.saturating_mul(sign));
                }
            }
        };
        count(&replayed.used, 1, true);
        count(&replayed.used_before, -1, false);
        let mut posted = std::mem::take(&mut self.posted);
        expected.retain(|_, usage| *usage != 0);
        for ((payer, key), usage) in expected {
            let found = posted.remove(&(payer, key.clone())).unwrap_or(0);
            self.same_usage(replayed, payer, key, usage, found);
        }
        for ((payer, key), found) in posted.into_iter().filter(|(_, usage)| *usage != 0) {
            self.same_usage(replayed, payer, key, 0, found);
        }
    }

    fn same_usage(&mut self, replayed: &Replayed, payer: ProjectNo, key: LineKey, expected: i128, found: i128) {
        if expected == found {
            return;
        }
        let is_earlier = key.hour < self.evidence.month.start();
        if is_earlier && replayed.unknown && matches!(key.item, Item::Class(_)) {
            let month = Month::of(key.hour);
            let line = InvoiceLineKey::of_usage(payer, &key);
            return self.leave_open(Some(line), open_adjustments(month));
        }
        let why = match is_earlier {
            true => "What was posted as an adjustment is not what records since the last cut changed.",
            false => "What was posted for the line in the month is not what it used, as of the cut.",
        };
        self.differ_by(Place::Line { payer, key }, expected, found, why);
    }

    pub(super) fn check_invoice(&mut self, replayed: &Replayed) {
        let Some((sequence, invoice)) = self.invoice else {
            let evidence = self.evidence;
            let what = format!("invoice.issued of {} in {}", evidence.month, evidence.currency);
            self.differ(Place::Invoice("record"), what, "none", "The invoice is not among the records.");
            return;
        };
        if sequence < self.evidence.statement.1.cut {
            let why = "The invoice was issued before the cut of its month.";
            self.differ(Place::Invoice("record"), "after the cut", format!("record {sequence}"), why);
        }
        if self.lines.len() as u64 != invoice.lines {
            let why = "The entries of the month make another number of lines than the invoice has.";
            self.differ_by(Place::Invoice("lines"), self.lines.len() as i128, invoice.lines.into(), why);
        } else if lines_hash(self.lines.iter()) != invoice.lines_hash {
            let (expected, found) = (hex(&lines_hash(self.lines.iter())), hex(&invoice.lines_hash));
            let why = "The lines that the entries of the month make are not those of the invoice.";
            self.differ(Place::Invoice("lines"), expected, found, why);
        }
        self.check_projects(invoice);
        self.check_taxes(replayed, invoice);
        self.check_prepaid(invoice);
    }

    fn check_projects(&mut self, invoice: &InvoiceIssued) {
        let mut owed: BTreeMap<ProjectNo, i128> = BTreeMap::new();
        for (key, line) in &self.lines {
            let sum = owed.entry(key.project).or_default();
            *sum = sum.saturating_add(line.posted.0);
        }
        owed.retain(|_, sum| *sum != 0);
        if !invoice.projects.is_sorted_by(|one, next| one.0 < next.0) {
            let why = "Each project is on the invoice once, in order.";
            self.differ(Place::Invoice("projects"), "projects in order", "projects out of order", why);
        }
        let mut stated: BTreeMap<ProjectNo, i128> =
            invoice.projects.iter().map(|(project, amount)| (*project, amount.0)).collect();
        let projects: Vec<ProjectNo> = owed.keys().chain(stated.keys()).copied().collect();
        for project in projects {
            let (expected, found) = (owed.get(&project).copied(), stated.remove(&project));
            if expected.unwrap_or(0) != found.unwrap_or(0) {
                let why = "What the project owes by the invoice is not the sum of its lines.";
                let amount = |of: Option<i128>| Steps(of.unwrap_or(0));
                self.differ_in(Place::Project(project), amount(expected), amount(found), why);
            }
            owed.remove(&project);
        }
    }

    /// Each part of the invoice has the tax rate of the month that it is about.
    fn check_taxes(&mut self, replayed: &Replayed, invoice: &InvoiceIssued) {
        let tenant = replayed.tenant(self.evidence.tenant);
        let mut by_rate: BTreeMap<Decimal, i128> = BTreeMap::new();
        for (key, line) in &self.lines {
            let rate = tenant.map_or(Decimal::default(), |tenant| tenant.tax_rate(key.month));
            let sum = by_rate.entry(rate).or_default();
            *sum = sum.saturating_add(line.posted.0);
        }
        // A rate with which nothing was posted may be listed or not.
        by_rate.retain(|_, posted| *posted != 0);
        if !invoice.taxes.is_sorted_by(|one, next| one.rate < next.rate) {
            let why = "Each tax rate is on the invoice once, in order.";
            self.differ(Place::Invoice("taxes"), "rates in order", "rates out of order", why);
        }
        let said = invoice.taxes.iter().filter(|line| line.posted != Steps::ZERO || line.tax != Steps::ZERO);
        let mut stated: BTreeMap<Decimal, TaxLine> = said.map(|line| (line.rate, line.clone())).collect();
        let nothing = |rate| TaxLine { rate, posted: Steps::ZERO, net: Steps::ZERO, tax: Steps::ZERO };
        let rates: std::collections::BTreeSet<Decimal> = by_rate.keys().chain(stated.keys()).copied().collect();
        let mut expected_lines = Vec::new();
        for rate in rates {
            let posted = Steps(by_rate.get(&rate).copied().unwrap_or(0));
            let expected = Taxed { rate, posted }.line(invoice.currency).unwrap_or_else(|_| nothing(rate));
            let found = stated.remove(&rate).unwrap_or_else(|| nothing(rate));
            for (what, one, other) in [
                (
                    "What was posted with the tax rate is not the sum of the lines with it.",
                    expected.posted,
                    found.posted,
                ),
                ("The net is not what was posted, rounded to the decimals of the currency.", expected.net, found.net),
                ("The tax is not the net times the rate, rounded.", expected.tax, found.tax),
            ] {
                if one != other {
                    self.differ_in(Place::Tax(rate), one, other, what);
                }
            }
            expected_lines.push(expected);
        }
        let expected = total(&expected_lines).unwrap_or_default();
        if expected != invoice.total {
            let why = "The total is not the sum of the nets and taxes.";
            self.differ_in(Place::Invoice("total"), expected, invoice.total, why);
        }
        let net: i128 = expected_lines.iter().map(|line| line.net.0).sum();
        let series = if net < 0 { InvoiceSeries::CreditNote } else { InvoiceSeries::Invoice };
        if invoice.number.series != series {
            let why = "A negative net makes a credit note, any other an invoice.";
            self.differ(Place::Invoice("number"), series, invoice.number.series, why);
        }
    }

    /// What prepaid credit covers is rounded once, over all accounts, and lowers the invoice.
    fn check_prepaid(&mut self, invoice: &InvoiceIssued) {
        if self.prepaid.is_empty() {
            return;
        }
        let owed: i128 = invoice.projects.iter().map(|(_, amount)| amount.0).sum();
        let net: i128 = invoice.taxes.iter().map(|line| line.net.0).sum();
        let (mut amounts, mut credits) = (0i128, 0i128);
        for (sequence, applied) in self.prepaid.clone() {
            let place = Place::Record(sequence);
            if (applied.month, applied.currency) != (invoice.month, invoice.currency) {
                let why = "Credit was applied for another month or currency than that of the invoice.";
                self.differ(place.clone(), invoice.month, applied.month, why);
            }
            amounts = amounts.saturating_add(applied.amount.0);
            let rounded = round_to_currency(&Steps(amounts).into(), invoice.currency).map_or(amounts, |steps| steps.0);
            let all = if amounts == owed { net } else { rounded };
            let expected = all.saturating_sub(credits);
            if applied.credited.0 != expected {
                let why = "What is credited is what credit covers, rounded to the decimals of the currency.";
                self.differ_in(place, Steps(expected), applied.credited, why);
            }
            credits = all;
        }
        self.leave_open(None, "How much prepaid credit was left is not proved; that it was applied is.");
    }
}
