//! Prepaid credit in the books: what was added, lapsed and used, each an entry of the ledger.

use super::{Followed, LedgerBook, StoredBody};
use crate::facts::Books;
use leasehold_model::body::{PrepaidApplied, PrepaidLapsed, PrepaidToppedUp};
use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, CreditSource, Instant, InvoiceNo, Leg, ProjectNo, Record, Steps, TenantNo, fields};

/// What happened to prepaid credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrepaidEvent {
    ToppedUp(PrepaidToppedUp),
    Lapsed(PrepaidLapsed),
    Applied(PrepaidApplied),
}

impl PrepaidEvent {
    pub fn currency(&self) -> Currency {
        match self {
            Self::ToppedUp(body) => body.currency,
            Self::Lapsed(body) => body.currency,
            Self::Applied(body) => body.currency,
        }
    }
}

impl Field for PrepaidEvent {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::ToppedUp(body) => {
                out.push(1);
                body.put(out);
            }
            Self::Lapsed(body) => {
                out.push(2);
                body.put(out);
            }
            Self::Applied(body) => {
                out.push(3);
                body.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::ToppedUp(Field::get(r)?),
            2 => Self::Lapsed(Field::get(r)?),
            3 => Self::Applied(Field::get(r)?),
            code => return Err(DecodeError::BadCode { field: "prepaid event", code: u64::from(code) }),
        })
    }
}

fields! {
    /// An event with its record.
    pub struct PrepaidEntry {
        pub sequence: u64,
        pub at: Instant,
        pub tenant: TenantNo,
        /// None if the credit is the tenant's.
        pub project: Option<ProjectNo>,
        pub event: PrepaidEvent,
    }
}

/// What an event books.
pub(crate) fn prepaid_legs(tenant: TenantNo, project: Option<ProjectNo>, event: &PrepaidEvent) -> Vec<Leg> {
    let own = project.map_or(Account::TenantPrepaid(tenant), Account::ProjectPrepaid);
    let leg = |account, amount| Leg { account, amount };
    match event {
        PrepaidEvent::ToppedUp(topped) => {
            let from = match topped.source {
                CreditSource::Paid => Account::CashClearing,
                CreditSource::Granted => Account::OperatorLoss,
            };
            vec![leg(from, topped.amount), leg(own, -topped.amount)]
        }
        PrepaidEvent::Lapsed(lapsed) => vec![leg(own, lapsed.amount), leg(Account::ExpiredCredits, -lapsed.amount)],
        PrepaidEvent::Applied(applied) => {
            let rounding = Steps(applied.credited.0 - applied.amount.0);
            let all = [
                leg(own, applied.amount),
                leg(Account::Invoiced(tenant), -applied.credited),
                leg(Account::Rounding, rounding),
            ];
            all.into_iter().filter(|leg| leg.amount != Steps::ZERO).collect()
        }
    }
}

impl LedgerBook {
    pub(crate) fn prepaid(&mut self, record: &Record, event: PrepaidEvent) -> Followed {
        let tenant = record.identity.tenant.ok_or("prepaid credit without an owner")?;
        let project = record.identity.project;
        let legs = prepaid_legs(tenant, project, &event);
        self.book(event.currency(), &legs)?;
        self.prepaid.push(PrepaidEntry {
            sequence: record.sequence,
            at: record.stamp,
            tenant,
            project,
            event: event.clone(),
        });
        self.keep(record, tenant, StoredBody::Prepaid(event));
        self.entries += u64::from(!legs.is_empty());
        Ok(())
    }

    /// What prepaid credit pays of an invoice.
    pub(crate) fn prepaid_on(&self, invoice: InvoiceNo) -> Steps {
        let credited = self.prepaid.iter().filter_map(|entry| match &entry.event {
            PrepaidEvent::Applied(applied) if applied.invoice == invoice => Some(applied.credited.0),
            PrepaidEvent::Applied(_) | PrepaidEvent::ToppedUp(_) | PrepaidEvent::Lapsed(_) => None,
        });
        Steps(credited.sum())
    }
}

impl Books {
    /// Everything that was added to, lapsed of or paid from prepaid credit, in order.
    pub fn prepaid(&self) -> &[PrepaidEntry] {
        &self.ledger.prepaid
    }

    /// What prepaid credit pays of an invoice.
    pub fn prepaid_on(&self, invoice: InvoiceNo) -> Steps {
        self.ledger.prepaid_on(invoice)
    }
}
