//! Commands of the ledger. What is posted is computed from the books; the engine rounds it, and refuses what is stale,
//! repeated, unbalanced or for a closed month (SEMANTICS 12).

use super::Draft;
use crate::command::{
    AdjustLedger, CorrectEntry, DisputeEntry, IssueInvoice, OpenLedger, PostUsage, PutTaxRate, RecordPayment,
    SettleHour,
};
use crate::ledger::{HOUR, Ledger, Payer};
use crate::prepaid::PrepaidScope;
use crate::refusal::Refusal;
use leasehold_ledger::{Amount, Taxed, payer_amount, reversed, rounded, sums_to_zero, total};
use leasehold_model::body::{
    HourSettled, InvoiceIssued, LedgerAdjusted, LedgerCorrected, LedgerDisputed, LedgerOpened, LedgerPosted,
    PaymentRecorded, PeriodClosed, PeriodClosing, PostedLine, TaxRatePut,
};
use leasehold_model::ledger::{InvoiceSeries, hour_of};
use leasehold_model::limits::{LEDGER_LEGS_MAX, LEDGER_LINES_MAX, POSTING_RECORDS_MAX, TAX_RATE_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, Identity, Instant, Leg, LineKey, Month, ProjectNo, Record, Steps, TenantNo};

static NO_PAYER: Payer = Payer {
    tenant: TenantNo(0),
    last: None,
    through: Instant(0),
    as_of_size: 0,
    complete: true,
    last_line: None,
    residual: leasehold_model::Residual::NONE,
    unbilled: smallvec::SmallVec::new_const(),
};

impl Draft<'_> {
    pub(super) fn open_ledger(&self) -> Result<&Ledger, Refusal> {
        let ledger = self.state().ledger();
        if ledger.opened.is_none() { Err(Refusal::LedgerNotOpen) } else { Ok(ledger) }
    }

    pub(super) fn emit_of(
        &mut self,
        (tenant, project): (TenantNo, Option<ProjectNo>),
        body: impl Into<leasehold_model::Body>,
        shape: impl FnOnce(&mut Record),
    ) {
        let identity = Identity { tenant: Some(tenant), project, ..Identity::default() };
        self.emit_shaped(&identity, body, shape);
    }

    pub(super) fn start_ledger(&mut self, open: &OpenLedger) -> Result<(), Refusal> {
        if let Some(from) = self.state().ledger().opened {
            return Err(Refusal::LedgerAlreadyOpen { from });
        }
        let from = open.from.unwrap_or(hour_of(self.now));
        if hour_of(from) != from {
            return Err(Refusal::NotAnHour { at: from });
        }
        if from > self.now {
            return Err(Refusal::LedgerInFuture { now: self.now });
        }
        self.plain(LedgerOpened { from });
        Ok(())
    }

    /// The project of a posting; one that was deleted meanwhile is taken at its word.
    fn check_owner(&self, tenant: TenantNo, project: ProjectNo) -> Result<(), Refusal> {
        match self.state().project(project) {
            Some(found) if found.tenant != tenant => Err(Refusal::UnknownProject { project }),
            None if (project.0 as usize) >= self.state().projects.len() => Err(Refusal::UnknownProject { project }),
            _ => Ok(()),
        }
    }

    pub(super) fn payer(&self, project: ProjectNo, currency: Currency) -> &Payer {
        self.state().ledger().payer(project, currency).unwrap_or(&NO_PAYER)
    }

    pub(super) fn post_usage(&mut self, post: &PostUsage) -> Result<(), Refusal> {
        let (project, currency) = (post.project, post.currency);
        let ledger = self.open_ledger()?;
        self.check_owner(post.tenant, project)?;
        let payer = self.payer(project, currency);
        if post.previous != payer.last || post.as_of_size < payer.as_of_size || post.as_of_size > self.state().size() {
            return Err(Refusal::StalePosting { project });
        }
        // The books tell the amounts of recent sizes, and of those that a settlement has begun with.
        let is_old = post.as_of_size.saturating_add(POSTING_RECORDS_MAX) < self.state().size();
        if is_old && ledger.closing.is_none() && !ledger.is_begun(post.as_of_size) {
            return Err(Refusal::StalePosting { project });
        }
        if !payer.complete && (post.through, post.as_of_size) != (payer.through, payer.as_of_size) {
            return Err(Refusal::StalePosting { project });
        }
        self.check_through(ledger, post, payer)?;
        check_lines(ledger, post)?;
        let after_last = |last: &(Month, LineKey)| {
            post.lines.first().is_none_or(|first| (post.month, &first.key) > (last.0, &last.1))
        };
        if !payer.last_line.as_deref().is_none_or(after_last) {
            return Err(Refusal::BadPostingLines);
        }
        let exact = post.lines.iter().map(|line| Amount::decoded(&line.exact)).collect::<Option<Vec<_>>>();
        let rounded =
            rounded(payer.residual, &exact.ok_or(Refusal::BadExactAmount)?).map_err(|_| Refusal::AmountTooLarge)?;
        let lines = post.lines.iter().zip(rounded.lines);
        let lines = lines.map(|(line, posted)| PostedLine {
            key: line.key.clone(),
            usage: line.usage,
            exact: line.exact.clone(),
            posted,
        });
        let body = LedgerPosted {
            currency,
            month: post.month,
            through: post.through,
            complete: post.complete,
            as_of_size: post.as_of_size,
            previous: post.previous,
            lines: lines.collect(),
            residual: rounded.residual,
        };
        let sum = Steps::sum(body.lines.iter().map(|line| line.posted)).ok_or(Refusal::AmountTooLarge)?;
        payer.unbilled_in(post.month).checked_add(sum).ok_or(Refusal::AmountTooLarge)?;
        self.emit_of((post.tenant, Some(project)), body, |_| {});
        Ok(())
    }

    /// The hours of a posting are over, and follow those that are settled.
    fn check_through(&self, ledger: &Ledger, post: &PostUsage, payer: &Payer) -> Result<(), Refusal> {
        if let Some(closing) = &ledger.closing {
            // The last settlement of the month, of what was recorded before the cut.
            let in_time = post.as_of_size == closing.cut && post.through == ledger.settled_through;
            let is_shared = self.state().sharing.closing.as_ref().is_some_and(|shares| !shares.done.is_empty());
            return if in_time && closing.issued.is_empty() && !is_shared {
                Ok(())
            } else {
                Err(Refusal::PeriodIsClosing { month: closing.month })
            };
        }
        let next = ledger.settled_through.saturating_add(HOUR);
        let is_next = post.through == ledger.settled_through || post.through == next;
        if !is_next || post.through > hour_of(self.now) || post.through < payer.through {
            return Err(Refusal::HourOutOfOrder { through: post.through, settled: ledger.settled_through });
        }
        Ok(())
    }

    pub(super) fn settle_hour(&mut self, settle: &SettleHour) -> Result<(), Refusal> {
        let ledger = self.open_ledger()?;
        if let Some(closing) = &ledger.closing {
            return Err(Refusal::PeriodIsClosing { month: closing.month });
        }
        let (through, settled) = (settle.through, ledger.settled_through);
        if through != settled.saturating_add(HOUR) || through > hour_of(self.now) {
            return Err(Refusal::HourOutOfOrder { through, settled });
        }
        self.check_complete(ledger)?;
        if settle.as_of_size > self.state().size() {
            return Err(Refusal::HourOutOfOrder { through, settled });
        }
        self.emit(None, HourSettled { through, as_of_size: settle.as_of_size }, |record| record.effective_at = through);
        Ok(())
    }

    pub(super) fn check_complete(&self, ledger: &Ledger) -> Result<(), Refusal> {
        match ledger.payer_index.first_incomplete() {
            Some((project, _)) => Err(Refusal::PostingIncomplete { project }),
            None => Ok(()),
        }
    }

    /// Entries by hand concern one project and what the platform has; invoices and payments have commands of their own.
    fn check_legs(&self, project: ProjectNo, legs: &[Leg]) -> Result<(), Refusal> {
        if legs.len() > LEDGER_LEGS_MAX {
            return Err(Refusal::TooManyLegs { limit: LEDGER_LEGS_MAX });
        }
        for leg in legs {
            match leg.account {
                Account::Receivable(of) | Account::Adjustments(of) if of != project => {
                    return Err(Refusal::OtherProjectsAccount { project });
                }
                Account::Invoiced(_)
                | Account::Tax
                | Account::CashClearing
                | Account::TenantPrepaid(_)
                | Account::ProjectPrepaid(_)
                | Account::ExpiredCredits
                | Account::SharedRuntime(_) => {
                    return Err(Refusal::AccountNotByHand { account: leg.account.word() });
                }
                Account::Revenue(class) if self.state().class(class).is_none() => {
                    return Err(Refusal::UnknownClass { class });
                }
                Account::UnitRevenue(unit) if self.state().unit(unit).is_none() => {
                    return Err(Refusal::UnknownUnit { unit });
                }
                Account::Receivable(_)
                | Account::Adjustments(_)
                | Account::Revenue(_)
                | Account::UnitRevenue(_)
                | Account::Rounding
                | Account::OperatorLoss => {}
            }
        }
        if sums_to_zero(legs) { Ok(()) } else { Err(Refusal::Unbalanced) }
    }

    /// The month that an entry is about has begun, and the ledger was open in it.
    fn check_original(&self, ledger: &Ledger, month: Month) -> Result<(), Refusal> {
        let first = Month::of(ledger.opened.expect("it was checked to be open"));
        if month < first || month > Month::of(self.now) { Err(Refusal::NoSuchPeriod { month }) } else { Ok(()) }
    }

    pub(super) fn correct_entry(&mut self, correct: &CorrectEntry) -> Result<(), Refusal> {
        let (project, currency) = (correct.project, correct.currency);
        let ledger = self.open_ledger()?;
        self.check_owner(correct.tenant, project)?;
        self.check_original(ledger, correct.original_month)?;
        let payer = self.payer(project, currency);
        if correct.previous != payer.last || correct.corrects.sequence >= self.state().size() {
            return Err(Refusal::StalePosting { project });
        }
        if !payer.complete {
            return Err(Refusal::PostingIncomplete { project });
        }
        self.check_legs(project, &correct.reversal)?;
        self.check_legs(project, &correct.replacement)?;
        let own = |legs: &[Leg]| payer_amount(legs, project).ok_or(Refusal::AmountTooLarge);
        let (back, forth) = (own(&correct.reversal)?, own(&correct.replacement)?);
        let (rounding, residual) = match &correct.line {
            Some(line) => {
                let exact = Amount::decoded(&line.exact).ok_or(Refusal::BadExactAmount)?;
                reversed(payer.residual, &[(-back, exact)]).map_err(|_| Refusal::AmountTooLarge)?
            }
            None => (Steps::ZERO, payer.residual),
        };
        let month = ledger.open_month().max(correct.original_month);
        let all = Steps::sum([payer.unbilled_in(month), back, forth, rounding]);
        all.ok_or(Refusal::AmountTooLarge)?;
        let body = LedgerCorrected {
            currency,
            month,
            original_month: correct.original_month,
            corrects: correct.corrects,
            previous: correct.previous,
            line: correct.line.clone(),
            reversal: correct.reversal.clone(),
            // Nothing in place of the entry, however it is written.
            replacement: correct.replacement.iter().filter(|leg| leg.amount != Steps::ZERO).copied().collect(),
            rounding,
            residual,
            reason: correct.reason.clone(),
        };
        self.emit_of((correct.tenant, Some(project)), body, |_| {});
        Ok(())
    }

    pub(super) fn adjust_ledger(&mut self, adjust: &AdjustLedger) -> Result<(), Refusal> {
        let (project, currency) = (adjust.project, adjust.currency);
        let ledger = self.open_ledger()?;
        let tenant = self.state().project(project).map(|found| found.tenant);
        let tenant = tenant.filter(|tenant| self.may_see(*tenant)).ok_or(Refusal::UnknownProject { project })?;
        let original_month = adjust.original_month.unwrap_or(ledger.open_month().min(Month::of(self.now)));
        self.check_original(ledger, original_month)?;
        // Not before the month that it is about: that month's invoice is the first that can have it.
        let month = ledger.open_month().max(original_month);
        if adjust.legs.is_empty() {
            return Err(Refusal::Unbalanced);
        }
        self.check_legs(project, &adjust.legs)?;
        let payer = self.payer(project, currency);
        if !payer.complete {
            return Err(Refusal::PostingIncomplete { project });
        }
        let own = payer_amount(&adjust.legs, project).ok_or(Refusal::AmountTooLarge)?;
        payer.unbilled_in(month).checked_add(own).ok_or(Refusal::AmountTooLarge)?;
        let body = LedgerAdjusted {
            currency,
            month,
            original_month,
            previous: payer.last,
            legs: adjust.legs.clone(),
            reason: adjust.reason.clone(),
        };
        self.emit_of((tenant, Some(project)), body, |_| {});
        Ok(())
    }

    pub(super) fn dispute_entry(&mut self, dispute: &DisputeEntry) -> Result<(), Refusal> {
        let ledger = self.open_ledger()?;
        if ledger.disputed.contains(&dispute.entry) == dispute.open {
            return Err(if dispute.open { Refusal::EntryDisputed } else { Refusal::EntryNotDisputed });
        }
        if dispute.entry.sequence >= self.state().size() {
            return Err(Refusal::StalePosting { project: dispute.project });
        }
        let body = LedgerDisputed { entry: dispute.entry, open: dispute.open, reason: dispute.reason.clone() };
        self.emit_of((dispute.tenant, Some(dispute.project)), body, |_| {});
        Ok(())
    }

    pub(super) fn close_period(&mut self, month: Month) -> Result<(), Refusal> {
        let ledger = self.open_ledger()?;
        if let Some(closing) = &ledger.closing {
            return Err(Refusal::PeriodIsClosing { month: closing.month });
        }
        if month < Month::of(ledger.opened.expect("it is open")) {
            return Err(Refusal::NoSuchPeriod { month });
        }
        if month < ledger.first_open {
            return Err(Refusal::PeriodIsClosed { month });
        }
        if self.now < month.end() {
            return Err(Refusal::PeriodNotOver { month, at: month.end() });
        }
        if month > ledger.first_open {
            return Err(Refusal::PeriodOutOfOrder { month: ledger.first_open });
        }
        if ledger.settled_through < month.end() {
            return Err(Refusal::PeriodNotSettled { month, settled: ledger.settled_through });
        }
        self.check_complete(ledger)?;
        // Not in the middle of an hour: its rest would be computed from fewer records than the cut.
        if let Some(((project, _), _)) = ledger.payers.iter().find(|(_, payer)| payer.through > ledger.settled_through)
        {
            return Err(Refusal::PostingIncomplete { project: *project });
        }
        self.plain(PeriodClosing { month });
        Ok(())
    }

    pub(super) fn issue_invoice(&mut self, issue: &IssueInvoice) -> Result<(), Refusal> {
        let ledger = self.open_ledger()?;
        let (tenant, currency) = (issue.tenant, issue.currency);
        let closing = ledger.closing.as_ref().ok_or(Refusal::NoPeriodIsClosing)?;
        let month = closing.month;
        if closing.issued.contains(&(tenant, currency)) {
            return Err(Refusal::InvoiceExists { tenant });
        }
        self.check_complete(ledger)?;
        self.check_shared()?;
        let owed = ledger.payer_index.of_tenant(tenant, currency);
        let owed = owed.map(|project| (project, self.payer(project, currency).unbilled_in(month)));
        let owed: Vec<_> = owed.filter(|(_, amount)| *amount != Steps::ZERO).collect();
        let posted = Steps::sum(issue.taxed.iter().map(|(_, posted)| *posted)).ok_or(Refusal::AmountTooLarge)?;
        let owed_sum = Steps::sum(owed.iter().map(|(_, amount)| *amount)).ok_or(Refusal::AmountTooLarge)?;
        let in_order = issue.taxed.is_sorted_by(|a, b| a.0 < b.0);
        let is_empty = issue.taxed.iter().all(|(_, posted)| *posted == Steps::ZERO) && owed.is_empty();
        if issue.projects != owed || posted != owed_sum || issue.lines == 0 || !in_order || is_empty {
            return Err(Refusal::InvoiceMismatch { tenant });
        }
        let taxes = issue.taxed.iter().map(|(rate, posted)| Taxed { rate: *rate, posted: *posted }.line(currency));
        let taxes = taxes.collect::<Result<Vec<_>, _>>().map_err(|_| Refusal::AmountTooLarge)?;
        let net = Steps::sum(taxes.iter().map(|line| line.net)).ok_or(Refusal::AmountTooLarge)?;
        let series = if net < Steps::ZERO { InvoiceSeries::CreditNote } else { InvoiceSeries::Invoice };
        let total = total(&taxes).ok_or(Refusal::AmountTooLarge)?;
        let before = ledger.invoiced.get(&(tenant, currency)).copied().unwrap_or_default();
        before.checked_add(total).ok_or(Refusal::AmountTooLarge)?;
        let number = ledger.next_number(series);
        let body = InvoiceIssued {
            number,
            month,
            currency,
            projects: owed,
            taxes,
            total,
            lines: issue.lines,
            lines_hash: issue.lines_hash,
            due_at: issue.due_at,
        };
        self.emit_of((tenant, None), body, |_| {});
        self.apply_prepaid((tenant, currency), (number, month), (owed_sum, net));
        Ok(())
    }

    pub(super) fn finish_period(&mut self, month: Month) -> Result<(), Refusal> {
        let ledger = self.open_ledger()?;
        let closing = ledger.closing.as_ref().filter(|closing| closing.month == month);
        let closing = closing.ok_or(Refusal::NoPeriodIsClosing)?;
        self.check_complete(ledger)?;
        self.check_shared()?;
        if let Some((_, payer)) = ledger.payers.iter().find(|(_, payer)| payer.unbilled_in(month) != Steps::ZERO) {
            return Err(Refusal::InvoiceMissing { tenant: payer.tenant });
        }
        let (invoices, credit_notes) = (closing.invoices, closing.credit_notes);
        let statements = Some(closing.stated.len() as u64);
        self.plain(PeriodClosed { month, invoices, credit_notes, statements });
        Ok(())
    }

    pub(super) fn record_payment(&mut self, payment: &RecordPayment) -> Result<(), Refusal> {
        let ledger = self.open_ledger()?;
        let (tenant, currency) = (payment.tenant, payment.currency);
        // What a deleted tenant is still owed, by a credit note, can be paid back.
        let before = ledger.invoiced.get(&(tenant, currency)).copied().unwrap_or_default();
        if before == Steps::ZERO {
            self.state().tenant(tenant).ok_or(Refusal::UnknownTenant { tenant })?;
        }
        if let Some(sequence) = ledger.payments.get(&(tenant, payment.reference.clone())) {
            return Err(Refusal::PaymentExists { sequence: *sequence });
        }
        if payment.amount == Steps::ZERO || !payment.amount.is_encodable() {
            return Err(Refusal::BadPaymentAmount);
        }
        if payment.received_at.is_some_and(|at| at > self.now) {
            return Err(Refusal::PaymentInFuture);
        }
        if payment.invoice.is_some_and(|invoice| !ledger.is_issued(invoice, tenant, currency)) {
            return Err(Refusal::UnknownInvoice);
        }
        before.checked_add(-payment.amount).ok_or(Refusal::AmountTooLarge)?;
        let received_at = payment.received_at.unwrap_or(self.now);
        let body = PaymentRecorded {
            currency,
            amount: payment.amount,
            invoice: payment.invoice,
            reference: payment.reference.clone(),
            received_at,
        };
        self.emit_of((tenant, None), body, |_| {});
        Ok(())
    }

    pub(super) fn put_tax_rate(&mut self, put: &PutTaxRate) -> Result<(), Refusal> {
        let tenant = put.tenant;
        self.state().tenant(tenant).ok_or(Refusal::UnknownTenant { tenant })?;
        let ledger = self.state().ledger();
        let first = if ledger.opened.is_some() { ledger.open_month() } else { Month::default() };
        let from = put.from.unwrap_or(Month::of(self.now));
        if from < first {
            return Err(Refusal::PeriodIsClosed { month: from });
        }
        if put.rate > TAX_RATE_MAX {
            return Err(Refusal::BadTaxRate { limit: TAX_RATE_MAX });
        }
        self.emit_of((tenant, None), TaxRatePut { tenant, from, rate: put.rate }, |_| {});
        Ok(())
    }

    /// Refuses to delete a project that owes something which was not invoiced, or will.
    pub(super) fn check_project_owes_nothing(&self, project: ProjectNo) -> Result<(), Refusal> {
        let state = self.state();
        if state.ledger().payers_of(project).any(|(_, payer)| !payer.unbilled.is_empty()) {
            return Err(Refusal::ProjectHasBalance { project });
        }
        let has_credit = |scope| {
            let own = state.prepaid_accounts().filter(|((of, _), _)| *of == scope);
            own.into_iter().any(|(_, account)| account.liability() != Steps::ZERO)
        };
        if has_credit(PrepaidScope::Project(project)) {
            return Err(Refusal::ProjectHasBalance { project });
        }
        self.check_no_limit_is_used(|limit| limit.of.project == Some(project))?;
        let is_complete = state.ledger().payers_of(project).all(|(_, payer)| payer.complete);
        let is_posted = is_complete && state.project(project).is_none_or(|found| state.is_posted(found));
        if is_posted { Ok(()) } else { Err(Refusal::UnpostedUsage { project }) }
    }

    /// Refuses to delete a tenant that owes something, or will.
    pub(super) fn check_tenant_owes_nothing(&self, tenant: TenantNo) -> Result<(), Refusal> {
        let state = self.state();
        let ledger = state.ledger();
        let unbilled = ledger.payers.values().any(|payer| payer.tenant == tenant && !payer.unbilled.is_empty());
        let mut accounts = state.prepaid_accounts();
        let has_credit = accounts.any(|(_, account)| account.tenant == tenant && account.liability() != Steps::ZERO);
        if unbilled || has_credit || ledger.invoiced.keys().any(|(of, _)| *of == tenant) {
            return Err(Refusal::TenantHasBalance { tenant });
        }
        self.check_no_limit_is_used(|limit| limit.tenant == tenant)?;
        let numbered = (0u32..).zip(&state.projects).filter_map(|(number, found)| Some((number, found.as_ref()?)));
        let mut unposted = numbered.filter(|(_, found)| found.tenant == tenant && !state.is_posted(found));
        match unposted.next() {
            Some((number, _)) => Err(Refusal::UnpostedUsage { project: ProjectNo(number) }),
            None => Ok(()),
        }
    }
}

/// Lines are in order, within the hours that the posting covers, and booked in the month of their hour, or in the first
/// open month if that one is closed.
fn check_lines(ledger: &Ledger, post: &PostUsage) -> Result<(), Refusal> {
    if post.lines.len() > LEDGER_LINES_MAX {
        return Err(Refusal::TooManyLines { limit: LEDGER_LINES_MAX });
    }
    if post.month < ledger.first_open {
        return Err(Refusal::PeriodIsClosed { month: post.month });
    }
    // A part without lines says nothing, unless it completes a posting.
    if post.lines.is_empty() && !post.complete {
        return Err(Refusal::BadPostingLines);
    }
    let opened = ledger.opened.expect("it was checked to be open");
    let in_order = post.lines.is_sorted_by(|a, b| a.key < b.key);
    let fits = |hour: Instant| {
        let month = Month::of(hour);
        let booked = month == post.month || month < ledger.first_open && post.month == ledger.first_open;
        hour_of(hour) == hour && hour >= opened && hour < post.through && booked
    };
    if !in_order || !post.lines.iter().all(|line| fits(line.key.hour)) {
        return Err(Refusal::BadPostingLines);
    }
    Ok(())
}
