//! The figures of an invoice: rounding to what can be paid, and tax.

use crate::{Amount, Overflow};
use leasehold_model::Steps;
use leasehold_model::body::TaxLine;
use leasehold_model::ledger::{STEP_DECIMALS, currency_decimals};
use leasehold_model::rate::{BILLION, Currency, Decimal};

/// What was posted with one tax rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taxed {
    pub rate: Decimal,
    pub posted: Steps,
}

/// Rounds half to even to the decimals of a currency. The result is in steps.
pub fn round_to_currency(exact: &Amount, currency: Currency) -> Result<Steps, Overflow> {
    let step = 10u128.pow(STEP_DECIMALS - currency_decimals(currency).min(STEP_DECIMALS));
    let units = exact.over(step).half_even()?;
    let steps = units.checked_mul(i128::try_from(step).map_err(|_| Overflow)?).ok_or(Overflow)?;
    Some(Steps(steps)).filter(|steps| steps.is_encodable()).ok_or(Overflow)
}

impl Taxed {
    /// The net is what was posted, rounded to the decimals of the currency; the tax is on the net, rounded once.
    pub fn line(self, currency: Currency) -> Result<TaxLine, Overflow> {
        let net = round_to_currency(&self.posted.into(), currency)?;
        let exact = Amount::from(net).times(u128::from(self.rate.0)).over(u128::from(BILLION));
        let tax = round_to_currency(&exact, currency)?;
        Ok(TaxLine { rate: self.rate, posted: self.posted, net, tax })
    }
}

/// What has to be paid: nets and taxes.
pub fn total(taxes: &[TaxLine]) -> Option<Steps> {
    Steps::sum(taxes.iter().flat_map(|line| [line.net, line.tax]))
}

/// What the nets differ by from what was posted: the rounding line of the invoice.
pub fn total_rounding(taxes: &[TaxLine]) -> Option<Steps> {
    Steps::sum(taxes.iter().flat_map(|line| [line.net, -line.posted]))
}
