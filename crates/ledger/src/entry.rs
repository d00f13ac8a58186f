//! Entries: amounts on accounts that sum to zero.

use leasehold_model::body::{LedgerCorrected, LedgerShared, PostedLine, SharingMethod};
use leasehold_model::{Account, Item, Leg, ProjectNo, Steps};

/// Whether legs sum to zero. Legs whose sum cannot be computed do not.
pub fn sums_to_zero(legs: &[Leg]) -> bool {
    Steps::sum(legs.iter().map(|leg| leg.amount)) == Some(Steps::ZERO)
}

/// What a line of a posting books: a debit of the payer's receivable, and a credit of the revenue of its item.
pub fn line_legs(payer: ProjectNo, line: &PostedLine) -> [Leg; 2] {
    let revenue = match line.key.item {
        Item::Class(class) => Account::Revenue(class),
        Item::Unit(unit) => Account::UnitRevenue(unit),
    };
    [Leg { account: Account::Receivable(payer), amount: line.posted }, Leg { account: revenue, amount: -line.posted }]
}

/// What a share books: a debit of the project, or a credit of the owner, and on the other side the account of the runtime,
/// on which nothing is left. What is not billable is at the expense of the operator.
pub fn shared_legs(project: ProjectNo, shared: &LedgerShared) -> [Leg; 2] {
    let other = match shared.method {
        SharingMethod::NotBillable => Account::OperatorLoss,
        SharingMethod::None
        | SharingMethod::Owner
        | SharingMethod::Even
        | SharingMethod::ByUsage
        | SharingMethod::ByQuota
        | SharingMethod::Fixed
        | SharingMethod::ByTier => Account::SharedRuntime(shared.app_instance),
    };
    [
        Leg { account: Account::Receivable(project), amount: shared.booked },
        Leg { account: other, amount: -shared.booked },
    ]
}

/// What legs change of the receivable of a project.
pub fn payer_amount(legs: &[Leg], payer: ProjectNo) -> Option<Steps> {
    let own = legs.iter().filter(|leg| leg.account == Account::Receivable(payer));
    Steps::sum(own.map(|leg| leg.amount))
}

/// Whether the parts of a correction are entries, in their order: reversal, replacement, rounding. A reversal takes usage
/// back even if nothing was posted for it. A replacement by nothing and a rounding of zero book nothing.
pub fn correction_parts(corrected: &LedgerCorrected) -> [bool; 3] {
    let books = |legs: &[Leg]| legs.iter().any(|leg| leg.amount != Steps::ZERO);
    let usage = corrected.line.as_ref().is_some_and(|line| line.usage.0 != 0);
    [books(&corrected.reversal) || usage, books(&corrected.replacement), corrected.rounding != Steps::ZERO]
}
