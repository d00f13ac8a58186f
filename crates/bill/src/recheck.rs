//! Makes the statements of a journal again, and compares them with those that were sealed (ADR 25). Only tenants with an
//! invoice have one, each has one at most, and the end of the month counts them.
//!
//! The journal is read month by month: the range of a month begins before the cut of the month before it, so the records
//! between are read twice.

use crate::fold::{Contradiction, Fold};
use crate::found::Found;
use crate::statement::{Progress, Stated, Statements};
use leasehold_model::body::{PeriodClosed, PeriodStated};
use leasehold_model::{Body, Hash, Month, Record, TenantNo};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;

/// What is wrong with a statement, or with how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It differs from what the records say, in this field.
    Differs(&'static str),
    /// It is not about a tenant.
    NoTenant,
    /// The records in front of it say nothing about the tenant.
    UnknownTenant,
    /// The month has no cut before it.
    NoCut,
    /// The tenant has no invoice of the month before it.
    NoInvoice,
    /// The tenant has another one of the month.
    SecondOne,
    /// The month was closed before it.
    Closed,
    /// The end of the month counts another number of statements.
    Count { counted: u64, found: u64 },
    /// A record that it is about contradicts the ones before that.
    Contradicted { sequence: u64, why: Contradiction },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(what) => write!(f, "it differs from what the records say: {what}"),
            Self::NoTenant => f.write_str("it does not say whose statement it is"),
            Self::UnknownTenant => f.write_str("the records say nothing about its tenant"),
            Self::NoCut => f.write_str("no `period.closing` of its month precedes it"),
            Self::NoInvoice => f.write_str("no invoice of the month was issued to its tenant before it"),
            Self::SecondOne => f.write_str("its tenant has an earlier statement of the month"),
            Self::Closed => f.write_str("the month was closed before it"),
            Self::Count { counted, found } => {
                write!(f, "it counts {counted} statements of its month, and the journal has {found}")
            }
            Self::Contradicted { sequence, why } => write!(f, "record {sequence} cannot be one of a month: {why}"),
        }
    }
}

/// The first statement that is wrong, or why the journal could not be read.
#[derive(Debug)]
pub enum Failed<E> {
    Wrong {
        sequence: u64,
        wrong: Wrong,
    },
    Unread(E),
    /// More leases are open than the caller has memory for.
    TooManyOpen,
}

/// Takes a record and its hash, and says whether to go on.
pub type Visit<'a> = dyn FnMut(&Record, &Hash) -> ControlFlow<()> + 'a;

/// How often the number of open leases is looked at.
const LOOK_EVERY: u64 = 1 << 16;

/// Makes the statements that were found again, with at most so many open leases at a time. `read` reads the journal from a
/// sequence on, until it is told to stop. Returns how many statements were compared.
pub fn recheck<E>(
    found: &Found,
    open_max: usize,
    mut read: impl FnMut(u64, &mut Visit<'_>) -> Result<(), E>,
) -> Result<u64, Failed<E>> {
    let (mut fold, mut compared) = (Fold::new(), 0);
    for (month, of, first, last) in found.to_compare() {
        let mut of_month = Comparing {
            month,
            first,
            last,
            closed: of.closed.map(|(sequence, _)| sequence),
            making: None,
            stated: None,
            invoiced: BTreeSet::new(),
            compared: BTreeSet::new(),
            wrong: None,
        };
        let making = Statements::new(fold, month);
        let from = making.next_sequence();
        of_month.making = Some(making);
        let mut too_many = false;
        let read_all = read(from, &mut |record, hash| {
            let making = of_month.making.as_ref().filter(|_| record.sequence.is_multiple_of(LOOK_EVERY));
            too_many = making.is_some_and(|making| making.open_leases() > open_max);
            if too_many { ControlFlow::Break(()) } else { of_month.take(record, hash) }
        });
        read_all.map_err(Failed::Unread)?;
        if too_many {
            return Err(Failed::TooManyOpen);
        }
        if let Some((sequence, wrong)) = of_month.wrong {
            return Err(Failed::Wrong { sequence, wrong });
        }
        let stated = of_month.stated.ok_or(Failed::Wrong { sequence: first, wrong: Wrong::NoCut })?;
        compared += of_month.compared.len() as u64;
        fold = stated.fold_at_border;
    }
    Ok(compared)
}

struct Comparing {
    month: Month,
    first: u64,
    last: u64,
    /// The end of the month.
    closed: Option<u64>,
    /// Until the cut; then [`Self::stated`].
    making: Option<Statements>,
    stated: Option<Stated>,
    /// Who has an invoice of the month.
    invoiced: BTreeSet<TenantNo>,
    /// Whose statements were compared.
    compared: BTreeSet<TenantNo>,
    wrong: Option<(u64, Wrong)>,
}

impl Comparing {
    fn take(&mut self, record: &Record, hash: &Hash) -> ControlFlow<()> {
        if let Some(making) = &mut self.making {
            match making.take(record, hash) {
                Ok(Progress::Before | Progress::Within(_)) if record.sequence < self.first => {}
                Ok(Progress::Done) if record.sequence < self.first => {
                    self.stated = self.making.take().and_then(Statements::finish);
                }
                Ok(_) => return self.fail(self.first, Wrong::NoCut),
                Err(why) => return self.fail(self.first, Wrong::Contradicted { sequence: record.sequence, why }),
            }
            return ControlFlow::Continue(());
        }
        let mut right = Ok(());
        if let Body::InvoiceIssued(invoice) = &record.body
            && invoice.month == self.month
        {
            self.invoiced.extend(record.identity.tenant);
        } else if let Body::PeriodStated(sealed) = &record.body
            && sealed.month == self.month
        {
            right = self.compare(record, sealed);
        } else if let Body::PeriodClosed(closed) = &record.body
            && self.closed == Some(record.sequence)
        {
            right = self.count(closed);
        }
        if let Err(wrong) = right {
            return self.fail(record.sequence, wrong);
        }
        if record.sequence >= self.last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn fail(&mut self, sequence: u64, wrong: Wrong) -> ControlFlow<()> {
        self.wrong = Some((sequence, wrong));
        ControlFlow::Break(())
    }

    /// Statements that precede the end of the month are all that it counts; none follows.
    fn count(&self, closed: &PeriodClosed) -> Result<(), Wrong> {
        let (counted, found) = (closed.statements.unwrap_or(0), self.compared.len() as u64);
        if counted == found { Ok(()) } else { Err(Wrong::Count { counted, found }) }
    }

    fn compare(&mut self, record: &Record, sealed: &PeriodStated) -> Result<(), Wrong> {
        let tenant = record.identity.tenant.ok_or(Wrong::NoTenant)?;
        self.compare_fields(tenant, sealed)?;
        if self.closed.is_some_and(|closed| closed < record.sequence) {
            return Err(Wrong::Closed);
        }
        if !self.invoiced.contains(&tenant) {
            return Err(Wrong::NoInvoice);
        }
        if self.compared.insert(tenant) { Ok(()) } else { Err(Wrong::SecondOne) }
    }

    fn compare_fields(&self, tenant: TenantNo, sealed: &PeriodStated) -> Result<(), Wrong> {
        let stated = self.stated.as_ref().ok_or(Wrong::NoCut)?;
        let made = &stated.tenants.get(&tenant).ok_or(Wrong::UnknownTenant)?.statement;
        let fields = [
            ("the first record of the range", sealed.from == made.from),
            ("the first record of the next range", sealed.border == made.border),
            ("the cut", sealed.cut == made.cut),
            ("the count of the tenant's records", sealed.records.count == made.records.count),
            ("the root of the tenant's records", sealed.records.root == made.records.root),
            ("the count of the common records", sealed.common.count == made.common.count),
            ("the root of the common records", sealed.common.root == made.common.root),
            ("the tenant's list at the start", sealed.list_at_start == made.list_at_start),
            ("the tenant's list at the border", sealed.list_at_border == made.list_at_border),
            ("the common list at the start", sealed.common_at_start == made.common_at_start),
            ("the common list at the border", sealed.common_at_border == made.common_at_border),
            ("the nodes that the tenant claimed", sealed.claimed_nodes == made.claimed_nodes),
        ];
        match fields.into_iter().find(|(_, equal)| !equal) {
            Some((what, _)) => Err(Wrong::Differs(what)),
            // The fields are all that there is; should one be added, it counts.
            None if sealed != made => Err(Wrong::Differs("a field of a later version")),
            None => Ok(()),
        }
    }
}
