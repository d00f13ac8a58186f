//! Months are closed, with interruptions in every step.

use super::compare::same_lines;
use super::settling::Settled;
use super::story::{Step, Story};
use leasehold_engine::Command;
use leasehold_engine::command::IssueInvoice;
use leasehold_model::{Body, Month, Span, Steps};

impl Story {
    /// Makes the cut of the next month if it is settled, and goes on with a month that is being closed.
    pub(crate) fn close(&mut self, calm: bool) -> Step<Settled> {
        if self.books().ledger_opened().is_none() {
            return Ok(Settled::Done);
        }
        let month = match self.books().closing_month() {
            Some(month) => month,
            None => {
                let month = self.books().first_open_month();
                if self.books().settled_through() < month.end() {
                    return Ok(Settled::Done);
                }
                self.expect(Command::ClosePeriod(month), &["posting_incomplete"])?;
                if self.books().closing_month() != Some(month) || !calm && self.dice.one_in(3) {
                    return Ok(Settled::Interrupted);
                }
                month
            }
        };
        let settlement = self.books().closing_settlement().map_err(|error| error.to_string())?;
        if let Some(settlement) = settlement {
            self.check_settlement(&settlement)?;
            if self.post(&settlement, calm)? == Settled::Interrupted {
                return Ok(Settled::Interrupted);
            }
        }
        self.share_costs()?;
        if !self.audit.ledger.invoices_of(month).is_empty()
            && self.books().invoices().iter().all(|one| one.month != month)
        {
            self.refuse(Some(Command::FinishPeriod(month)))?;
        }
        self.refuse(Some(Command::ClosePeriod(month.next())))?;
        if self.issue(month, calm)? == Settled::Interrupted {
            return Ok(Settled::Interrupted);
        }
        self.expect(Command::FinishPeriod(month), &[])?;
        self.refuse(Some(Command::ClosePeriod(month)))?;
        Ok(Settled::Done)
    }

    fn issue(&mut self, month: Month, calm: bool) -> Step<Settled> {
        let terms = Span::from_secs(30 * 86_400);
        let invoices = self.books().invoices_to_issue(terms).map_err(|error| error.to_string())?;
        for invoice in invoices {
            self.check_invoice_draft(month, &invoice)?;
            let (tenant, currency) = (invoice.tenant, invoice.currency);
            let sequence = self.operate(Command::IssueInvoice(invoice.clone()))?;
            let sequence = sequence.map_err(|refusal| format!("{tenant} {currency}: {refusal}\n  {invoice:?}"))?;
            let record = &self.records[usize::try_from(sequence).expect("few")];
            let Body::InvoiceIssued(issued) = &record.body else { return Err(format!("{record:?}")) };
            let (number, total, taxes) = (issued.number, issued.total, issued.taxes.clone());
            let found = self.books().invoice(number).map_err(|error| error.to_string())?;
            let found = found.ok_or_else(|| format!("the books have no {number}"))?;
            if (found.head.total, &found.taxes) != (total, &taxes) {
                return Err(format!("{number} in the books: {found:?}"));
            }
            if found.lines.len() as u64 != invoice.lines {
                return Err(format!("{number} has {} lines, its record {}", found.lines.len(), invoice.lines));
            }
            same_lines(&found.lines, &self.audit.ledger.invoice_lines(tenant, currency, month))?;
            let again = self.operate(Command::IssueInvoice(invoice))?;
            if again.is_ok() {
                return Err(format!("{number} was issued twice"));
            }
            if !calm && self.dice.one_in(6) {
                self.crash()?;
                return Ok(Settled::Interrupted);
            }
        }
        Ok(Settled::Done)
    }

    /// The draft of the books agrees with the model and with what they want to issue.
    fn check_invoice_draft(&mut self, month: Month, invoice: &IssueInvoice) -> Step<()> {
        let (tenant, currency) = (invoice.tenant, invoice.currency);
        let draft = self.books().invoice_draft(tenant, month, currency).map_err(|error| error.to_string())?;
        let draft = draft.ok_or_else(|| format!("no draft for {tenant} {currency}"))?;
        let ledger = &self.audit.ledger;
        let owed = ledger.owed(tenant, currency, month);
        if invoice.projects != owed {
            return Err(format!("{tenant} {currency} {month}: books {:?}, model {owed:?}", invoice.projects));
        }
        let taxes = ledger.taxes(tenant, currency, month);
        if draft.taxes.iter().filter(|line| line.posted != Steps::ZERO).ne(&taxes) {
            return Err(format!("{tenant} {currency} {month}: books {:?}, model {taxes:?}", draft.taxes));
        }
        same_lines(&draft.lines, &ledger.invoice_lines(tenant, currency, month))?;
        let total: i128 = taxes.iter().map(|line| line.net.0 + line.tax.0).sum();
        if draft.total().map_err(|error| error.to_string())? != Steps(total) {
            return Err(format!("{tenant} {currency} {month}: total {:?}", draft.total()));
        }
        if (draft.lines_hash(), draft.lines.len() as u64) != (invoice.lines_hash, invoice.lines) {
            return Err(format!("{tenant} {currency} {month}: other lines than in the draft"));
        }
        Ok(())
    }
}
