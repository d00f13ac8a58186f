//! From a proof file to the evidence that [`crate::check`] judges. Every record must have its place: what the invoice does
//! not need is refused, so that a file cannot carry anything else along.

use super::{BadProofFile, ProofFile};
use crate::check::{Evidence, Evident};
use crate::list::{ClaimedNodes, CommonList, TenantList};
use leasehold_model::body::{InvoiceIssued, KeyRotated, PeriodStated};
use leasehold_model::codec::{DecodeError, Field};
use leasehold_model::{Body, Hash, InvoiceNo, Month, Record, TenantNo};

/// A record that a file must have, and has not, or has more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    Invoice,
    Statement,
    Closed,
    Cut,
}

/// A key that was replaced by another one, which both have signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotated {
    pub sequence: u64,
    pub old_key: [u8; 32],
    pub new_key: [u8; 32],
}

/// What is in a file. It is worth nothing before the root is compared with a signed one.
#[derive(Clone, Debug)]
pub struct Opened {
    pub evidence: Evidence,
    /// In the order of the journal.
    pub rotations: Vec<Rotated>,
    /// The sequences and hashes of the records that are no part of the evidence: the statement and the rotations.
    pub aside: Vec<(u64, Hash)>,
    /// The root to which the records lead.
    pub root: Hash,
}

impl ProofFile<'_> {
    /// The evidence in the file, and the root of a tree of this size to which it leads.
    ///
    /// # Errors
    /// When the file leads to no root, or its records are not those of one invoice.
    pub fn open(&self, tree_size: u64) -> Result<Opened, BadProofFile> {
        // It grows with what was decoded: a decoded record may need a hundred times the bytes that it has in the file.
        let mut all: Vec<Evident> = Vec::new();
        let root = self.root(tree_size, |record, hash| {
            all.push(Evident { sequence: record.sequence, hash, record });
            Ok::<_, BadProofFile>(())
        })?;
        let (issued_at, tenant, issued) = self.issued(&all)?;
        let (month, currency) = (issued.month, issued.currency);
        let statement = stated(&all, tenant, month)?;
        let bill = Bill { tenant, month, invoice: self.invoice, issued_at, statement };
        let mut records = Vec::with_capacity(all.len());
        let (mut counted, mut closed) = (0_u64, 0);
        let (mut rotations, mut aside) = (Vec::new(), Vec::new());
        for evident in all {
            match bill.place(&evident.record).ok_or(BadProofFile::Unneeded { sequence: evident.sequence })? {
                Place::Counted => counted += 1,
                Place::Statement => {
                    aside.push((evident.sequence, evident.hash));
                    continue;
                }
                Place::Rotation => {
                    rotations.push(rotated(&evident.record)?);
                    aside.push((evident.sequence, evident.hash));
                    continue;
                }
                Place::Closed => closed += 1,
                Place::Other => {}
            }
            records.push(evident);
        }
        if !records.iter().any(|evident| evident.sequence == statement.1.cut) {
            return Err(BadProofFile::Needed(Needed::Cut));
        }
        if closed != 1 {
            return Err(BadProofFile::Needed(Needed::Closed));
        }
        let (_, says) = statement;
        if says.records.count.checked_add(says.common.count).is_some_and(|stated| counted > stated) {
            return Err(BadProofFile::MoreThanStated { counted });
        }
        let part = |what| move |why| BadProofFile::Part { what, why };
        let common_at_start = CommonList::from_bytes(self.lists.common).map_err(part("the common list"))?;
        check_classes(&common_at_start, &records)?;
        let evidence = Evidence {
            tenant,
            month,
            currency,
            statement,
            common_at_start,
            list_at_start: TenantList::from_bytes(self.lists.tenant).map_err(part("the tenant's list"))?,
            claimed_nodes: ClaimedNodes::from_bytes(self.lists.claimed_nodes).map_err(part("the list of nodes"))?,
            records,
        };
        Ok(Opened { evidence, rotations, aside, root })
    }

    /// Checks that the journal at the earlier size, if the file has one, is the beginning of the one that is signed.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_growth(&self, tree_size: u64, root: &Hash) -> Result<(), BadProofFile> {
        let Some(growth) = &self.growth else { return Ok(()) };
        growth.verify(tree_size, root).map_err(|_| BadProofFile::NotGrown { from: growth.from })
    }

    /// The record of the invoice, and whose it is.
    fn issued(&self, all: &[Evident]) -> Result<(u64, TenantNo, InvoiceIssued), BadProofFile> {
        let mut found = all.iter().filter_map(|evident| {
            let Body::InvoiceIssued(issued) = &evident.record.body else { return None };
            let tenant = evident.record.identity.tenant?;
            (issued.number == self.invoice).then(|| (evident.sequence, tenant, issued.clone()))
        });
        match (found.next(), found.next()) {
            (Some(issued), None) => Ok(issued),
            _ => Err(BadProofFile::Needed(Needed::Invoice)),
        }
    }
}

/// No record of an engine has a class that cannot be divided into units, and no usage can be computed for one.
fn check_classes(common: &CommonList, records: &[Evident]) -> Result<(), BadProofFile> {
    let listed = common.classes.iter().all(|(_, spec)| spec.check().is_ok());
    let empty = |evident: &&Evident| matches!(&evident.record.body, Body::ClassPut(put) if put.spec.check().is_err());
    match records.iter().find(empty) {
        Some(evident) => Err(BadProofFile::Unneeded { sequence: evident.sequence }),
        None if listed => Ok(()),
        None => {
            Err(BadProofFile::Part { what: "the common list", why: DecodeError::Forbidden("a class without quanta") })
        }
    }
}

/// Both keys of a rotation are its signers; that their signatures are right is checked with the records.
fn rotated(record: &Record) -> Result<Rotated, BadProofFile> {
    let sequence = record.sequence;
    if let Body::KeyRotated(KeyRotated { old_key, new_key }) = record.body
        && record.signers.as_slice() == [old_key, new_key]
    {
        return Ok(Rotated { sequence, old_key, new_key });
    }
    Err(BadProofFile::BadRotation { sequence })
}

fn stated(all: &[Evident], tenant: TenantNo, month: Month) -> Result<(u64, PeriodStated), BadProofFile> {
    let mut found = all.iter().filter_map(|evident| {
        let Body::PeriodStated(stated) = &evident.record.body else { return None };
        let its_own = evident.record.identity.tenant == Some(tenant) && stated.month == month;
        its_own.then_some((evident.sequence, *stated))
    });
    match (found.next(), found.next()) {
        (Some(stated), None) => Ok(stated),
        _ => Err(BadProofFile::Needed(Needed::Statement)),
    }
}

/// Which records belong to a bill.
#[derive(Clone, Copy, Debug)]
pub struct Bill {
    pub tenant: TenantNo,
    pub month: Month,
    /// The invoice, and the sequence of its record.
    pub invoice: InvoiceNo,
    pub issued_at: u64,
    /// The statement and its sequence.
    pub statement: (u64, PeriodStated),
}

/// What a record is in a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the range of the month: it has to be one of those that the statement counts.
    Counted,
    Statement,
    /// The end of the month.
    Closed,
    /// A rotation of the signing key, anywhere in the journal.
    Rotation,
    /// The cuts of the month and of the one before, and what comes between the cut and the invoice.
    Other,
}

impl Bill {
    /// The place of a record; `None` if it has none in the proof. In the range of the month, the fold decides whose a
    /// record is.
    pub fn place(&self, record: &Record) -> Option<Place> {
        let sequence = record.sequence;
        let (stated_at, says) = self.statement;
        let of_tenant = record.identity.tenant == Some(self.tenant);
        let of_month = |body: &Body, month: Month| matches!(body, Body::PeriodClosing(of) if of.month == month);
        if matches!(record.body, Body::KeyRotated(_)) && record.identity.tenant.is_none() {
            return Some(Place::Rotation);
        }
        if sequence < says.from {
            return None;
        }
        if sequence < says.cut {
            let before = of_month(&record.body, self.month.previous());
            return Some(if before { Place::Other } else { Place::Counted });
        }
        if sequence == says.cut {
            return of_month(&record.body, self.month).then_some(Place::Other);
        }
        if sequence <= self.issued_at {
            return of_tenant.then_some(Place::Other);
        }
        if sequence == stated_at {
            return Some(Place::Statement);
        }
        if let Body::PrepaidApplied(applied) = &record.body {
            return (of_tenant && applied.invoice == self.invoice).then_some(Place::Other);
        }
        let closed = matches!(&record.body, Body::PeriodClosed(closed) if closed.month == self.month);
        closed.then_some(Place::Closed)
    }
}
