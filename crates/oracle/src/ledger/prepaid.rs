//! Entries of prepaid credit (SEMANTICS 12): it is paid, it lapses, and it pays invoices.

use super::Ledger;
use super::entry::Entry;
use crate::violation::{Checked, demand, found};
use leasehold_model::body::{PrepaidApplied, PrepaidLapsed, PrepaidToppedUp};
use leasehold_model::ledger::{Account, EntryId, Steps};
use leasehold_model::rate::Currency;
use leasehold_model::{CreditSource, Record};

impl Ledger {
    fn prepaid_entry(
        &mut self,
        record: &Record,
        currency: Currency,
        amount: Steps,
        others: &[(Account, Steps)],
    ) -> Checked {
        let tenant = found!(record.identity.tenant, "payer", "prepaid credit without a tenant");
        let project = record.identity.project;
        let own = project.map_or(Account::TenantPrepaid(tenant), Account::ProjectPrepaid);
        let legs: Vec<(Account, Steps)> = [(own, amount)].into_iter().chain(others.iter().copied()).collect();
        let sum: i128 = legs.iter().map(|(_, amount)| amount.0).sum();
        demand!(sum == 0, "unbalanced", "{legs:?}");
        let id = EntryId { sequence: record.sequence, position: 0 };
        self.entries.insert(id, Entry::plain(tenant, project, currency, &legs));
        Ok(())
    }

    pub(crate) fn prepaid_topped_up(&mut self, record: &Record, put: &PrepaidToppedUp) -> Checked {
        let from = match put.source {
            CreditSource::Paid => Account::CashClearing,
            CreditSource::Granted => Account::OperatorLoss,
        };
        self.prepaid_entry(record, put.currency, -put.amount, &[(from, put.amount)])
    }

    pub(crate) fn prepaid_lapsed(&mut self, record: &Record, lapsed: &PrepaidLapsed) -> Checked {
        self.prepaid_entry(record, lapsed.currency, lapsed.amount, &[(Account::ExpiredCredits, -lapsed.amount)])
    }

    /// The invoice is lower by what is credited; the rest is rounding.
    pub(crate) fn prepaid_applied(&mut self, record: &Record, applied: &PrepaidApplied) -> Checked {
        let tenant = found!(record.identity.tenant, "payer", "prepaid credit without a tenant");
        let rounding = Steps(applied.credited.0 - applied.amount.0);
        let others = [(Account::Invoiced(tenant), -applied.credited), (Account::Rounding, rounding)];
        self.prepaid_entry(record, applied.currency, applied.amount, &others)
    }
}
