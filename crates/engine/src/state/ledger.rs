//! Folding the records of the ledger.

use super::{LastUse, Project, State, entry_mut};
use crate::follow::Follower;
use crate::ledger::{Closing, HOUR, Ledger, Payer};
use leasehold_ledger::payer_amount;
use leasehold_model::body::{
    HourSettled, InvoiceIssued, LedgerAdjusted, LedgerCorrected, LedgerDisputed, LedgerOpened, LedgerPosted,
    PaymentRecorded, PeriodClosed, PeriodClosing, PeriodStated, TaxRatePut,
};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::rate::Currency;
use leasehold_model::{AppInstanceNo, Month, ProjectNo, Record, Steps, TenantNo};

type Folded = Result<(), &'static str>;

pub(super) const TOO_LARGE: &str = "an amount is too large";

pub(super) fn owner(record: &Record) -> Result<(TenantNo, ProjectNo), &'static str> {
    let tenant = record.identity.tenant.ok_or("an entry without a tenant")?;
    Ok((tenant, record.identity.project.ok_or("an entry without a project")?))
}

impl Ledger {
    pub(super) fn payer_mut(&mut self, record: &Record, currency: Currency) -> Result<&mut Payer, &'static str> {
        let (tenant, project) = owner(record)?;
        let key = (project, currency);
        if !self.payers.contains_key(&key) {
            self.payer_index.update(key, tenant, true);
        }
        Ok(self.payers.entry(key).or_insert_with(|| Payer::new(tenant)))
    }

    pub(super) fn invoiced_add(&mut self, tenant: TenantNo, currency: Currency, amount: Steps) -> Folded {
        let key = (tenant, currency);
        let sum = self.invoiced.get(&key).copied().unwrap_or_default().checked_add(amount).ok_or(TOO_LARGE)?;
        if sum == Steps::ZERO {
            self.invoiced.remove(&key);
        } else {
            self.invoiced.insert(key, sum);
        }
        Ok(())
    }
}

impl State {
    /// What the engine keeps of the ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The usage of the project in the record's head ended or changed with it.
    pub(super) fn note_use(&mut self, record: &Record) {
        if let Some(project) = record.identity.project {
            self.note_use_of(project, record);
        }
    }

    /// The usage of a project changed with a record.
    pub(super) fn note_use_of(&mut self, project: ProjectNo, record: &Record) {
        if let Some(project) = entry_mut(&mut self.projects, project.0) {
            project.last_use = LastUse { at: record.stamp, sequence: record.sequence };
        }
    }

    /// Whether everything that a project used is posted, as far as the ledger is open.
    pub(crate) fn is_posted(&self, project: &Project) -> bool {
        self.is_use_posted(project.last_use)
    }

    /// The same of what an app instance used.
    pub(crate) fn is_app_posted(&self, app_instance: AppInstanceNo) -> bool {
        self.is_use_posted(self.apps.last_use.get(&app_instance).copied().unwrap_or_default())
    }

    fn is_use_posted(&self, last_use: LastUse) -> bool {
        let LastUse { at, sequence } = last_use;
        let ledger = &self.ledger;
        let is_used = last_use != LastUse::default() && ledger.opened.is_some_and(|from| from <= at);
        !is_used || (at < ledger.settled_through && sequence < ledger.settled_size)
    }

    /// Whether nothing was ever leased, and nothing is claimed.
    pub fn is_unused(&self) -> bool {
        self.next_lease == 0 && !self.has_claims(|_| true)
    }

    pub(super) fn fold_ledger_opened(&mut self, opened: &LedgerOpened) -> Folded {
        let ledger = &mut self.ledger;
        if ledger.opened.is_some() {
            return Err("the ledger is open already");
        }
        ledger.opened = Some(opened.from);
        ledger.settled_through = opened.from;
        ledger.first_open = Month::of(opened.from);
        self.open_unposted(opened.from);
        Ok(())
    }

    pub(super) fn fold_posted(&mut self, record: &Record, posted: &LedgerPosted, to: &mut impl Follower) -> Folded {
        let (tenant, project) = owner(record)?;
        let payer = self.ledger.payer_mut(record, posted.currency)?;
        if payer.last != posted.previous {
            return Err("the posting follows another one than the payer's last");
        }
        payer.last = Some(record.sequence);
        payer.through = posted.through;
        payer.as_of_size = posted.as_of_size;
        let was_complete = std::mem::replace(&mut payer.complete, posted.complete);
        payer.last_line = match posted.lines.last() {
            Some(last) if !posted.complete => Some(Box::new((posted.month, last.key.clone()))),
            _ => None,
        };
        payer.residual = posted.residual;
        let sum = Steps::sum(posted.lines.iter().map(|line| line.posted)).ok_or(TOO_LARGE)?;
        payer.add(posted.month, sum).ok_or(TOO_LARGE)?;
        if was_complete != posted.complete {
            self.ledger.payer_index.update((project, posted.currency), tenant, posted.complete);
        }
        self.pool_posted(project, posted)?;
        self.count_posted_units((tenant, project, posted.currency), posted);
        let through = posted.complete.then_some(posted.through);
        self.count_posting((tenant, project, posted.currency), (posted.month, sum), through, to)
    }

    pub(super) fn fold_hour_settled(&mut self, settled: &HourSettled, to: &mut impl Follower) -> Folded {
        if settled.through != self.ledger.settled_through.saturating_add(HOUR) {
            return Err("the hour is not the next one");
        }
        self.ledger.settled_through = settled.through;
        self.ledger.settled_size = settled.as_of_size;
        self.advance_meters(settled.through, to);
        Ok(())
    }

    pub(super) fn fold_corrected(
        &mut self,
        record: &Record,
        corrected: &LedgerCorrected,
        to: &mut impl Follower,
    ) -> Folded {
        let (tenant, project) = owner(record)?;
        let payer = self.ledger.payer_mut(record, corrected.currency)?;
        if payer.last != corrected.previous {
            return Err("the correction follows another posting than the payer's last");
        }
        payer.last = Some(record.sequence);
        payer.residual = corrected.residual;
        let own = |legs| payer_amount(legs, project).ok_or(TOO_LARGE);
        let amounts = [own(&corrected.reversal)?, own(&corrected.replacement)?, corrected.rounding];
        let amount = Steps::sum(amounts).ok_or(TOO_LARGE)?;
        payer.add(corrected.month, amount).ok_or(TOO_LARGE)?;
        self.pool_corrected(project, corrected, amount)?;
        self.count_correction((tenant, project, corrected.currency), (corrected.month, amount), to)
    }

    pub(super) fn fold_adjusted(
        &mut self,
        record: &Record,
        adjusted: &LedgerAdjusted,
        to: &mut impl Follower,
    ) -> Folded {
        let (tenant, project) = owner(record)?;
        let payer = self.ledger.payer_mut(record, adjusted.currency)?;
        if payer.last != adjusted.previous {
            return Err("the entry follows another one than the payer's last");
        }
        payer.last = Some(record.sequence);
        let amount = payer_amount(&adjusted.legs, project).ok_or(TOO_LARGE)?;
        payer.add(adjusted.month, amount).ok_or(TOO_LARGE)?;
        self.count_correction((tenant, project, adjusted.currency), (adjusted.month, amount), to)
    }

    pub(super) fn fold_disputed(&mut self, disputed: &LedgerDisputed) -> Folded {
        let changed = match disputed.open {
            true => self.ledger.disputed.insert(disputed.entry),
            false => self.ledger.disputed.remove(&disputed.entry),
        };
        if changed { Ok(()) } else { Err("the entry is disputed already, or is not") }
    }

    pub(super) fn fold_period_closing(&mut self, record: &Record, closing: &PeriodClosing) -> Folded {
        let ledger = &mut self.ledger;
        if closing.month != ledger.first_open || ledger.closing.is_some() {
            return Err("another month has to be closed first");
        }
        ledger.closing = Some(Closing {
            month: closing.month,
            cut: record.sequence,
            issued: std::collections::BTreeSet::new(),
            invoices: 0,
            credit_notes: 0,
            stated: std::collections::BTreeSet::new(),
        });
        self.begin_shares();
        Ok(())
    }

    pub(super) fn fold_invoice(&mut self, record: &Record, invoice: &InvoiceIssued) -> Folded {
        let tenant = record.identity.tenant.ok_or("an invoice without a tenant")?;
        let ledger = &mut self.ledger;
        if ledger.next_number(invoice.number.series) != invoice.number {
            return Err("the number of the invoice is out of order");
        }
        let closing = ledger.closing.as_mut().filter(|closing| closing.month == invoice.month);
        let closing = closing.ok_or("the month is not being closed")?;
        if !closing.issued.insert((tenant, invoice.currency)) {
            return Err("the tenant has an invoice of the month already");
        }
        match invoice.number.series {
            InvoiceSeries::Invoice => {
                closing.invoices += 1;
                ledger.invoices += 1;
            }
            InvoiceSeries::CreditNote => {
                closing.credit_notes += 1;
                ledger.credit_notes += 1;
            }
        }
        ledger.issued_to.insert(invoice.number, (tenant, invoice.currency));
        for (project, amount) in &invoice.projects {
            let payer = ledger.payers.get_mut(&(*project, invoice.currency)).ok_or("no such payer")?;
            payer.add(invoice.month, -*amount).ok_or(TOO_LARGE)?;
        }
        ledger.invoiced_add(tenant, invoice.currency, invoice.total)
    }

    pub(super) fn fold_period_stated(&mut self, record: &Record, stated: &PeriodStated) -> Folded {
        let tenant = record.identity.tenant.ok_or("a statement without a tenant")?;
        let closing = self.ledger.closing.as_mut().filter(|closing| closing.month == stated.month);
        let closing = closing.ok_or("the month is not being closed")?;
        if closing.cut != stated.cut {
            return Err("the statement is about another cut");
        }
        if closing.stated.insert(tenant) { Ok(()) } else { Err("the tenant has a statement of the month already") }
    }

    pub(super) fn fold_period_closed(&mut self, closed: &PeriodClosed) -> Folded {
        let ledger = &mut self.ledger;
        if ledger.closing.as_ref().is_none_or(|closing| closing.month != closed.month) {
            return Err("the month is not being closed");
        }
        ledger.closing = None;
        ledger.first_open = closed.month.next();
        self.end_shares(closed.month);
        Ok(())
    }

    pub(super) fn fold_payment(&mut self, record: &Record, payment: &PaymentRecorded) -> Folded {
        let tenant = record.identity.tenant.ok_or("a payment without a tenant")?;
        let known = self.ledger.payments.insert((tenant, payment.reference.clone()), record.sequence);
        if known.is_some() {
            return Err("the reference of the payment is not unique");
        }
        self.ledger.invoiced_add(tenant, payment.currency, -payment.amount)
    }

    pub(super) fn fold_tax_rate(&mut self, put: &TaxRatePut) {
        self.ledger.tax_rates.insert((put.tenant, put.from), put.rate);
    }
}
