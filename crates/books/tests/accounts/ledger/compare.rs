//! The books and the model agree.

use super::story::{Step, Story};
use leasehold_books::{InvoiceLine, InvoiceLineKey};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, Item, LineKey, Priority, Steps, TenantNo};
use leasehold_oracle::ledger::{Entry, InvoiceKey, InvoiceLines};
use std::collections::{BTreeMap, BTreeSet};

/// The lines of an invoice in the books are in order and, where corrections are not told apart, those of the model.
pub(crate) fn same_lines(books: &[(InvoiceLineKey, InvoiceLine)], model: &InvoiceLines) -> Step<()> {
    if !books.is_sorted_by(|(one, _), (next, _)| one < next) {
        return Err(format!("lines out of order: {books:?}"));
    }
    let mut ours = InvoiceLines::new();
    for (key, line) in books {
        // Corrections, entries by hand and shares have no item.
        let usage = key.item.filter(|_| !key.correction).map(|item| {
            // Lines of usage units have neither a pool nor a priority.
            let (pool, priority) = match item {
                Item::Class(_) => (key.pool.expect("a pool"), key.priority.expect("a priority")),
                Item::Unit(_) => (LineKey::NO_POOL, Priority::default()),
            };
            (key.holder, pool, item, priority, key.app_instance, key.control_plane)
        });
        let (month, project, correction) = (key.month, key.project, key.correction);
        let sum = ours.entry(InvoiceKey { month, project, correction, usage }).or_default();
        sum.0 += if correction { 0 } else { line.usage.0 };
        sum.1 += line.posted.0;
    }
    ours.retain(|_, sums| *sums != (0, 0));
    for key in ours.keys().chain(model.keys()) {
        if ours.get(key) != model.get(key) {
            return Err(format!("line {key:?}\n  books {:?}\n  model {:?}", ours.get(key), model.get(key)));
        }
    }
    Ok(())
}

impl Story {
    /// Balances, payers, months and some entries.
    pub(crate) fn check_books(&mut self) -> Step<()> {
        self.check_usage_ids()?;
        let (books, ledger) = (self.books(), &self.audit.ledger);
        let theirs = ledger.balances();
        let nonzero = |all: &mut BTreeMap<(Account, Currency), i128>| all.retain(|_, sum| *sum != 0);
        let mut ours: BTreeMap<_, _> =
            books.account_balances().map(|(account, currency, sum)| ((account, currency), sum.0)).collect();
        nonzero(&mut ours);
        if ours != theirs {
            return Err(format!("balances\n  books {ours:?}\n  model {theirs:?}"));
        }
        for ((project, currency), last, residual) in ledger.payers() {
            let of = (books.last_entry_of(project, currency), books.residual_of(project, currency));
            if of != (last, residual) {
                return Err(format!("{project} {currency}: books {of:?}, model {:?}", (last, residual)));
            }
        }
        let ours = (books.ledger_opened(), books.closing_month());
        let theirs = (ledger.opened(), ledger.closing_month());
        if ours != theirs {
            return Err(format!("books {ours:?}, model {theirs:?}"));
        }
        if ledger.opened().is_none() {
            return Ok(());
        }
        let ours = (books.settled_through(), books.first_open_month());
        // The books count a month as open until its invoices are issued.
        let theirs = (ledger.settled(), ledger.closing_month().unwrap_or(ledger.first_open()));
        if ours != theirs {
            return Err(format!("books {ours:?}, model {theirs:?}"));
        }
        self.check_entries()?;
        self.check_drafts()?;
        self.check_owed()
    }

    fn check_entries(&mut self) -> Step<()> {
        let ids: Vec<_> = self.audit.ledger.by_hand().collect();
        for _ in 0..ids.len().min(4) {
            let id = *self.dice.pick(&ids);
            let found = self.books().entry(id).map_err(|error| error.to_string())?;
            let ours = found.as_ref().map(|entry| (entry.tenant, entry.project, entry.currency, &entry.legs));
            let theirs = self.audit.ledger.entry(id);
            // The books leave out what changes nothing.
            let changes = |entry: &&Entry| ours.is_some() || entry.legs.iter().any(|leg| leg.amount != Steps::ZERO);
            let theirs = theirs.filter(changes).map(|entry| (entry.tenant, entry.project, entry.currency, &entry.legs));
            if ours != theirs {
                return Err(format!("{id}\n  books {ours:?}\n  model {theirs:?}"));
            }
        }
        Ok(())
    }

    /// What the invoices of the open months would be.
    fn check_drafts(&mut self) -> Step<()> {
        let (books, ledger) = (self.books(), &self.audit.ledger);
        let open = books.first_open_month();
        for month in [open, open.next()] {
            let due: BTreeSet<(TenantNo, Currency)> = books.invoices_due(month).into_iter().collect();
            for (tenant, currency) in ledger.invoices_of(month) {
                if !due.contains(&(tenant, currency)) && !ledger.is_issued(tenant, currency, month) {
                    return Err(format!("{tenant} {currency}: no invoice is due for {month}"));
                }
            }
            for (tenant, currency) in due {
                let draft = books.invoice_draft(tenant, month, currency).map_err(|error| error.to_string())?;
                let Some(draft) = draft else { continue };
                same_lines(&draft.lines, &ledger.invoice_lines(tenant, currency, month))?;
                let taxes = ledger.taxes(tenant, currency, month);
                let mut ours = draft.taxes.clone();
                ours.retain(|line| line.posted != Steps::ZERO);
                if ours != taxes {
                    return Err(format!("{tenant} {currency} {month}: books {ours:?}, model {taxes:?}"));
                }
            }
        }
        Ok(())
    }

    /// What is owed of invoices, less what was paid too much, is the balance of the tenant.
    fn check_owed(&mut self) -> Step<()> {
        let balances = self.audit.ledger.balances();
        let heads: BTreeSet<_> = self.books().invoices().iter().map(|head| (head.tenant, head.currency)).collect();
        for (tenant, currency) in heads {
            let (owed, too_much) = self.books().owed(tenant, currency);
            let sum: i128 = owed.values().map(|steps| steps.0).sum::<i128>() - too_much.0;
            let balance = balances.get(&(Account::Invoiced(tenant), currency)).copied().unwrap_or(0);
            if sum != balance {
                return Err(format!("{tenant} {currency}: {owed:?} less {too_much} is not the balance {balance}"));
            }
        }
        Ok(())
    }

    /// The balances counted anew from all entries of the books.
    pub(crate) fn check_recount(&mut self) -> Step<()> {
        let counted = self.books().recount_balances().map_err(|error| error.to_string())?;
        let mut counted: BTreeMap<_, _> = counted.into_iter().map(|(of, sum)| (of, sum.0)).collect();
        counted.retain(|_, sum| *sum != 0);
        let theirs = self.audit.ledger.balances();
        if counted != theirs {
            return Err(format!("recounted\n  books {counted:?}\n  model {theirs:?}"));
        }
        self.audit.check_residuals().map_err(|violation| violation.to_string())
    }
}
