//! Shares of what a control plane cost (SEMANTICS 13): the pool, and what a share books.

use super::entry::Entry;
use super::{Ledger, payer_of};
use crate::violation::{Checked, demand};
use leasehold_model::body::{LedgerShared, SharingMethod};
use leasehold_model::ledger::{Account, EntryId, Month};
use leasehold_model::rate::Currency;
use leasehold_model::{AppInstanceNo, ProjectNo, Record};
use std::collections::BTreeSet;

impl Ledger {
    /// What the control plane of an instance cost its owner in a month: lines of the month that were posted in it, with
    /// what was corrected of them in it.
    pub fn pool(&self, app: AppInstanceNo, owner: ProjectNo, currency: Currency, month: Month) -> i128 {
        // What a correction rounds belongs to the line that it corrects.
        let line_of = |id: &EntryId, entry: &Entry| {
            let first = self.entries.get(&EntryId { position: 0, ..*id }).filter(|_| entry.is_correction);
            entry.line.clone().or_else(|| first.and_then(|first| first.line.clone()))
        };
        let is_in = |(id, entry): &(&EntryId, &Entry)| {
            let of_control_plane =
                |line: &super::entry::Line| line.key.control_plane && line.key.app_instance == Some(app);
            entry.project == Some(owner)
                && entry.currency == currency
                && entry.months == Some((month, month))
                && line_of(id, entry).as_ref().is_some_and(of_control_plane)
        };
        self.entries.iter().filter(is_in).map(|(_, entry)| entry.owed_by(owner)).sum()
    }

    /// The months that are not closed in which the control plane of an instance cost something.
    pub(crate) fn open_pools(&self, app: AppInstanceNo, owner: ProjectNo) -> BTreeSet<Month> {
        let is_open = |month: Month| month >= self.first_open || self.closing.is_some_and(|(of, _)| of == month);
        let own = self.entries.values().filter(|entry| entry.project == Some(owner));
        let booked = own.filter_map(|entry| Some((entry.months?.0, entry.currency)));
        let booked: BTreeSet<(Month, Currency)> = booked.filter(|(month, _)| is_open(*month)).collect();
        let costs = |(month, currency): (Month, Currency)| self.pool(app, owner, currency, month) != 0;
        booked.into_iter().filter(|of| costs(*of)).map(|(month, _)| month).collect()
    }

    /// Whether the cost of an instance was shared for a month.
    pub fn is_shared(&self, app: AppInstanceNo, currency: Currency, month: Month) -> bool {
        self.shared.contains(&(app, currency, month))
    }

    /// A share is a link of the payer's chain like a posting. Whether it is the right one is not asked here.
    pub(crate) fn shared(&mut self, record: &Record, shared: &LedgerShared) -> Checked {
        let (tenant, project) = payer_of(record)?;
        let LedgerShared { app_instance, owner, month, currency, .. } = *shared;
        let closing = self.closing.map(|(month, _)| month);
        demand!(closing == Some(month), "period-closing", "{month} is not being closed");
        let invoiced = self.invoices.iter().find(|one| one.month == month);
        demand!(invoiced.is_none(), "shares", "there is an invoice of {month}");
        let partial = self.payers.iter().find(|(_, payer)| payer.partial.is_some());
        demand!(partial.is_none(), "posting-incomplete", "{partial:?}");
        let pool = self.pool(app_instance, owner, currency, month);
        demand!(shared.pool.0 == pool, "pool", "{} instead of {pool}", shared.pool.0);
        let payer = self.payers.entry((project, currency)).or_default();
        demand!(shared.previous == payer.last, "stale-posting", "{:?} after {:?}", shared.previous, payer.last);
        payer.last = Some(record.sequence);
        let other = match shared.method {
            SharingMethod::NotBillable => Account::OperatorLoss,
            SharingMethod::None
            | SharingMethod::Owner
            | SharingMethod::Even
            | SharingMethod::ByUsage
            | SharingMethod::ByQuota
            | SharingMethod::Fixed
            | SharingMethod::ByTier => Account::SharedRuntime(app_instance),
        };
        let legs = [(Account::Receivable(project), shared.booked), (other, -shared.booked)];
        let entry = Entry { months: Some((month, month)), ..Entry::plain(tenant, Some(project), currency, &legs) };
        self.entries.insert(EntryId { sequence: record.sequence, position: 0 }, entry);
        self.shared.insert((app_instance, currency, month));
        Ok(())
    }
}
