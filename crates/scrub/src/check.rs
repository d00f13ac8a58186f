//! Comparing the books, as of the record at which the pass fixed them, with what was counted from the records.

use crate::differ::differences;
use crate::entries::Accounts;
use crate::pass::Finding;
use crate::tally::{Closed, Stuck, Sums, Tally};
use leasehold_books::{Balance, BooksError, End, Row};
use leasehold_meter::QuantaNs;
use leasehold_model::rate::Currency;
use leasehold_model::{Account, ClassNo, Instant, LeaseNo, NodeNo, Record, Steps, TenantNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Access to single rows of the books. Each call may hold a lock, so that none asks for much.
pub trait BookRows {
    /// Closed rows in the order of their closing, from this one on: some, or none at the end.
    fn closed_rows(&self, first: u64) -> Result<Vec<Row>, BooksError>;
    /// The leases with these numbers, which are sorted, as a request would find them.
    fn leases_of(&self, numbers: &[LeaseNo]) -> Result<Vec<Row>, BooksError>;
}

/// How far the books were compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BooksChecked {
    /// The comparison is under way.
    Comparing,
    /// All closed leases and all totals were compared.
    Compared,
    /// They were not, or not to the end, and why.
    GivenUp(String),
}

/// What was corrected in the rows so far.
#[derive(Default)]
pub(crate) struct Corrections {
    /// The corrected ends of closed leases.
    pub(crate) ends: BTreeMap<u64, Instant>,
    /// Rows of idle capacity of claims whose ends were corrected, with their ends before that.
    pub(crate) idle: Vec<IdleRow>,
}

leasehold_model::fields! {
    #[derive(Copy)]
    pub struct IdleRow {
        pub node: NodeNo,
        pub tenant: TenantNo,
        pub class: ClassNo,
        pub quanta: u64,
        pub from: Instant,
        pub to: Instant,
    }
}

/// Leases that wait to be compared.
const PENDING_MAX: usize = 1024;

/// The comparison while it runs.
pub(crate) struct Check {
    pub(crate) balance: Balance,
    pub(crate) tally: Tally,
    /// The next row of the books.
    pub(crate) next_row: u64,
    /// Idle capacity of claims in the rows so far, as it was before corrections.
    pub(crate) idle: Sums,
    pub(crate) corrections: Corrections,
    pub(crate) state: BooksChecked,
    rows: VecDeque<Row>,
    pending: Vec<Closed>,
}

impl Check {
    pub(crate) fn new(balance: Balance) -> Self {
        Self::at(balance, Tally::default(), (0, Sums::new(), Corrections::default()), BooksChecked::Comparing)
    }

    /// Where an earlier pass stood.
    pub(crate) fn at(
        balance: Balance,
        tally: Tally,
        (next_row, idle, corrections): (u64, Sums, Corrections),
        state: BooksChecked,
    ) -> Self {
        Self { balance, tally, next_row, idle, corrections, state, rows: VecDeque::new(), pending: Vec::new() }
    }

    fn is_comparing(&self) -> bool {
        self.state == BooksChecked::Comparing
    }

    /// Ends the comparison without a result.
    pub(crate) fn give_up(&mut self, why: impl Into<String>) {
        if self.is_comparing() {
            self.state = BooksChecked::GivenUp(why.into());
            self.tally = Tally { closed: self.tally.closed, ..Tally::default() };
            self.pending = Vec::new();
            self.rows = VecDeque::new();
        }
    }

    /// Counts the next record, if the books had processed it when the pass began.
    pub(crate) fn take(&mut self, record: &Record) -> Result<(), Finding> {
        if !self.is_comparing() || record.sequence >= self.balance.size {
            return Ok(());
        }
        match self.tally.take(record, &mut self.pending) {
            Ok(()) => Ok(()),
            Err(Stuck::TooManyOpen) => {
                self.give_up("more leases were open at once than fit the memory of a scrub");
                Ok(())
            }
            Err(Stuck::Contradiction(what)) => {
                self.give_up(format!("record {} contradicts those before it", record.sequence));
                Err(Finding::Record { sequence: record.sequence, what })
            }
        }
    }

    /// Compares the leases that were closed, once there are enough, or all of them.
    pub(crate) fn compare(&mut self, all: bool, books: &dyn BookRows) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.is_comparing()
            && (all || self.pending.len() >= PENDING_MAX || self.tally.corrected.len() >= PENDING_MAX)
        {
            let pending = std::mem::take(&mut self.pending);
            let compared = self.compare_rows(&pending, books, &mut found);
            let compared = compared.and_then(|()| self.compare_corrections(books, &mut found));
            if let Err(error) = compared {
                self.unreadable(&error, &mut found);
            }
        }
        found
    }

    /// The books cannot be read. If they are damaged they are being rebuilt, and the next pass compares them.
    fn unreadable(&mut self, error: &BooksError, found: &mut Vec<Finding>) {
        self.give_up(error.to_string());
        if *error == BooksError::Damaged {
            found.push(Finding::Books {
                what: "an entry of the file is damaged, or was not written by the daemon".into(),
            });
        }
    }

    fn compare_rows(
        &mut self,
        pending: &[Closed],
        books: &dyn BookRows,
        found: &mut Vec<Finding>,
    ) -> Result<(), BooksError> {
        let mut compared = Vec::with_capacity(pending.len());
        for closed in pending {
            let Some(row) = self.next_lease(books)? else {
                self.misplaced(format!("lease-{} was closed and is not in the books", closed.number.0), found);
                return Ok(());
            };
            if row.lease != closed.number {
                let what = format!("they contain lease-{} where lease-{} was closed", row.lease.0, closed.number.0);
                self.misplaced(what, found);
                return Ok(());
            }
            found.extend(differences(&row, closed).into_iter().map(|difference| Finding::Lease {
                lease: closed.number,
                figure: difference.figure,
                books: difference.books,
                records: difference.records,
            }));
            compared.push(row);
        }
        // As a request finds them, by their numbers.
        compared.sort_unstable_by_key(|row| row.lease);
        let numbers: Vec<LeaseNo> = compared.iter().map(|row| row.lease).collect();
        let by_number = books.leases_of(&numbers)?;
        if by_number != compared {
            let differs = |(row, found): &(&Row, &Row)| row != found;
            let lease = compared.iter().zip(&by_number).find(differs).map(|(row, _)| row.lease);
            let lease = lease.or_else(|| numbers.get(by_number.len()).copied()).unwrap_or(LeaseNo(0));
            found.push(Finding::Books { what: format!("their index does not lead to the row of lease-{}", lease.0) });
        }
        Ok(())
    }

    /// After a row that is missing or too many, every later one would differ.
    fn misplaced(&mut self, what: String, found: &mut Vec<Finding>) {
        self.give_up(format!("from row {} on the books were not compared: {what}", self.next_row));
        found.push(Finding::Books { what });
    }

    /// The next row that is a lease; idle capacity of claims is summed up on the way.
    fn next_lease(&mut self, books: &dyn BookRows) -> Result<Option<Row>, BooksError> {
        while self.next_row < self.balance.closed {
            if self.rows.is_empty() {
                self.rows = books.closed_rows(self.next_row)?.into();
            }
            let Some(row) = self.rows.pop_front() else { return Ok(None) };
            self.next_row += 1;
            if row.end != End::Idle {
                return Ok(Some(row));
            }
            let to = row.end_before.unwrap_or(row.held.to);
            let amount = QuantaNs::from(row.quanta) * QuantaNs::from(to.since(row.held.from).0);
            *self.idle.entry((row.tenant, row.class)).or_default() += amount;
            if row.end_before.is_some() {
                let Row { node, tenant, class, quanta, .. } = row;
                self.corrections.idle.push(IdleRow { node, tenant, class, quanta, from: row.held.from, to });
            }
        }
        Ok(None)
    }

    /// Counts and compares the ends of closed leases that were corrected later.
    fn compare_corrections(&mut self, books: &dyn BookRows, found: &mut Vec<Finding>) -> Result<(), BooksError> {
        if !self.is_comparing() {
            return Ok(());
        }
        for (lease, last_seen) in std::mem::take(&mut self.tally.corrected) {
            let Some(row) = books.leases_of(&[lease])?.pop() else {
                found.push(Finding::Books { what: format!("lease-{} was corrected and is not in the books", lease.0) });
                continue;
            };
            let before = self.corrections.ends.get(&lease.0).copied();
            let before = before.or(row.end_before).unwrap_or(row.held.to);
            let to = before.min(last_seen).max(row.held.from);
            let less = QuantaNs::from(row.quanta) * QuantaNs::from(before.since(to).0);
            let sum = self.tally.ended.entry((row.tenant, row.class)).or_default();
            *sum = sum.saturating_sub(less);
            self.corrections.ends.insert(lease.0, to);
            // It may have been corrected again, after the record at which the books were fixed.
            if row.held.to > to {
                let (books, records) = (row.held.to.to_string(), to.to_string());
                found.push(Finding::Lease { lease, figure: "held_until", books, records });
            }
        }
        Ok(())
    }

    /// Subtracts the idle capacity of claims that ended after their nodes were last seen.
    fn subtract_corrected_claims(&mut self) {
        for (node, (last_seen, lost)) in std::mem::take(&mut self.tally.corrected_claims) {
            // What was claimed after the node had returned is not meant.
            for row in self.corrections.idle.iter_mut().filter(|row| row.node == node && row.from < lost) {
                let to = row.to.min(last_seen).max(row.from);
                let less = QuantaNs::from(row.quanta) * QuantaNs::from(row.to.since(to).0);
                let sum = self.idle.entry((row.tenant, row.class)).or_default();
                *sum = sum.saturating_sub(less);
                row.to = to;
            }
        }
    }

    /// All records that the books had processed were counted: compares what is left, and the totals.
    pub(crate) fn finish(&mut self, books: &dyn BookRows) -> Vec<Finding> {
        let mut found = self.compare(true, books);
        if !self.is_comparing() {
            return found;
        }
        match self.next_lease(books) {
            Err(error) => {
                self.unreadable(&error, &mut found);
                return found;
            }
            Ok(Some(row)) => {
                self.misplaced(format!("lease-{} is in the books and was never closed", row.lease.0), &mut found);
                return found;
            }
            Ok(None) => {}
        }
        self.subtract_corrected_claims();
        found.extend(self.totals());
        found.extend(self.balances());
        self.state = BooksChecked::Compared;
        found
    }

    /// Balances of the ledger that differ.
    fn balances(&self) -> Vec<Finding> {
        let books = self.balance.accounts.iter().map(|(account, currency, balance)| ((*account, *currency), balance.0));
        let books: Accounts = books.collect();
        let counted = &self.tally.accounts;
        let keys: BTreeSet<_> = books.keys().chain(counted.keys()).copied().collect();
        let balance = |sums: &Accounts, key| Steps(sums.get(key).copied().unwrap_or(0));
        let pairs = keys.iter().map(|key| (key, balance(&books, key), balance(counted, key)));
        let differing = pairs.filter(|(_, books, records)| books != records);
        let what = |((account, currency), books, records): (&(Account, Currency), Steps, Steps)| Finding::Books {
            what: format!("the balance of {account:?} in {currency} is {books}, but {records} by the records"),
        };
        differing.map(what).collect()
    }

    /// Totals that differ. The idle capacity of claims is not counted again: what the rows and the open claims say is
    /// added, so that both places in the books must agree.
    fn totals(&self) -> Vec<Finding> {
        let mut counted = self.tally.sums(self.balance.stamp);
        let idle = self.idle.iter().map(|(key, amount)| (*key, *amount));
        let open = self.balance.idle.iter().map(|(tenant, class, amount)| ((*tenant, *class), *amount));
        for (key, amount) in idle.chain(open) {
            *counted.entry(key).or_default() += amount;
        }
        let mut books: Sums = Sums::new();
        for (tenant, class, amount) in &self.balance.held {
            *books.entry((*tenant, *class)).or_default() += amount;
        }
        let mut keys: Vec<(TenantNo, ClassNo)> = counted.keys().chain(books.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let amount = |sums: &Sums, key| sums.get(key).copied().unwrap_or(0);
        let pairs = keys.iter().map(|key| (key, amount(&books, key), amount(&counted, key)));
        pairs
            .filter(|(_, books, records)| books != records)
            .map(|((tenant, class), books, records)| Finding::Total { tenant: *tenant, class: *class, books, records })
            .collect()
    }
}
