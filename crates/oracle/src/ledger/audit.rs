//! Recomputes the exact cost of every line from all records, and compares it with what was posted (SEMANTICS 12).

use super::fraction::Fraction;
use super::{Ledger, payer_of};
use crate::accounts::{Accounts, Cost, Costs};
use crate::violation::{Checked, Violation, demand, found};
use ethnum::U256;
use leasehold_model::body::{InvoiceIssued, LedgerPosted, TaxLine};
use leasehold_model::ledger::{ExactSteps, Magnitude, Residual, Steps};
use leasehold_model::rate::Currency;
use leasehold_model::{Body, Instant, LineKey, ProjectNo, Record, TenantNo};
use num_bigint::BigInt;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be posted on one line: usage, and the exact cost in steps.
pub type DueLine = (i128, ExactSteps);

/// A line that settlement posted.
#[derive(Clone, Debug)]
struct PostedCost {
    payer: (ProjectNo, Currency),
    as_of_size: u64,
    key: LineKey,
    cost: Cost,
}

/// All records, and whether the ledger agrees with them.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    pub ledger: Ledger,
    records: Vec<Record>,
    /// The accounts after some number of records.
    known: (usize, Accounts),
    posted: Vec<PostedCost>,
    /// The tenants of projects.
    tenants: BTreeMap<ProjectNo, TenantNo>,
}

impl Audit {
    /// Checks the next record and applies it. After a [`Violation`] it must not be used any more.
    pub fn observe(&mut self, record: &Record) -> Result<(), Violation> {
        self.take(record).map_err(|broken| broken.at(record.sequence))
    }

    fn take(&mut self, record: &Record) -> Checked {
        if let Body::ProjectPut(put) = &record.body {
            self.tenants.insert(put.project, put.tenant);
        } else if let Body::ProjectDeleted(gone) = &record.body {
            self.ledger.check_project_deleted(gone.project)?;
            self.check_all_posted(record, &BTreeSet::from([gone.project]))?;
        } else if let Body::TenantDeleted(gone) = &record.body {
            let of = self.tenants.iter().filter(|(_, tenant)| **tenant == gone.tenant);
            let projects: BTreeSet<ProjectNo> = of.map(|(project, _)| *project).collect();
            self.ledger.check_tenant_deleted(gone.tenant, &projects)?;
            self.check_all_posted(record, &projects)?;
        } else if let Body::LedgerPosted(posted) = &record.body {
            self.ledger.check_order(record, posted)?;
            self.check_costs(record, posted)?;
        } else if let Body::HourSettled(settled) = &record.body {
            let stamp = self.stamp_before(settled.as_of_size);
            demand!(stamp >= Some(settled.through), "hour-over", "no record says that {} has come", settled.through);
            let mut due = self.due_costs(settled.as_of_size, settled.through);
            // Who was posted by a later cut of a month was posted with more than that.
            due.retain(|payer, _| self.posted_at(*payer) <= settled.as_of_size);
            demand!(due.is_empty(), "unposted", "{} is settled without {due:?}", settled.through);
        } else if let Body::LedgerCorrected(corrected) = &record.body {
            self.ledger.check_corrects(record, corrected)?;
        } else if let Body::LedgerDisputed(disputed) = &record.body {
            let known = self.ledger.entries.contains_key(&disputed.entry);
            demand!(known, "disputes", "there is no {}", disputed.entry);
        } else if let Body::InvoiceIssued(invoice) = &record.body {
            self.check_cut()?;
            self.check_taxes(record, invoice)?;
        } else if let Body::PeriodClosed(_) | Body::LedgerShared(_) = &record.body {
            self.check_cut()?;
        }
        self.ledger.take(record)?;
        self.records.push(record.clone());
        self.check_sums()
    }

    fn stamp_before(&self, size: u64) -> Option<Instant> {
        let last = usize::try_from(size).ok()?.checked_sub(1)?;
        self.records.get(last).map(|record| record.stamp)
    }

    /// The accounts as the first so many records have them.
    fn known_at(&mut self, size: u64) -> &Accounts {
        let size = usize::try_from(size).expect("not more than there are");
        if self.known.0 > size {
            self.known = (0, Accounts::default());
        }
        let (done, accounts) = &mut self.known;
        self.records[*done..size].iter().for_each(|record| accounts.read(record));
        *done = size;
        accounts
    }

    /// What the first so many records cost in the hours before an instant, less what was posted of it.
    fn unposted(&mut self, size: u64, through: Instant, counts: impl Fn(&PostedCost) -> bool) -> Costs {
        let Some(from) = self.ledger.opened else { return Costs::new() };
        let mut costs = self.known_at(size).lines(from, through);
        for posted in self.posted.iter().filter(|posted| posted.key.hour < through && counts(posted)) {
            let cost = costs.entry(posted.payer).or_default().entry(posted.key.clone()).or_default();
            *cost = cost.less(posted.cost);
        }
        costs.values_mut().for_each(|lines| lines.retain(|_, cost| !cost.is_zero()));
        costs.retain(|_, lines| !lines.is_empty());
        costs
    }

    fn due_costs(&mut self, size: u64, through: Instant) -> Costs {
        self.unposted(size, through, |_| true)
    }

    /// What has to be posted, as known by the first so many records, for the hours before an instant.
    pub fn due(&mut self, size: u64, through: Instant) -> BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, DueLine>> {
        let costs = self.due_costs(size, through);
        let accounts = self.known_at(size);
        let line = |(key, cost): (LineKey, Cost)| {
            let (negative, numerator, denominator) = accounts.fraction(key.item, cost);
            let digits = |value: U256| Magnitude::from_digits(&value.to_be_bytes()).expect("32 bytes");
            let exact = ExactSteps { negative, numerator: digits(numerator), denominator: digits(denominator) };
            (key, (cost.usage, exact))
        };
        costs.into_iter().map(|(payer, lines)| (payer, lines.into_iter().map(line).collect())).collect()
    }

    /// The number of records that a payer's last posting was computed from.
    pub fn posted_at(&self, payer: (ProjectNo, Currency)) -> u64 {
        let of = self.posted.iter().filter(|posted| posted.payer == payer);
        of.map(|posted| posted.as_of_size).max().unwrap_or(0)
    }

    /// Each line is what is due, and after the last part nothing is.
    fn check_costs(&mut self, record: &Record, posted: &LedgerPosted) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let owner = self.tenants.get(&project).copied();
        demand!(owner == Some(tenant), "payer", "{project} is of {owner:?}, not of {tenant}");
        demand!(posted.as_of_size <= record.sequence, "as-of-size", "{}", posted.as_of_size);
        let payer = (project, posted.currency);
        let stamp = self.stamp_before(posted.as_of_size);
        demand!(stamp >= Some(posted.through), "hour-over", "no record says that {} has come", posted.through);
        let before = self.posted_at(payer);
        demand!(posted.as_of_size >= before, "as-of-size", "{} after {before}", posted.as_of_size);
        let mut due = self.due_costs(posted.as_of_size, posted.through).remove(&payer).unwrap_or_default();
        for line in &posted.lines {
            let cost = found!(due.remove(&line.key), "not-due", "{:?}: {:?}, {}", line.key, line.usage, line.exact);
            demand!(line.usage.0 == cost.usage, "usage", "{} instead of {cost:?}: {:?}", line.usage.0, line.key);
            let (negative, numerator, denominator) = self.known_at(posted.as_of_size).fraction(line.key.item, cost);
            let exact = Fraction::of_parts(negative, numerator, denominator);
            let given = Fraction::read(&line.exact);
            demand!(given.as_ref() == Some(&exact), "exact", "{} instead of {exact:?}: {:?}", line.exact, line.key);
            let (as_of_size, key) = (posted.as_of_size, line.key.clone());
            self.posted.push(PostedCost { payer, as_of_size, key, cost });
        }
        let missing = posted.complete && !due.is_empty();
        demand!(!missing, "unposted", "{project} {} lacks {due:?}", posted.currency);
        Ok(())
    }

    /// Whatever was known at the cut of the month that is being closed is posted.
    fn check_cut(&mut self) -> Checked {
        let (month, cut) = found!(self.ledger.closing, "period-closing", "no month is being closed");
        let missing = self.unposted(cut, month.end(), |posted| posted.as_of_size <= cut);
        demand!(missing.is_empty(), "unposted", "{month} lacks {missing:?}");
        Ok(())
    }

    /// SEMANTICS 12: neither a project nor a tenant with unposted usage can be deleted.
    fn check_all_posted(&mut self, record: &Record, projects: &BTreeSet<ProjectNo>) -> Checked {
        let mut due = self.due_costs(record.sequence, record.stamp);
        due.retain(|(project, _), _| projects.contains(project));
        demand!(due.is_empty(), "unposted", "{} with {due:?}", record.body.word());
        Ok(())
    }

    /// The taxes are by the rates of the months that the entries are about.
    fn check_taxes(&self, record: &Record, invoice: &InvoiceIssued) -> Checked {
        let tenant = found!(record.identity.tenant, "payer", "an invoice without a tenant");
        let taxes = self.ledger.taxes(tenant, invoice.currency, invoice.month);
        let given: Vec<&TaxLine> = invoice.taxes.iter().filter(|line| line.posted != Steps::ZERO).collect();
        demand!(given.into_iter().eq(&taxes), "tax", "{:?} instead of {taxes:?}", invoice.taxes);
        Ok(())
    }

    /// Entries sum to zero, and what was posted differs from what it cost by the residual.
    fn check_sums(&self) -> Checked {
        let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
        for ((_, currency), sum) in self.ledger.balances() {
            *sums.entry(currency).or_default() += sum;
        }
        demand!(sums.values().all(|sum| *sum == 0), "sum", "{sums:?}");
        Ok(())
    }

    /// Checks, for each payer, that what settlement posted differs from the exact cost of it by at most half a step
    /// and what residuals lose, as long as nothing was corrected by hand.
    pub fn check_residuals(&mut self) -> Result<(), Violation> {
        let size = self.records.len() as u64;
        let mut sums: BTreeMap<(ProjectNo, Currency), (Fraction, u64)> = BTreeMap::new();
        let mut by_hand = BTreeSet::new();
        for entry in self.ledger.entries.values() {
            let Some(project) = entry.project.filter(|_| entry.months.is_some()) else { continue };
            let payer = (project, entry.currency);
            if entry.is_correction {
                by_hand.insert(payer);
            } else if let Some(line) = &entry.line {
                let (sum, count) = sums.entry(payer).or_insert((Fraction::integer(0), 0));
                *sum = sum.plus(&line.exact).minus(&Fraction::integer(entry.owed_by(project)));
                *count += 1;
            }
        }
        sums.retain(|payer, _| !by_hand.contains(payer));
        for ((project, currency), (sum, count)) in sums {
            let most = Fraction::new(BigInt::from(Residual::PER_STEP / 2) + count, Residual::PER_STEP.into());
            let detail = format!("{project} {currency}: {sum:?}");
            if sum > most || sum < most.negated() {
                return Err(Violation { sequence: size, rule: "residual", detail });
            }
        }
        Ok(())
    }
}
