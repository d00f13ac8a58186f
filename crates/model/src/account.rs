//! The accounts of the ledger (SEMANTICS 12).

use crate::codec::{DecodeError, Field, Reader};
use crate::id::{AppInstanceNo, ClassNo, ProjectNo, TenantNo, UnitNo};
use crate::ledger::Steps;
use crate::{fields, words};

words! {
    /// The kinds of accounts.
    pub enum AccountKind {
        /// What a project owes and was not invoiced yet.
        Receivable "receivable",
        /// What a tenant owes by its invoices.
        Invoiced "invoiced",
        /// Amounts that were booked by hand for or against a project.
        Adjustments "adjustments",
        /// What the platform earned with a class or a usage unit.
        Revenue "revenue",
        /// Rounding to six decimals, and to the decimals of a currency on invoices.
        Rounding "rounding",
        /// Tax that was invoiced.
        Tax "tax",
        /// Payments that were received.
        CashClearing "cash_clearing",
        /// What the operator bears.
        OperatorLoss "operator_loss",
        /// What a tenant or a project paid in advance and did not use yet.
        Prepaid "prepaid",
        /// Prepaid credit that lapsed.
        ExpiredCredits "expired_credits",
        /// What the projects that share a runtime take over from its owner; nothing is left on it.
        SharedRuntime "shared_runtime",
    }
}

/// An account of the ledger, in one currency. A positive amount is a debit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// What a project owes and was not invoiced yet.
    Receivable(ProjectNo),
    /// What a tenant owes by its invoices.
    Invoiced(TenantNo),
    /// Amounts that were booked by hand for or against a project.
    Adjustments(ProjectNo),
    /// What the platform earned with a class.
    Revenue(ClassNo),
    /// Rounding to steps, and to the decimals of a currency on invoices.
    Rounding,
    /// Tax that was invoiced.
    Tax,
    /// Payments that were received.
    CashClearing,
    /// What the operator bears.
    OperatorLoss,
    /// What a tenant paid in advance and did not use yet.
    TenantPrepaid(TenantNo),
    /// What was paid in advance for a project and is not used yet.
    ProjectPrepaid(ProjectNo),
    /// Prepaid credit that lapsed.
    ExpiredCredits,
    /// What the platform earned with a usage unit.
    UnitRevenue(UnitNo),
    /// What the projects that share a runtime take over from its owner; nothing is left on it.
    SharedRuntime(AppInstanceNo),
}

impl Account {
    /// The project whose account it is.
    pub const fn project(self) -> Option<ProjectNo> {
        match self {
            Self::Receivable(project) | Self::Adjustments(project) | Self::ProjectPrepaid(project) => Some(project),
            Self::Invoiced(_)
            | Self::Revenue(_)
            | Self::Rounding
            | Self::Tax
            | Self::CashClearing
            | Self::OperatorLoss
            | Self::TenantPrepaid(_)
            | Self::ExpiredCredits
            | Self::UnitRevenue(_)
            | Self::SharedRuntime(_) => None,
        }
    }

    /// The word for its kind.
    pub const fn kind(self) -> AccountKind {
        match self {
            Self::Receivable(_) => AccountKind::Receivable,
            Self::Invoiced(_) => AccountKind::Invoiced,
            Self::Adjustments(_) => AccountKind::Adjustments,
            Self::Revenue(_) | Self::UnitRevenue(_) => AccountKind::Revenue,
            Self::Rounding => AccountKind::Rounding,
            Self::Tax => AccountKind::Tax,
            Self::CashClearing => AccountKind::CashClearing,
            Self::OperatorLoss => AccountKind::OperatorLoss,
            Self::TenantPrepaid(_) | Self::ProjectPrepaid(_) => AccountKind::Prepaid,
            Self::ExpiredCredits => AccountKind::ExpiredCredits,
            Self::SharedRuntime(_) => AccountKind::SharedRuntime,
        }
    }

    pub const fn word(self) -> &'static str {
        self.kind().word()
    }
}

impl Field for Account {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Receivable(project) => {
                out.push(1);
                project.put(out);
            }
            Self::Invoiced(tenant) => {
                out.push(2);
                tenant.put(out);
            }
            Self::Adjustments(project) => {
                out.push(3);
                project.put(out);
            }
            Self::Revenue(class) => {
                out.push(4);
                class.put(out);
            }
            Self::Rounding => out.push(5),
            Self::Tax => out.push(6),
            Self::CashClearing => out.push(7),
            Self::OperatorLoss => out.push(8),
            Self::TenantPrepaid(tenant) => {
                out.push(9);
                tenant.put(out);
            }
            Self::ProjectPrepaid(project) => {
                out.push(10);
                project.put(out);
            }
            Self::ExpiredCredits => out.push(11),
            Self::UnitRevenue(unit) => {
                out.push(12);
                unit.put(out);
            }
            Self::SharedRuntime(app_instance) => {
                out.push(13);
                app_instance.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::Receivable(Field::get(r)?),
            2 => Self::Invoiced(Field::get(r)?),
            3 => Self::Adjustments(Field::get(r)?),
            4 => Self::Revenue(Field::get(r)?),
            5 => Self::Rounding,
            6 => Self::Tax,
            7 => Self::CashClearing,
            8 => Self::OperatorLoss,
            9 => Self::TenantPrepaid(Field::get(r)?),
            10 => Self::ProjectPrepaid(Field::get(r)?),
            11 => Self::ExpiredCredits,
            12 => Self::UnitRevenue(Field::get(r)?),
            13 => Self::SharedRuntime(Field::get(r)?),
            code => return Err(DecodeError::BadCode { field: "account", code: u64::from(code) }),
        })
    }
}

fields! {
    /// One side of an entry.
    #[derive(Copy)]
    pub struct Leg { pub account: Account, pub amount: Steps }
}
