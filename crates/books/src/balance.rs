//! The books as of one record, for those who count again from the records (`leasehold-scrub`).

use crate::ask::{Dim, Question};
use crate::chunk::{CHUNK_ROWS, Depth};
use crate::facts::{Books, BooksError};
use crate::row::Row;
use leasehold_meter::{QuantaNs, Window};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, ClassNo, Instant, Steps, TenantNo};
use std::collections::BTreeMap;

/// Totals at one record. It is small: one line for each tenant and class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The number of records that the books had processed.
    pub size: u64,
    /// The stamp of the last one; amounts are up to there.
    pub stamp: Instant,
    /// Rows of closed leases, and of idle capacity on claimed nodes.
    pub closed: u64,
    /// What each tenant held of each class since the beginning, idle capacity of its claims included.
    pub held: Vec<(TenantNo, ClassNo, QuantaNs)>,
    /// Of that, idle capacity of claims that are not released.
    pub idle: Vec<(TenantNo, ClassNo, QuantaNs)>,
    /// The balances of the ledger, without those that are zero.
    pub accounts: Vec<(Account, Currency, Steps)>,
}

impl Books {
    /// The totals at the last record that was applied.
    pub fn balance(&self) -> Result<Balance, BooksError> {
        let stamp = self.last_stamp;
        let usage = self.usage(&Question::over(Window::new(Instant(0), stamp), &[Dim::Tenant]))?;
        let tenant = |key: u64| TenantNo(u32::try_from(key).expect("the number of a tenant"));
        let held = usage.lines().map(|line| (tenant(line.key[0]), line.class, line.amount)).collect();
        let mut idle: BTreeMap<(TenantNo, ClassNo), QuantaNs> = BTreeMap::new();
        self.idle_rows(stamp, false, |row| {
            let amount = QuantaNs::from(row.quanta) * QuantaNs::from(row.held.length().0);
            *idle.entry((row.tenant, row.class)).or_default() += amount;
        });
        let idle = idle.into_iter().map(|((tenant, class), amount)| (tenant, class, amount)).collect();
        let accounts = self.account_balances().filter(|(_, _, balance)| *balance != Steps::ZERO).collect();
        self.sound(Balance { size: self.cursor, stamp, closed: self.closed(), held, idle, accounts })
    }

    /// Some rows in the order in which they were closed, from this one on; none at the end.
    pub fn closed_rows(&self, first: u64) -> Result<Vec<Row>, BooksError> {
        let place = usize::try_from(first).unwrap_or(usize::MAX);
        let (chunk, row) = (place / CHUNK_ROWS, place % CHUNK_ROWS);
        match chunk < self.chunks.len() {
            true => Ok(self.chunk(chunk, Depth::Lives)?.rows().skip(row).collect()),
            false if chunk == self.chunks.len() => Ok(self.tail.get(row..).unwrap_or_default().to_vec()),
            false => Ok(Vec::new()),
        }
    }
}
